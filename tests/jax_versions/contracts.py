"""Assertions on compiled text as contracts: programs in the styles of public tests, each with a broken variant.

`python -m tests.jax_versions.contracts` compiles all of them with the JAX that is installed, and prints what differs;
with names, only those.
A contract must hold for its program and fail for the broken one: for the function of JAX, for the text that XLA
compiles, and for that text with every collective made asynchronous in two ways. Then it changes one collective in each
of 30 random programs, which a contract in a file must detect.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import field, frozen
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import xbuild as xb
from tests.jax_versions.programs import array, mesh
from xbuild import testing
from xbuild.testing import ContractError, at_least

GRID = {"x": 2, "y": 4}
Target = tuple[Any, ...]
"""A function of JAX and its arguments."""


@frozen
class Restated:
    """An assertion on text, in words, and the contract that restates it, with a program for which it holds and not."""

    text: str
    assertion: Callable[..., Any]
    options: dict[str, Any]
    holds: Callable[[], Target]
    broken: Callable[[], Target]
    is_available: Callable[[], bool] = field(default=lambda: True)


RESTATED: dict[str, Restated] = {}


def restated(name: str, text: str, assertion: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Register a function from False (the program) or True (the broken program) to a function of JAX and arguments."""

    def register(make: Callable[[bool], Target]) -> Callable[[bool], Target]:
        RESTATED[name] = Restated(
            text, assertion, options, lambda: make(False), lambda: make(True), getattr(make, "is_available", _always)
        )
        return make

    return register


def _always() -> bool:
    return True


def only_if(is_available: Callable[[], bool]) -> Callable[..., Any]:
    """Mark a program that only some versions of JAX can compile."""

    def mark(make: Any) -> Any:
        make.is_available = is_available
        return make

    return mark


def grid() -> Any:
    return mesh(2, 4, names=("x", "y"))


def placed(*dims: int, spec: tuple[Any, ...] = (), dtype: Any = jnp.float32, **kind: Any) -> jax.ShapeDtypeStruct:
    """An argument that is sharded on the grid."""
    return jax.ShapeDtypeStruct(dims, dtype, sharding=NamedSharding(grid(), P(*spec), **kind))


def constrained(value: Any, *spec: Any) -> Any:
    return jax.lax.with_sharding_constraint(value, NamedSharding(grid(), P(*spec)))


def on_shards(body: Callable[..., Any], inputs: Any, outputs: Any) -> Any:
    return jax.jit(jax.shard_map(body, mesh=grid(), in_specs=inputs, out_specs=outputs, check_vma=False))


# ----------------------------------------------------------------------------
# Which collectives occur


@restated(
    "gathered weights",
    "assertIn('all-gather', text)",
    testing.assert_collectives,
    all_gather={"y": at_least(1), "x": 0},
    all_reduce=0,
)
def _(is_broken: bool) -> Target:
    def product(x: Any, w: Any) -> Any:
        return constrained(x @ constrained(w), "x", None)

    return jax.jit(product), placed(8, 16, spec=("x",)), placed(16, 32, spec=() if is_broken else ("y",))


@restated("reduced axis", "assertIn('all-reduce', text)", testing.assert_collectives, axis="x", all_reduce=at_least(1))
def _(is_broken: bool) -> Target:
    return jax.jit(lambda v: jnp.sum(v, axis=int(is_broken))), placed(8, 16, spec=("x",))


@restated("reduced maximum", "assertIn('all-reduce', text)", testing.assert_collectives, all_reduce={"y": 1, "x": 0})
def _(is_broken: bool) -> Target:
    return jax.jit(lambda v: constrained(v.max(1), "x")), placed(8, 16, spec=("y", "x") if is_broken else ("x", "y"))


@restated("partial sums", "assertNotIn('all-reduce(', text)", testing.assert_collectives, all_reduce=0, others=0)
def _(is_broken: bool) -> Target:
    def contract_shard(a: Any, b: Any) -> Any:
        part = (a @ b)[None]
        return jax.lax.psum(part, "x") if is_broken else part

    return on_shards(contract_shard, (P(None, "x"), P("x")), P("x")), array(4, 8), array(8, 4)


@restated("batched linear algebra", "assertNotIn('all-', text)", testing.assert_collectives, others=0)
def _(is_broken: bool) -> Target:
    return jax.jit(jnp.linalg.cholesky), placed(8, 6, 6, spec=(None, "x") if is_broken else ("x",))


