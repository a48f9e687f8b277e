"""Programs for eight host devices in the styles that people train with, each with the verdict that it gets.

`python -m tests.jax_versions.programs` checks all of them with the JAX that is installed, and prints what differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import xbuild as xb

RING = [(n, (n + 1) % 4) for n in range(4)]
PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {}


def array(*dims: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, dtype)


def mesh(*dims: int, names: tuple[str, ...] = ("x",)) -> Mesh:
    return Mesh(np.array(jax.devices()[: int(np.prod(dims))]).reshape(dims), names)


def program(kind: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that gives a lowered program (or a module), and the kind of its verdict."""

    def registered(make: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[make.__name__] = make, kind
        return make

    return registered


def sharded(body: Callable[..., Any], *arguments: Any, grid: Mesh | None = None, spec: P | None = None) -> Any:
    """A function of shards, lowered."""
    spec = P("x") if spec is None else spec
    mapped = jax.shard_map(body, mesh=grid or mesh(4), in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped).lower(*arguments or (array(8, 4),))


def _weights(width: int) -> dict[str, Any]:
    return {"in": array(width, 4 * width), "out": array(4 * width, width), "bias": array(width)}


def _step(weights: dict[str, Any], x: Any, y: Any) -> Any:
    def loss(weights: dict[str, Any]) -> Any:
        hidden = jax.nn.gelu(x @ weights["in"]) @ weights["out"] + weights["bias"]
        return jnp.mean((hidden - y) ** 2)

    value, slopes = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, slopes), value


def _fully_sharded() -> tuple[Any, tuple[Any, ...]]:
    cut, whole = NamedSharding(mesh(8), P("x")), NamedSharding(mesh(8), P())
    shardings = {"in_shardings": (cut, cut, cut), "out_shardings": (cut, whole)}
    return jax.jit(_step, **shardings), (_weights(16), array(32, 16), array(32, 16))


@program("ok")
def fully_sharded_training() -> Any:
    step, arguments = _fully_sharded()
    return step.lower(*arguments)


@program("ok")
def fully_sharded_training_as_compiled() -> xb.Module:
    step, arguments = _fully_sharded()
    return xb.parse(step.lower(*arguments).compile().as_text())


@program("ok")
def fully_sharded_training_before_it_is_partitioned() -> xb.Module:
    step, arguments = _fully_sharded()
    return xb.from_jax(step, *arguments, partition=False)


@program("ok")
def replicated_training() -> Any:
    @partial(jax.pmap, axis_name="data")
    def step(weights: Any, x: Any, labels: Any) -> Any:
        def loss(weights: Any) -> Any:
            scores = jax.nn.log_softmax(jax.nn.relu(x @ weights["in"]) @ weights["out"])
            return -jnp.mean(jnp.sum(scores * jax.nn.one_hot(labels, 8), -1))

        value, slopes = jax.value_and_grad(loss)(weights)
        slopes = jax.lax.pmean(slopes, "data")
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, slopes), jax.lax.pmean(value, "data")

    return step.lower({"in": array(8, 16, 32), "out": array(8, 32, 8)}, array(8, 4, 16), array(8, 4, dtype=jnp.int32))


