"""Programs as JAX prints them: read natively they give what the HLO text of the same program gives, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.support.facts import internals

_EMIT = """
import json, os, sys
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np
from jax import lax

def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    return jax.nn.softmax(q @ k.T / 2.0) @ v

def transformer(x, w, up, down, table):
    h = table[x]
    for _ in range(2):
        h = h + attention(h, w)
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        h = h + jax.nn.gelu(h @ up) @ down
    return jax.nn.log_softmax(h @ table.T)

def windows(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), lax.cumsum(x)

def convolution(x, k):
    return lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def bits(x):
    return lax.bitcast_convert_type(x, i), lax.population_count(x.astype(i)), x.astype(jnp.bfloat16)

def pieces(x, k):
    return lax.dynamic_update_slice(jnp.pad(x, ((1, 2), (0, 1)))[::-1, 1:], x[:2], (k, k))

f, i = jnp.float32, jnp.int32
S = jax.ShapeDtypeStruct
model = [S((5,), i), S((8, 24), f), S((8, 16), f), S((16, 8), f), S((11, 8), f)]
CASES = {
    "transformer": (transformer, model),
    "gradient": (jax.grad(lambda *a: transformer(*a).sum(), argnums=(1, 2, 3, 4)), model),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x), [S((6, 3), f)]),
    "loop": (lambda x, n: lax.fori_loop(0, n, lambda k, c: c * x + k, x), [S((3,), f), S((), i)]),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * x, lambda y: y - 1, x), [S((3,), f)]),
    "switch": (lambda k, x: lax.switch(k, [lambda y: y, lambda y: y + x], x), [S((), i), S((3,), f)]),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(-x), lax.top_k(x, 2)), [S((7,), f)]),
    "windows": (windows, [S((6, 6), f)]),
    "convolution": (convolution, [S((2, 8, 9, 3), f), S((3, 3, 3, 4), f)]),
    "gather": (lambda x, k: (x[k], x.at[k].add(1.0), x.at[k].set(2.0)), [S((5, 4), f), S((3,), i)]),
    "random": (lambda k: jax.random.bits(k, (4,)), [S((2,), jnp.uint32)]),
    "bits": (bits, [S((5,), f)]),
    "batched-loop": (jax.vmap(lambda x: lax.while_loop(lambda c: c < x, lambda c: c + 1, 0)), [S((4,), i)]),
    "pieces": (pieces, [S((3, 4), f), S((), i)]),
    "histogram": (lambda x: jnp.histogram(x, 4), [S((20,), f)]),
    "precision": (lambda x: jnp.matmul(x, x, precision="highest"), [S((3, 3), f)]),
}
for name, (function, shapes) in CASES.items():
    jitted = jax.jit(function, keep_unused=True)
    lowered = jitted.lower(*shapes)
    exported = jax.export.export(jitted)(*shapes) if hasattr(jax, "export") else None
    texts = {"plain": lowered.as_text(), "located": lowered.as_text(debug_info=True)}
    if exported is not None:
        texts["exported"] = str(exported.mlir_module())
    module = lowered.compiler_ir("stablehlo")
    texts["generic"] = module.operation.get_asm(print_generic_op_form=True)
    print(json.dumps([name, texts, lowered.as_text(dialect="hlo")]), flush=True)

mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
P = jax.sharding.PartitionSpec
specs = {"in_specs": P("a", "b"), "out_specs": (P(None, "b"), P("a", "b"))}
shards = jax.shard_map(lambda x, y: (lax.psum(x, "a"), y), mesh=mesh, **specs)
lowered = jax.jit(shards).lower(S((8, 4), f), S((4, 4), f))
generic = lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
print(json.dumps(["shard_map", {"plain": lowered.as_text(), "generic": generic}, lowered.as_text(dialect="hlo")]))
"""
FORMS = ("plain", "located", "exported", "generic")
SHARDED = "shard_map"


@pytest.fixture(scope="module")
def emitted() -> list[Any]:
    """What JAX prints, in a process of its own."""
    pytest.importorskip("jax")
    child = subprocess.run([sys.executable, "-c", _EMIT], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    return [json.loads(line) for line in child.stdout.splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_of_the_hlo_text(emitted: list[Any], form: str) -> None:
    whole = [each for each in emitted if each[0] != SHARDED]
    assert len(whole) == 16
    for name, texts, hlo in whole:
        wanted = xb.parse_hlo(hlo).entry
        read = xb.parse_stablehlo(texts[form]).entry
        arguments = [_drawn(each.shape) for each in wanted.parameters]
        found, expected = _flat(xb.evaluate(read, *arguments)), _flat(xb.evaluate(wanted, *arguments))
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected], name


def test_located_text_names_lines_of_the_program(emitted: list[Any]) -> None:
    for name, texts, _ in emitted[:-1]:
        module = xb.parse_stablehlo(texts["located"], f"{name}.mlir")
        files = [i.source.file for c in module.computations for i in c.instructions if i.source is not None]
        assert "<string>" in files, name


def test_each_is_printed_as_hlo_that_is_read_again(emitted: list[Any]) -> None:
    for _, texts, _ in emitted[:-1]:
        text = xb.parse(texts["exported"]).to_hlo()
        assert xb.parse(text).to_hlo() == text
        assert not internals(text)


def test_a_program_of_shards_has_the_calls_that_xla_makes(emitted: list[Any]) -> None:
    name, texts, hlo = emitted[-1]
    assert name == SHARDED
    wanted = _calls(xb.parse_hlo(hlo, partitions=4))
    assert len(wanted) == 3
    for form in ("plain", "generic"):
        module = xb.parse_stablehlo(texts[form])
        assert _calls(module) == wanted
        assert module.num_partitions == 4


def _calls(module: xb.Module) -> list[Any]:
    """What is called in the entry, and with which annotations; newer XLA has another word for calls that stay."""
    stays = {"xla_late": "false"}
    return [
        (
            i.opcode,
            str(i.shape.plain()),
            getattr(i.attributes, "custom_call_target", ""),
            {key: stays.get(value, value) for key, value in i.annotations["frontend_attributes"].items()},
        )
        for i in module.entry.instructions
        if i.opcode in ("call", "custom_call")
    ]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [each for part in value for each in _flat(part)]
    return [np.asarray(value)]


def _drawn(shape: Any) -> Any:
    chance = np.random.default_rng(shape.rank)
    numbers = chance.normal(size=shape.dims) if shape.dtype.is_float else chance.integers(0, 3, shape.dims)
    return np.asarray(numbers).astype(shape.dtype.dtype)