@restated("matrix of all devices", "assertIn('all-gather', text)", testing.assert_collectives, all_gather=at_least(1))
def _(is_broken: bool) -> Target:
    return jax.jit(jnp.linalg.cholesky), placed(8, 8, spec=() if is_broken else ("x",))


@restated(
    "transposed blocks",
    "assert 'all-to-all' in text and 'all-gather' not in text",
    testing.assert_collectives,
    all_to_all=at_least(1),
    others=0,
)
def _(is_broken: bool) -> Target:
    def swap(v: Any) -> Any:
        if is_broken:
            whole = jax.lax.all_gather(v, "x", tiled=True)
            return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * 4, 4, 1)
        return jax.lax.all_to_all(v, "x", 1, 0, tiled=True)

    return on_shards(swap, P("x"), P(None, "x")), array(8, 8)


@restated(
    "halo exchange",
    "assert 'collective-permute' in text; assert 'all-gather' not in text",
    testing.assert_collectives,
    collective_permute=2,
    others=0,
)
def _(is_broken: bool) -> Target:
    def smooth(v: Any) -> Any:
        ring = [(n, (n + 1) % 4) for n in range(4)]
        left = jax.lax.ppermute(v[-1:], "y", ring)
        right = left if is_broken else jax.lax.ppermute(v[:1], "y", [(b, a) for a, b in ring])
        return jnp.concatenate([left, v, right])

    return on_shards(smooth, P("y"), P("y")), array(32, 4)


# ----------------------------------------------------------------------------
# How many collectives occur, where, and how much they move


def _layers(v: Any, weights: Any, names: list[str]) -> Any:
    for (up, down), name in zip(weights, names, strict=True):
        v = v + jax.lax.psum(jnp.tanh(v @ up) @ down, name)
    return v


@restated(
    "one sum for each layer",
    "assert text.count('all-reduce(') + text.count('all-reduce-start(') == layers",
    testing.assert_collectives,
    all_reduce={"y": 3, "x": 0},
    others=0,
)
def _(is_broken: bool) -> Target:
    names = ["y", "y", "x" if is_broken else "y"]
    weights = [(array(16, 32), array(32, 16))] * 3
    specs = [(P(None, name), P(name)) for name in names]
    return on_shards(lambda v, w: _layers(v, w, names), (P(), specs), P()), array(4, 16), weights


def _accumulated(is_broken: bool) -> Target:
    def step(w: Any, batches: Any) -> Any:
        def add(total: Any, batch: Any) -> tuple[Any, None]:
            part = jax.grad(lambda v: jnp.sum(jnp.tanh(batch @ v)))(w)
            return total + (jax.lax.psum(part, "x") if is_broken else part), None

        total, _ = jax.lax.scan(add, jnp.zeros_like(w), batches)
        return w - 0.1 * (total if is_broken else jax.lax.psum(total, "x"))

    return on_shards(step, (P(), P(None, "x")), P()), array(4, 4), array(3, 8, 4)


restated(
    "one sum for each batch",
    "assertEqual(text.count('all-reduce('), 1), or all-reduce-start( and all-reduce-done( on GPU",
    testing.assert_collectives,
    unit="executions",
    all_reduce=1,
)(_accumulated)
restated(
    "bytes of a batch",
    "assert sum of the bytes in the lines of all-reduce == expected",
    testing.assert_collectives,
    bytes_at_most=4 * 4 * 4,
)(_accumulated)


@restated(
    "a named place",
    "assertRegex(text, 'all-gather.*dense')",
    testing.assert_collectives,
    scope="dense",
    all_gather=1,
)
def _(is_broken: bool) -> Target:
    def apply(v: Any, w: Any) -> Any:
        with jax.named_scope("head" if is_broken else "dense"):
            return v @ jax.lax.all_gather(w, "y", tiled=True)

    return on_shards(apply, (P(), P("y")), P()), array(4, 16), array(16, 8)


@restated(
    "a narrow type",
    "assert any('all-gather' in line and 's8[' in line for line in text.splitlines())",
    testing.assert_collectives,
    dtype="s8",
    all_gather=1,
)
def _(is_broken: bool) -> Target:
    def apply(v: Any, w: Any) -> Any:
        if is_broken:
            return v @ jax.lax.all_gather(w.astype(jnp.float32) / 127, "y", tiled=True)
        return v @ (jax.lax.all_gather(w, "y", tiled=True).astype(jnp.float32) / 127)

    return on_shards(apply, (P(), P("y")), P()), array(4, 16), array(16, 8, dtype=jnp.int8)


