"""Programs of JAX whose `shard_map` is manual along some axes of a mesh only, partitioned here, beside XLA's results.

`python -m tests.sharding.manual_programs` prints what differs; with `--gspmd` JAX states regions by HLO's shardings in
place of Shardy's. JAX with its eight devices is in a child process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
Program = tuple[str, dict[str, int], Callable[..., Any], list[tuple[tuple[int, ...], tuple[Any, ...]]]]
AXES = {"x": 2, "y": 4}
THREE = {"x": 2, "y": 2, "z": 2}


def faults(*words: str) -> dict[str, str | None]:
    """What is wrong with each program whose name contains one of the words; None where nothing is.

    The word `--gspmd` stands for regions by HLO's shardings.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.manual_programs", "--here", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _fault(axes: dict[str, int], function: Callable[..., Any], given: list[Any], is_shardy: bool) -> str | None:
    import jax

    import xbuild as xb

    from .against_xla.measuring import _fault_on_xla, _parts
    from .cases import difference

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(tuple(axes.values())), tuple(axes))
    placed = tuple(jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)) for _, spec in given)
    jitted, other = (jax.jit(lambda *values: function(mesh, *values), in_shardings=placed) for _ in range(2))
    chance = np.random.default_rng(0)
    arrays = [chance.integers(-3, 4, dims).astype(np.float32) for dims, _ in given]
    jax.config.update("jax_use_shardy_partitioner", is_shardy)
    made = xb.shard.partition(xb.from_jax(other, *arrays, partition=False))
    jax.config.update("jax_use_shardy_partitioner", True)
    if (verdict := xb.check(made.module)).kind != "ok":
        return str(verdict)
    wanted = jax.tree.leaves(jitted(*(jax.device_put(*pair) for pair in zip(arrays, placed, strict=True))))
    found = jax.tree.leaves(made.run(*arrays))
    return difference(_parts(wanted), _parts(found)) or _fault_on_xla(made, arrays)


