"""Reshardings for which XLA warns of a full rematerialization, before and after the fix that lint prints.

Run as a child process, it prints a row for each: what it is, XLA's warnings before, lint's issues with the line after
the function's first and the fix, XLA's warnings after, and lint's issues after. The first ones have the shardings of
public reports; `docs/lint.md` lists them.

`python -m tests.linting.jax_reshardings --random 500 --seed 1` draws shardings over meshes of up to three axes instead,
and prints those for which lint and XLA differ or the fix does not help, and the counts.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

# This import sets JAX's number of devices, so it precedes that of JAX.
from tests.linting.jax_programs import AB, DEVICES, XY, array, count_warnings, named

import jax  # isort: skip
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import xbuild as xb

SQUARE = Mesh(DEVICES[:4].reshape(2, 2), ("x", "y"))
BATCH = Mesh(DEVICES.reshape(2, 4), ("batch", "fsdp"))
CUBE = Mesh(DEVICES.reshape(2, 2, 2), ("a", "b", "c"))
EXPERTS = Mesh(DEVICES[:4].reshape(2, 2), ("expert", "context"))


def constrain(mesh: Mesh, *specs: P) -> Callable[[Any], Any]:
    """The function that constrains a value to one sharding after the other."""

    def stage(x: Any) -> Any:
        for spec in specs:
            x = jax.lax.with_sharding_constraint(x, named(mesh, *spec))
        return x

    return stage


def moved(stage, a, b, c):
    d = stage(a + b)
    d = jax.lax.with_sharding_constraint(d, named(XY, None, ("x", "y"), None))
    return c + d


def columns(stage, a):
    h = stage(jnp.tanh(a))
    return jax.lax.with_sharding_constraint(h, named(AB, None, "a")) * 2


def layers(stage, x, weights):
    def layer(x, w):
        h = stage(jnp.tanh(x))
        h = jax.lax.with_sharding_constraint(h, named(BATCH, None, None, "batch"))
        return jax.lax.with_sharding_constraint(h @ w, named(BATCH, ("batch", "fsdp"))), None

    return jax.lax.scan(layer, x, weights)[0]


def experts(stage, w):
    h = stage(w * 2)
    return jax.lax.with_sharding_constraint(h, named(EXPERTS, "expert")) + 1


def slabs(stage, x):
    h = stage(x * 2)
    return jax.lax.with_sharding_constraint(h, named(SQUARE, None, ("x", "y"))) + 1


def columns_of_slabs(stage, x):
    h = stage(x * 2)
    return jax.lax.with_sharding_constraint(h, named(SQUARE, ("x", "y"))) + 1


def sorted_anew(stage, x):
    h = stage(x * 2)
    return jax.lax.with_sharding_constraint(h, named(CUBE, None, ("b", "c", "a"))) + 1


def spread(stage, x):
    h = stage(x * 2)
    return jax.lax.with_sharding_constraint(h, named(CUBE, "a", "b", "c")) + 1


def restored(stage, x):
    w = io_callback(lambda: np.ones((16, 8), np.float32), array(16, 8))
    w = jax.lax.with_sharding_constraint(w, named(BATCH, "fsdp"))
    return x @ w


def restored_as_fixed(stage, x, w):
    w = jax.lax.with_sharding_constraint(w, named(BATCH, "fsdp"))
    return x @ w


def gathered_for_nothing(stage, x, w_up, w_down):
    h = jax.lax.with_sharding_constraint(jax.nn.gelu(x @ w_up), stage)
    return jax.lax.with_sharding_constraint(h @ w_down, named(BATCH, "batch"))


Case = tuple[str, Mesh, Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def reported() -> Iterator[Case]:
    one, other = named(XY, "y", None, "x"), named(XY, None, ("x", "y"), None)
    shardings = {"in_shardings": (one, one, other), "out_shardings": other}
    yield "jax#21562, xla#15207", XY, moved, (array(16, 16, 16),) * 3, shardings
    yield "jax#18591", AB, columns, (array(64, 64),), {"in_shardings": named(AB, ("a", "b"))}
    split = (named(BATCH, ("batch", "fsdp")), named(BATCH))
    yield "openpi, activations", BATCH, layers, (array(8, 16, 32), array(4, 32, 32)), {"in_shardings": split}
    split = named(EXPERTS, None, None, ("context", "expert"))
    yield "marin, weights of experts", EXPERTS, experts, (array(8, 16, 32),), {"in_shardings": split}
    split = named(SQUARE, None, None, "x", "y")
    yield "a solver with slabs", SQUARE, slabs, (array(2, 16, 16, 16),), {"in_shardings": split}
    split = named(CUBE, None, None, ("b", "c", "a"))
    yield "three axes at once", CUBE, spread, (array(16, 16, 16),), {"in_shardings": split}
    yield "three axes in another order", CUBE, sorted_anew, (array(16, 16),), {"in_shardings": named(CUBE, "a", "c")}
    split = named(SQUARE, None, "x", "y")
    yield "LORRAX, columns", SQUARE, columns_of_slabs, (array(8, 16, 16),), {"in_shardings": split}


def others() -> Iterator[Case]:
    """All pairs of some shardings of three dimensions over two axes."""
    specs = [P(("x", "y")), P(None, "x"), P(None, None, ("y", "x")), P("y")]
    for before, after in itertools.permutations(specs, 2):

        def move(stage: Any, z: Any, after: Any = after) -> Any:
            h = stage(z * 2)
            return jax.lax.with_sharding_constraint(h, named(XY, *after)) + 1

        yield f"{before} to {after}", XY, move, (array(8, 16, 32),), {"in_shardings": named(XY, *before)}


def drawn(count: int, seed: int) -> Iterator[Case]:
    """Random shardings before and after, of arrays of two to four dimensions."""
    random = Random(seed)
    meshes = [XY, AB, SQUARE, CUBE]
    for _ in range(count):
        mesh, rank = random.choice(meshes), random.randint(2, 4)
        before, after = (draw_spec(random, mesh.axis_names, rank) for _ in range(2))

        def move(stage: Any, z: Any, mesh: Mesh = mesh, after: Any = after) -> Any:
            h = stage(z * 2)
            return jax.lax.with_sharding_constraint(h, named(mesh, *after)) + 1

        options = {"in_shardings": named(mesh, *before)}
        yield f"{dict(mesh.shape)}: {before} to {after}", mesh, move, (array(*[16] * rank),), options


def draw_spec(random: Random, axes: Sequence[str], rank: int) -> P:
    used = random.sample(axes, random.randint(0, len(axes)))
    dims: list[list[str]] = [[] for _ in range(rank)]
    for axis in used:
        random.choice(dims).append(axis)
    return P(*(tuple(each) or None for each in dims))


def lowered_of(function: Callable[..., Any], stage: Any, arguments: Any, options: Any) -> Any:
    return jax.jit(lambda *args: function(stage, *args), **options).lower(*arguments)


def issues_of(lowered: Any, function: Callable[..., Any]) -> list[tuple[str, int, str]]:
    first = function.__code__.co_firstlineno
    return [(each.rule, each.source.line - first, each.fix) for each in xb.lint(lowered).issues]


Row = list[Any]


def row_of(case: Case) -> Row:
    name, mesh, function, arguments, options = case
    lowered = lowered_of(function, lambda x: x, arguments, options)
    _, before = count_warnings(lowered)
    found = issues_of(lowered, function)
    staged = [match[1] for _, _, fix in found if (match := re.search(r"constraint to (P\(.*\)) between", fix))]
    if not staged:
        return [name, before, found, before, found]
    specs = [eval(each, {"P": P}) for each in staged[0].split(", then to ")]
    fixed = lowered_of(function, constrain(mesh, *specs), arguments, options)
    _, after = count_warnings(fixed)
    return [name, before, found, after, issues_of(fixed, function)]


def row_of_callback() -> Row:
    argument = named(BATCH, "batch")
    lowered = lowered_of(restored, None, (array(8, 16),), {"in_shardings": argument})
    _, before = count_warnings(lowered)
    both = (argument, named(BATCH, "fsdp"))
    fixed = lowered_of(restored_as_fixed, None, (array(8, 16), array(16, 8)), {"in_shardings": both})
    _, after = count_warnings(fixed)
    return ["openpi#112", before, issues_of(lowered, restored), after, issues_of(fixed, restored_as_fixed)]


def row_of_useless_gather() -> Row:
    arguments = array(64, 128), array(128, 512), array(512, 128)
    options = {"in_shardings": (named(BATCH, "batch"), named(BATCH, None, "fsdp"), named(BATCH, "fsdp"))}
    lowered = lowered_of(gathered_for_nothing, named(BATCH, "batch"), arguments, options)
    _, before = count_warnings(lowered)
    found = issues_of(lowered, gathered_for_nothing)
    spec = eval(found[0][2].partition("again: state ")[2].partition(" between")[0], {"P": P})
    fixed = lowered_of(gathered_for_nothing, named(BATCH, *spec), arguments, options)
    _, after = count_warnings(fixed)
    return ["gathered for nothing", before, found, after, issues_of(fixed, gathered_for_nothing)]


def search(count: int, seed: int) -> None:
    """Print the random reshardings for which lint and XLA differ or the fix does not help, and the counts."""
    counts = Counter[str]()
    for case in drawn(count, seed):
        name, before, found, after, _ = row_of(case)
        is_named = any(rule == "full_rematerialization" for rule, _, _ in found)
        is_staged = any("with_sharding_constraint to P(" in fix for _, _, fix in found)
        kinds = {
            "warned": before,
            "named": before and is_named,
            "not warned, but named": is_named and not before,
            "warned with the fix": before and after,
            "without a sharding in the fix": is_named and not is_staged,
        }
        counts.update(kind for kind, value in kinds.items() if value)
        if bool(before) != is_named or (before and after):
            print(name, before, found, after)
    print(f"{count} reshardings: {dict(counts)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=0, help="the number of reshardings to draw")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.random:
        search(given.random, given.seed)
    else:
        print(json.dumps([*map(row_of, (*reported(), *others())), row_of_callback(), row_of_useless_gather()]))


if __name__ == "__main__":
    main()