@restated(
    "resharding in place",
    "assert 'dynamic-slice' not in text; assert 'all-gather' not in text",
    testing.assert_no_rematerialization,
)
def _(is_broken: bool) -> Target:
    def reshard(v: Any) -> Any:
        if is_broken:
            whole = jax.lax.all_gather(v, "x", tiled=True)
            return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * 4, 4, 1)
        return jax.lax.all_to_all(v, "x", 1, 0, tiled=True)

    return on_shards(reshard, P("x"), P(None, "x")), array(8, 8)


# ----------------------------------------------------------------------------
# Ops, element types, donated arguments, memory and the host


@restated("no wide type", "assert 'f64' not in text", testing.assert_ops, dtype="f64", others=0)
def _(is_broken: bool) -> Target:
    dtype = np.float64 if is_broken else np.float32
    return jax.jit(lambda v: jnp.sum(jnp.sin(v.astype(dtype))).astype(jnp.float32)), array(16)


@restated(
    "no branch and one loop", "assert ' while(' in text; assert ' conditional(' not in text", testing.assert_ops,
    conditional=0, **{"while": 1}
)  # fmt: skip
def _(is_broken: bool) -> Target:
    def once(n: Any, v: Any) -> Any:
        even = jax.lax.cond(n % 2 == 0, jnp.sin, jnp.cos, v) if is_broken else jnp.sin(v)
        return even @ even

    return jax.jit(lambda v: jax.lax.fori_loop(0, 9, once, v)), array(32, 32)


@restated("matrix products", "assert text.count(' dot(') == 2", testing.assert_ops, dot=2)
def _(is_broken: bool) -> Target:
    # A product that is written twice is computed once; a broken program multiplies another value.
    return jax.jit(lambda v, w: (v @ w) @ w + ((v + 1) @ w if is_broken else v @ w)), array(64, 64), array(64, 64)


@restated("no gather of rows", "assert not re.search(r'\\bscatter\\(', text)", testing.assert_ops, scatter=0)
def _(is_broken: bool) -> Target:
    def write(v: Any, n: Any, row: Any) -> Any:
        return v.at[n].set(row) if is_broken else jax.lax.dynamic_update_slice_in_dim(v, row[:1], n[0], 0)

    return jax.jit(write), array(32, 8), array(4, dtype=jnp.int32), array(4, 8)


@restated(
    "a library call",
    "assertIn('lapack_sgeqrf', text)",
    testing.assert_ops,
    custom_call={"lapack_sgeqrf_ffi": 1, "lapack_spotrf_ffi": 0},
)
def _(is_broken: bool) -> Target:
    return jax.jit(lambda v: jnp.linalg.cholesky(v @ v.T) if is_broken else jnp.linalg.qr(v)), array(8, 8)


@restated("no library call", "assert 'custom-call' not in text", testing.assert_ops, custom_call=0)
def _(is_broken: bool) -> Target:
    return jax.jit(lambda v: jnp.linalg.inv(v) if is_broken else v / jnp.linalg.norm(v)), array(8, 8)


@restated("fused work", "assert text.count('fusion(') <= 4", testing.assert_ops, fusion=range(5))
def _(is_broken: bool) -> Target:
    def chain(v: Any) -> Any:
        for n in range(12 * is_broken):
            v = jnp.sin(v.T @ v) + n
        return jnp.tanh(v) * 2 + 1

    return jax.jit(chain), array(16, 16)


@restated("donated state", "assertIn('input_output_alias', text)", testing.assert_donated, arguments="state")
def _(is_broken: bool) -> Target:
    def step(state: Any, batch: Any) -> Any:
        return {name: value - batch.sum() for name, value in state.items()}

    state = {"b": placed(8), "w": placed(8, 16, spec=("x",))}
    return jax.jit(step, donate_argnums=() if is_broken else (0,)), state, placed(4, spec=("y",))


@restated("no callbacks", "assert 'callback' not in text", testing.assert_no_callbacks)
def _(is_broken: bool) -> Target:
    def step(v: Any) -> Any:
        if is_broken:
            jax.debug.print("sum {}", v.sum())
        return v * 2

    return jax.jit(step), array(8)


@restated(
    "bytes at once", "assert compiled.memory_analysis().temp_size_in_bytes <= limit", testing.assert_memory,
    at_most=3 * 2**20
)  # fmt: skip
def _(is_broken: bool) -> Target:
    def outer_products(v: Any) -> Any:
        every = v[:, :, None] * v[:, None, :]
        return jnp.sort(every, axis=0)[0] if is_broken else jnp.sort(v, axis=0)[0]

    return jax.jit(outer_products), array(64, 256)


