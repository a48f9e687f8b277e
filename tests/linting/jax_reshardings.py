"""Reshardings for which XLA warns of a full rematerialization, before and after the fix that lint prints.

Run as a child process, it prints a row for each: what it is, XLA's warnings before, lint's issues with the line after
the function's first and the fix, XLA's warnings after, and lint's issues after. The first ones have the shardings of
public reports; `docs/lint.md` lists them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
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
EXPERTS = Mesh(DEVICES[:4].reshape(2, 2), ("expert", "context"))


def constrain(mesh: Mesh, *spec: Any) -> Callable[[Any], Any]:
    return lambda x: jax.lax.with_sharding_constraint(x, named(mesh, *spec))


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


def restored(stage, x):
    w = io_callback(lambda: np.ones((16, 8), np.float32), array(16, 8))
    w = jax.lax.with_sharding_constraint(w, named(BATCH, "fsdp"))
    return x @ w


def restored_as_fixed(stage, x, w):
    w = jax.lax.with_sharding_constraint(w, named(BATCH, "fsdp"))
    return x @ w


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


def lowered_of(function: Callable[..., Any], stage: Any, arguments: Any, options: Any) -> Any:
    return jax.jit(lambda *args: function(stage, *args), **options).lower(*arguments)


def issues_of(lowered: Any, function: Callable[..., Any]) -> list[tuple[str, int, str]]:
    first = function.__code__.co_firstlineno
    return [(each.rule, each.source.line - first, each.fix) for each in xb.lint(lowered).issues]


def main() -> None:
    rows = []
    for name, mesh, function, arguments, options in (*reported(), *others()):
        lowered = lowered_of(function, lambda x: x, arguments, options)
        _, before = count_warnings(lowered)
        found = issues_of(lowered, function)
        staged = [match[1] for _, _, fix in found if (match := re.search(r"constraint to (P\(.*\)) between", fix))]
        after, left = before, found
        if staged:
            spec = eval(staged[0], {"P": P})
            fixed = lowered_of(function, constrain(mesh, *spec), arguments, options)
            _, after = count_warnings(fixed)
            left = issues_of(fixed, function)
        rows.append([name, before, found, after, left])
    argument = named(BATCH, "batch")
    lowered = lowered_of(restored, None, (array(8, 16),), {"in_shardings": argument})
    _, before = count_warnings(lowered)
    found = issues_of(lowered, restored)
    both = (argument, named(BATCH, "fsdp"))
    fixed = lowered_of(restored_as_fixed, None, (array(8, 16), array(16, 8)), {"in_shardings": both})
    _, after = count_warnings(fixed)
    rows.append(["openpi#112", before, found, after, issues_of(fixed, restored_as_fixed)])
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