@program("ok")
def experts() -> Any:
    def layer(router: Any, up: Any, x: Any) -> Any:
        shares = jax.nn.softmax(x @ router)
        chosen = jax.nn.one_hot(jnp.argmax(shares, -1), 4)
        rank = jnp.cumsum(chosen, 0) * chosen - 1
        sent = jnp.where(((rank >= 0) & (rank < 8))[..., None], jax.nn.one_hot(rank.astype(int), 8), 0.0)
        taken = jax.lax.all_to_all(jnp.einsum("tec,td->ecd", sent, x), "x", 0, 1, tiled=True)
        given = jax.lax.all_to_all(jax.nn.relu(taken[0] @ up[0])[None], "x", 1, 0, tiled=True)
        made = jnp.einsum("tec,ecd->td", sent * jnp.sum(shares * chosen, -1)[:, None, None], given)
        return made, jax.lax.pmean(jnp.mean(shares, 0), "x")

    specs = (P(), P("x"), P("x"))
    mapped = jax.shard_map(layer, mesh=mesh(4), in_specs=specs, out_specs=(P("x"), P()))

    def step(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            y, load = mapped(*weights, x)
            return jnp.mean((y - x) ** 2) + jnp.sum(load**2)

        return jax.value_and_grad(loss)(weights)

    return jax.jit(step).lower((array(8, 4), array(4, 8, 8)), array(32, 8))


@program("ok")
def pipeline() -> Any:
    def stages(weight: Any, batches: Any) -> Any:
        stage = jax.lax.axis_index("x")

        def tick(time: Any, carried: Any) -> Any:
            state, out = carried
            fed = jnp.where(stage == 0, batches[jnp.minimum(time, 5)], state)
            made = jnp.tanh(fed @ weight[0])
            slot = time - 3
            out = jnp.where((stage == 3) & (slot >= 0), out.at[jnp.maximum(slot, 0)].set(made), out)
            return jax.lax.ppermute(made, "x", RING), out

        _, out = jax.lax.fori_loop(0, 9, tick, (jnp.zeros((2, 8)), jnp.zeros((6, 2, 8))))
        return jax.lax.psum(out, "x")

    mapped = jax.shard_map(stages, mesh=mesh(4), in_specs=(P("x"), P()), out_specs=P(), check_vma=False)
    return jax.jit(jax.grad(lambda w, b: jnp.mean(mapped(w, b) ** 2))).lower(array(4, 8, 8), array(6, 2, 8))


@program("depends")
def callbacks() -> Any:
    def step(weight: Any, ids: Any) -> Any:
        found = jax.pure_callback(lambda i: np.cos(np.asarray(i, np.float32)), array(*ids.shape), ids)
        loss = jax.lax.pmean(jnp.mean((found @ weight) ** 2), "x")
        jax.debug.print("loss {loss}", loss=loss)
        io_callback(lambda n, value: None, None, jax.lax.axis_index("x"), loss, ordered=False)
        return weight - 0.1 * jax.lax.psum(found.T @ (found @ weight), "x"), loss

    specs = {"in_specs": (P(), P("x")), "out_specs": (P(), P())}
    mapped = jax.shard_map(step, mesh=mesh(4), check_vma=False, **specs)
    return jax.jit(mapped).lower(array(16, 4), array(8, 16, dtype=jnp.int32))


@program("ok")
def callbacks_in_order() -> Any:
    def twice(x: Any) -> Any:
        for number in range(2):
            io_callback(lambda n, value: None, None, number, x.sum(), ordered=True)
        return x * 2

    return jax.jit(twice).lower(array(8))


@program("deadlock")
def sum_in_one_branch() -> Any:
    return sharded(lambda x: jax.lax.cond(jax.lax.axis_index("x") == 0, lambda: jax.lax.psum(x, "x"), lambda: x))


@program("deadlock")
def orders_that_differ() -> Any:
    def first(x: Any) -> Any:
        return jax.lax.ppermute(jax.lax.psum(x, "x") * x, "x", RING)

    def second(x: Any) -> Any:
        return jax.lax.psum(jax.lax.ppermute(x, "x", RING) * x, "x")

    return sharded(lambda x: jax.lax.cond(jax.lax.axis_index("x") < 2, first, second, x))


@program("deadlock")
def permute_of_two_of_four() -> Any:
    def some(x: Any) -> Any:
        return jax.lax.ppermute(x, "x", [(0, 1), (1, 0)])

    return sharded(lambda x: jax.lax.cond(jax.lax.axis_index("x") < 2, some, lambda x: x, x))


@program("error")
def trips_by_device() -> Any:
    def loop(x: Any) -> Any:
        return jax.lax.fori_loop(0, jax.lax.axis_index("x") + 1, lambda _, y: y + jax.lax.psum(y, "x"), x)

    return sharded(loop)


@program("depends")
def trips_by_own_data() -> Any:
    def halved(state: Any) -> Any:
        return state[0] + 1, state[1] / 2 + jax.lax.pmean(state[1], "x") * 0.1

    def is_large(state: Any) -> Any:
        return (jnp.abs(state[1]).max() > 1.0) & (state[0] < 100)

    return sharded(lambda x: jax.lax.while_loop(is_large, halved, (0, x))[1])


@program("ok")
def trips_by_data_of_all() -> Any:
    def halved(state: Any) -> Any:
        x = state[1] / 2 + jax.lax.pmean(state[1], "x") * 0.1
        return state[0] + 1, x, jax.lax.pmax(jnp.abs(x).max(), "x")

    def loop(x: Any) -> Any:
        begin = 0, x, jax.lax.pmax(jnp.abs(x).max(), "x")
        return jax.lax.while_loop(lambda s: (s[2] > 1.0) & (s[0] < 100), halved, begin)[1]

    return sharded(loop)


def _skipped(is_bad: Callable[[Any], Any], axes: Any) -> Callable[[Any], Any]:
    return lambda x: jax.lax.cond(is_bad(x), lambda y: y, lambda y: y - 0.1 * jax.lax.pmean(y, axes), x)


@program("depends")
def skipped_for_own_nan() -> Any:
    return sharded(_skipped(lambda x: jnp.isnan(x).any(), "x"))


@program("ok")
def skipped_for_any_nan() -> Any:
    return sharded(_skipped(lambda x: jax.lax.psum(jnp.isnan(x).any().astype(int), "x") > 0, "x"))


@program("depends")
def skipped_for_nan_along_one_axis() -> Any:
    skipped = _skipped(lambda x: jax.lax.psum(jnp.isnan(x).any().astype(int), "x") > 0, ("x", "y"))
    return sharded(skipped, grid=mesh(2, 2, names=("x", "y")), spec=P("x", "y"))


@program("ok")
def sum_of_a_group_that_agrees() -> Any:
    def some(x: Any) -> Any:
        return jax.lax.cond(jax.lax.axis_index("x") == 0, lambda y: jax.lax.psum(y, "y"), lambda y: y, x)

    return sharded(some, grid=mesh(2, 2, names=("x", "y")), spec=P("x", "y"))


def first_example() -> str:
    """The kind of the verdict that the command gives the first example of the README, in a process of its own."""
    command = [sys.executable, "-m", "xbuild", "check", "examples/shard_map.py:program"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).partition(":")[0]


def verdict_of(name: str) -> str:
    """The kind of a program's verdict, or what was raised before there was one."""
    try:
        made = PROGRAMS[name][0]()
        return xb.check(made if isinstance(made, xb.Module) else xb.from_jax(made)).kind
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


if __name__ == "__main__":
    expected = {"first_example": "deadlock", **{name: kind for name, (_, kind) in PROGRAMS.items()}}
    found = {"first_example": first_example(), **{name: verdict_of(name) for name in PROGRAMS}}
    wrong = {name: kind for name, kind in found.items() if kind != expected[name]}
    for name, kind in wrong.items():
        print(f"{name}: expected {expected[name]}, got {kind}")
    print(f"JAX {jax.__version__}: {len(found) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))