@restated("work", "assert compiled.cost_analysis()['flops'] <= limit", testing.assert_flops, at_most=2 * 64**3)
def _(is_broken: bool) -> Target:
    return jax.jit(lambda v, w: v @ w @ w if is_broken else v @ w), array(64, 64), array(64, 64)


def _has_host_memory() -> bool:
    return any(each.kind == "pinned_host" for each in jax.devices()[0].addressable_memories())


@restated(
    "weights on the host",
    "assertRegex(text, r'entry_computation_layout=.*S\\(5\\)}')",
    testing.assert_ops,
    on_host=True,
    parameter=1,
)
@only_if(_has_host_memory)
def _(is_broken: bool) -> Target:
    def apply(w: Any, v: Any) -> Any:
        return v @ jax.device_put(w, NamedSharding(grid(), P(), memory_kind="device"))

    kind = {} if is_broken else {"memory_kind": "pinned_host"}
    return jax.jit(apply), placed(8, 8, **kind), placed(4, 8, spec=("x",))


# ----------------------------------------------------------------------------
# The compiled text, and the same text with asynchronous collectives

_OPS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_LINE = re.compile(rf"^  (ROOT )?(%[\w.\-]+) = (.+?) ({_OPS})\((.*?)\), (.*)$", re.MULTILINE)
_SHAPE = re.compile(r"^  (?:ROOT )?(%[\w.\-]+) = (\(.*?\)|\S+) [a-z][\w\-]*\(", re.MULTILINE)
_NAME = re.compile(r"%[\w.\-]+")
_COMPUTATION = re.compile(r"^(?=(?:ENTRY )?%.*\{$)", re.MULTILINE)


def asynchronous(text: str, is_wrapped: bool) -> str:
    """A compiled text with a start and a done for each collective: of its own op, or as an async-start."""
    parts = _COMPUTATION.split(text)
    return "".join(_pairs(part, number, is_wrapped) for number, part in enumerate(parts))


def _pairs(part: str, number: int, is_wrapped: bool) -> str:
    """The text of one computation with a start and a done for each collective, after the computations that it calls."""
    shapes, wrapped = dict(_SHAPE.findall(part)), []

    def pair(line: re.Match[str]) -> str:
        root, name, shape, op, operands, rest = line.groups()
        names = _NAME.findall(operands)
        given = [shapes[each] for each in names]
        start = f"%begun{number}.{len(wrapped)}"
        if is_wrapped or op in ("reduce-scatter", "all-to-all"):
            body = f"%wrapped{number}.{len(wrapped)}"
            parameters = "".join(f"  %q{n} = {each} parameter({n})\n" for n, each in enumerate(given))
            inner = ", ".join(f"%q{n}" for n in range(len(given)))
            wrapped.append(f"{body} {{\n{parameters}  ROOT %r = {shape} {op}({inner}), {rest}\n}}\n\n")
            of_pair, calls = f"(({', '.join(given)}), {shape}, u32[])", f"calls={body}"
            begin = f"  {start} = {of_pair} async-start({', '.join(names)}), {calls}"
            return f"{begin}\n  {root or ''}{name} = {shape} async-done({start}), {calls}"
        wrapped.append("")
        of_pair = shape if op == "all-reduce" else f"({', '.join(given)}, {shape})"
        begin = f"  {start} = {of_pair} {op}-start({', '.join(names)}), {rest}"
        return f"{begin}\n  {root or ''}{name} = {shape} {op}-done({start})"

    changed = _LINE.sub(pair, part)
    return "".join(wrapped) + changed


def targets(make: Callable[[], Target], restatement: Restated) -> Iterator[tuple[str, Target, dict[str, Any]]]:
    """The forms in which a program is given to a contract: their names, targets and options."""
    yield "function", make(), {}
    function, *arguments = make()
    text = function.lower(*arguments).compile().as_text()
    is_about_collectives = restatement.assertion is testing.assert_collectives
    named = {"mesh": xb.Mesh(**GRID)} if is_about_collectives else {}
    yield "text", (text,), named
    if _LINE.search(text):
        for name, is_wrapped in (("own starts", False), ("wrapped", True)):
            changed = asynchronous(text, is_wrapped)
            assert not is_about_collectives or all(each.is_async for each in testing.collectives(changed))
            yield name, (changed,), named


