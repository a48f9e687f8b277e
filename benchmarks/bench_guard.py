"""The guard's share of compilation and of start-up: CPU milliseconds of JAX with the guard and without it.

Compilation is measured in one child process, in which turns with and without the guard alternate. Each turn lowers the
program again, which is not measured, and compiles it. Start-up is the CPU time of processes that run one small program.
The first turn of each, in which modules are imported, counts for start-up only.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

if __name__ != "__main__":
    from benchmarks.conftest import Row

PROGRAMS = ("mnist mlp", "spmd, 8 devices", "fsdp, 8 devices", "scan, 8 devices")
TURNS = 15
ROOT = Path(__file__).parents[1]
SMALL = "import jax; jax.jit(lambda x: x)(1)"
MEETS = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, numpy as np
mesh = jax.sharding.Mesh(jax.devices(), ("d",))
spec = jax.sharding.PartitionSpec("d")
step = jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=spec, out_specs=jax.sharding.PartitionSpec())
jax.jit(step)(np.ones(8))
"""
SCRIPTS = {"import jax; jax.jit(lambda x: x)(1)": SMALL, "a psum over 8 devices": MEETS}


def _environment(guard: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XBUILD_GUARD", "XLA_FLAGS"))}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", **({"XBUILD_GUARD": guard} if guard else {})}


def _cpu_of_process(script: str, guard: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", script], env=_environment(guard), check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", SCRIPTS)
def test_start_up(rows: list[Row], name: str) -> None:
    pytest.importorskip("jax")
    seconds: dict[str, list[float]] = {"": [], "stop": []}
    for turn in range(-1, 7):
        for guard in seconds if turn % 2 else reversed(seconds):
            spent = _cpu_of_process(SCRIPTS[name], guard)
            seconds[guard] += [spent] * (turn >= 0)
    ours, reference = (1e3 * statistics.median(seconds[guard]) for guard in ("stop", ""))
    rows.append(Row(f"start-up, guarded: {name}", ours, reference, "ms"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_compilation(rows: list[Row], name: str) -> None:
    pytest.importorskip("jax")
    command = [sys.executable, str(Path(__file__)), name]
    done = subprocess.run(command, env=_environment(""), check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    rows.append(Row(f"compilation, guarded: {name}", found["guarded"], found["alone"], "ms"))


# ----------------------------------------------------------------------------
# The child process: compiles one program with and without the guard, in turn


def _mlp(jax: Any, shapes: Any, size: int, batch: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    jnp = jax.numpy

    def loss(params: Any, x: Any, y: Any) -> Any:
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        logits = x @ params[-1][0] + params[-1][1]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, axis=-1))

    def step(params: Any, momentum: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum, value

    sizes = [size, 512, 512, 16]
    params = [(shapes(a, b), shapes(b)) for a, b in pairwise(sizes)]
    return step, (params, params, shapes(batch, size), shapes(batch, 16))


def _program(jax: Any, name: str) -> Callable[[], Any]:
    """What lowers the program anew."""
    jnp, lax = jax.numpy, jax.lax
    spec = jax.sharding.PartitionSpec

    def shapes(*dims: int) -> Any:
        return jax.ShapeDtypeStruct(dims, jnp.float32)

    if name == "mnist mlp":
        step, arguments = _mlp(jax, shapes, 784, 128)
        return lambda: jax.jit(step).lower(*arguments)
    mesh = jax.sharding.Mesh(jax.devices(), ("d",))
    if name.startswith("spmd"):
        step, arguments = _mlp(jax, shapes, 784, 128)
        rows, every = jax.sharding.NamedSharding(mesh, spec("d")), jax.sharding.NamedSharding(mesh, spec())
        return lambda: jax.jit(step, in_shardings=(every, every, rows, rows), out_shardings=every).lower(*arguments)

    def layer(x: Any, weight: Any) -> Any:
        return jnp.tanh(x @ lax.all_gather(weight, "d", tiled=True))

    def fsdp(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            y = x
            for weight in weights:
                y = layer(y, weight)
            return (y**2).mean()

        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), lax.pmean(value, "d")

    def scanned(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            return (lax.scan(lambda y, weight: (layer(y, weight), None), x, weights)[0] ** 2).mean()

        value, gradients = jax.value_and_grad(loss)(weights)
        return weights - 0.1 * gradients, lax.pmean(value, "d")

    if name.startswith("fsdp"):
        run, weights, split = fsdp, [shapes(256, 256)] * 6, spec("d")
    else:
        run, weights, split = scanned, shapes(6, 256, 256), spec(None, "d")
    mapped = jax.shard_map(run, mesh=mesh, in_specs=(split, spec("d")), out_specs=(split, spec()))
    return lambda: jax.jit(mapped).lower(weights, shapes(64, 256))


def measure(name: str) -> dict[str, float]:
    """The median CPU milliseconds of a compilation with the guard and without it."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={1 if name == 'mnist mlp' else 8}"
    import jax

    import xbuild as xb

    lower = _program(jax, name)
    seconds: dict[str, list[float]] = {"guarded": [], "alone": []}
    for turn in range(-1, TURNS):
        for way in seconds if turn % 2 else reversed(seconds):
            jax.clear_caches()
            lowered = lower()
            gc.collect()
            if way == "guarded":
                xb.guard.install("stop")
                jax.jit(lambda x: x + 1).lower(1.0).compile()  # registers the hook, once for each process
            begin = time.process_time()
            lowered.compile()
            spent = time.process_time() - begin
            if way == "guarded":
                xb.guard.uninstall()
            seconds[way] += [spent] * (turn >= 0)
    return {way: 1e3 * statistics.median(each) for way, each in seconds.items()}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