def programs() -> Iterator[Program]:
    """Name, mesh, function of the mesh and arrays, and for each array its extents and how it is cut."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    lax = jax.lax

    def region(mesh: Any, body: Any, given: Any, out: Any, names: Any) -> Any:
        return jax.shard_map(body, mesh=mesh, in_specs=given, out_specs=out, axis_names=set(names), check_vma=False)

    def inside(body: Any, given: Any, out: Any, names: Any) -> Any:
        return jax.shard_map(body, in_specs=given, out_specs=out, axis_names=set(names), check_vma=False)

    def product(mesh: Any, a: Any, b: Any) -> Any:
        return region(mesh, lambda a, b: lax.psum(a @ b, "x"), (P(None, "x"), P("x", None)), P(), "x")(a, b)

    yield "a product summed", AXES, product, [((8, 8), (None, "x")), ((8, 12), ("x", "y"))]

    def indexed(mesh: Any, a: Any) -> Any:
        return region(mesh, lambda a: a * (1 + lax.axis_index("y")), P(None, "y"), P(None, "y"), "y")(a)

    yield "the place along an axis", AXES, indexed, [((6, 8), ("x", "y"))]

    def constrained(mesh: Any, a: Any, b: Any) -> Any:
        def body(a: Any, b: Any) -> Any:
            inner = lax.with_sharding_constraint(jnp.tanh(a @ b), P(None, "y"))
            return lax.all_gather(inner, "x", axis=0, tiled=True)

        return region(mesh, body, (P("x", None), P()), P(), "x")(a, b)

    yield "a constraint on an axis that is left", AXES, constrained, [((8, 8), ("x", None)), ((8, 8), (None, "y"))]

    def exchanged(mesh: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            a = lax.with_sharding_constraint(a, P(None, None, "y"))
            return lax.all_to_all(a, "x", 1, 0, tiled=True) * 2

        return region(mesh, body, P("x"), P(None, "x"), "x")(a)

    yield "an exchange beside cut dimensions", AXES, exchanged, [((4, 6, 8), ("x", None, "y"))]

    def along_cut(mesh: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            a = lax.with_sharding_constraint(a, P("y", None))
            return lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True) + lax.pmax(a, "x").sum()

        return region(mesh, body, P("x"), P("x"), "x")(a)

    yield "a reduction scattered along a cut dimension", AXES, along_cut, [((16, 4), (("x", "y"), None))]

    def ring(mesh: Any, a: Any, w: Any) -> Any:
        def body(a: Any, w: Any) -> Any:
            def step(carry: Any, _: Any) -> Any:
                moved = lax.ppermute(carry, "y", [(n, (n + 1) % 4) for n in range(4)])
                return jnp.tanh(moved @ w * 0.1), moved.sum()

            return lax.scan(step, a, None, length=3)

        return region(mesh, body, (P(None, "y", None), P()), (P(None, "y", None), P()), "y")(a, w)[0]

    yield "a ring in a scan", AXES, ring, [((2, 8, 6), (None, "y", "x")), ((6, 6), (None, "x"))]

    def branched(mesh: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            return lax.cond(lax.psum(a.sum(), "x") > 0, lambda a: lax.psum(a, "x"), lambda a: -a, a)

        return region(mesh, body, P("x"), P("x"), "x")(a)

    yield "a branch", AXES, branched, [((4, 8), ("x", "y"))]

    def nested(mesh: Any, a: Any) -> Any:
        def inner(a: Any) -> Any:
            return lax.psum(a, "y") + lax.axis_index("y")

        def body(a: Any) -> Any:
            b = inside(inner, P(None, "y"), P(None, "y"), "y")(a)
            return lax.all_gather(b, "x", axis=0, tiled=True).cumsum(0)

        return region(mesh, body, P("x", None), P(), "x")(a)

    yield "a region in a region", AXES, nested, [((4, 8), ("x", "y"))]

    def nested_of_three(mesh: Any, a: Any, b: Any) -> Any:
        def inner(a: Any, b: Any) -> Any:
            return lax.psum(a @ b, "z")

        def body(a: Any, b: Any) -> Any:
            c = inside(inner, (P(None, "z"), P("z", None)), P(), "z")(a, b)
            return lax.psum(jnp.sort(c, axis=1), "x")

        return region(mesh, body, (P("x", None), P()), P(), "x")(a, b)

    yield "a region in a region, an axis left", THREE, nested_of_three, [((4, 8), ("x", "z")), ((8, 6), ("z", "y"))]

    def gradient(mesh: Any, a: Any, b: Any) -> Any:
        return jax.grad(lambda a, b: (product(mesh, a, b) ** 2).sum(), (0, 1))(a, b)

    yield "a gradient", AXES, gradient, [((8, 8), (None, "x")), ((8, 12), ("x", "y"))]

    def uneven(mesh: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            a = lax.with_sharding_constraint(jnp.concatenate([a, a[:, :3]], 1), P(None, "y"))
            return lax.psum(a.sum(1), "x") + lax.with_sharding_constraint(a[:, 1:], P(None, "y")).max()

        return region(mesh, body, P("x"), P(), "x")(a)

    yield "extents that do not divide", AXES, uneven, [((4, 4), ("x", "y"))]

    def twice(mesh: Any, a: Any) -> Any:
        first = region(mesh, lambda a: lax.psum(a, "x") * 2, P("x", None), P(), "x")(a)
        second = region(mesh, lambda a: lax.all_gather(a, "y", axis=1, tiled=True), P(None, "y"), P(), "y")(first)
        return lax.with_sharding_constraint(second + 1, NamedSharding(mesh, P("x", "y")))

    yield "two regions of other axes", AXES, twice, [((4, 8), ("x", "y"))]

    def over_two(mesh: Any, a: Any) -> Any:
        def body(a: Any) -> Any:
            total = lax.psum(a, ("x", "z"))
            return total + lax.axis_index(("z", "x")) + jnp.arange(a.shape[1], dtype=a.dtype)

        return region(mesh, body, P(("z", "x")), P(("z", "x")), ("x", "z"))(a)

    yield "two axes of three", THREE, over_two, [((8, 6), (("x", "z"), "y"))]


def main(arguments: list[str]) -> int:
    words = [each for each in arguments if not each.startswith("--")]
    if "--here" not in arguments:
        found = faults(*arguments)
        for name, fault in found.items():
            print(f"{name:50} {fault or 'equal'}")
        return int(any(found.values()))
    told: dict[str, str | None] = {}
    for name, axes, function, given in programs():
        if not words or any(word in name for word in words):
            try:
                told[name] = _fault(axes, function, given, "--gspmd" not in arguments)
            except Exception as error:
                told[name] = f"{type(error).__name__}: {error}"[:1500]
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