def faults(name: str) -> Iterator[str]:
    """What differs from the expected verdicts of a contract."""
    restatement = RESTATED[name]
    for is_broken, make in enumerate((restatement.holds, restatement.broken)):
        program = "the broken program" if is_broken else "the program"
        try:
            for form, target, named in targets(make, restatement):
                try:
                    restatement.assertion(*target, **restatement.options, **named)
                except ContractError as error:
                    if not is_broken:
                        yield f"{program} as {form}: {error}"
                else:
                    if is_broken:
                        yield f"{program} as {form} passes"
        except Exception as error:
            yield f"{program}: {type(error).__name__}: {str(error)[:300]}"


# ----------------------------------------------------------------------------
# Changes of one collective in random programs

CHANGES = ("extra", "removed", "axis")
Step = list[tuple[str, str]]


def draw_step(seed: int) -> Step:
    """The ops and axes of two to five collectives."""
    draw = np.random.default_rng(seed)
    ops = ("psum", "all_gather", "psum_scatter", "all_to_all", "ppermute")
    return [(str(draw.choice(ops)), str(draw.choice(["a", "b", "c"]))) for _ in range(draw.integers(2, 6))]


def changed(step: Step, change: str, at: int) -> Step:
    op, axis = step[at]
    other = {"a": "b", "b": "c", "c": "a"}[axis]
    return {
        "extra": [*step[:at], step[at], *step[at:]],
        "removed": [*step[:at], *step[at + 1 :]],
        "axis": [*step[:at], (op, other), *step[at + 1 :]],
    }[change]


def compiled_step(step: Step) -> Any:
    """The function for eight devices that runs these collectives, each on the values of the one before."""
    cube = mesh(2, 2, 2, names=("a", "b", "c"))

    def body(v: Any) -> Any:
        for number, (op, axis) in enumerate(step):
            v = jnp.sin(v * (number + 2.0 + jax.lax.axis_index(("a", "b", "c"))))
            if op == "psum":
                v = jax.lax.psum(v, axis)
            elif op == "all_gather":
                v = jax.lax.all_gather(v, axis, tiled=True)[: v.shape[0]]
            elif op == "psum_scatter":
                v = jnp.tile(jax.lax.psum_scatter(v, axis, tiled=True), (2, 1))
            elif op == "all_to_all":
                v = jax.lax.all_to_all(v, axis, 0, 0, tiled=True)
            else:
                v = jax.lax.ppermute(v, axis, [(0, 1), (1, 0)])
        return v

    spec = P(("a", "b", "c"))
    return jax.jit(jax.shard_map(body, mesh=cube, in_specs=spec, out_specs=spec, check_vma=False))


def missed_changes(count: int, folder: Path) -> Iterator[str]:
    """The changes of a collective in `count` random programs that a contract in a file does not detect."""
    argument = array(64, 4)
    for seed in range(count):
        step = draw_step(seed)
        os.environ["XBUILD_UPDATE_CONTRACTS"] = "1"
        found = testing.contract(f"step{seed}", compiled_step(step), argument, folder=folder)
        os.environ["XBUILD_UPDATE_CONTRACTS"] = "0"
        if len(found) != len(step):
            yield f"step {seed} {step}: {len(found)} collectives\n{found}"
        testing.contract(f"step{seed}", compiled_step(step), argument, folder=folder)
        for change in CHANGES:
            try:
                variant = compiled_step(changed(step, change, seed % len(step)))
                testing.contract(f"step{seed}", variant, argument, folder=folder)
            except ContractError:
                continue
            yield f"step {seed} {step}: {change} is not detected"


if __name__ == "__main__":
    chosen = sys.argv[1:] or [*RESTATED]
    available = [name for name in chosen if RESTATED[name].is_available()]
    jax.config.update("jax_enable_x64", True)  # where a 64-bit type appears by mistake
    wrong = {name: found for name in available if (found := [*faults(name)])}
    for name, found in wrong.items():
        print(f"{name}:", *found, sep="\n  ")
    counts = f"{len(available) - len(wrong)} passed, {len(wrong)} failed, {len(chosen) - len(available)} not available"
    print(f"JAX {jax.__version__}: contracts: {counts}")
    missed: list[str] = []
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            missed = [*missed_changes(30, Path(place))]
        print("".join(f"{each}\n" for each in missed), end="")
        print(f"changes of a collective: {30 * len(CHANGES)}, missed: {len(missed)}")
    sys.exit(bool(wrong or missed))
