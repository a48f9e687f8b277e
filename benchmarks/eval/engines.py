"""How each engine prepares a program of `workloads.py` or `models.py`: each returns a function that runs it once.

A child process has one engine. This folder is on its path, and `PYTHONPATH` says which tree's `xbuild` it imports.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import workloads

MODELS = ("gpt", "resnet")
NAMES = (*workloads.REG, *(f"train_{model}" for model in MODELS))

STEP_TOLERANCE = 0.04
"""The tolerance of an f32 training step: XLA differs from the f64 step by up to 0.025, xbuild by 0.0096."""


def program(name: str, scale: str = "full") -> dict[str, Any]:
    """A workload by name, at a scale (full or small); a training step has one size, and no NumPy form."""
    if not name.startswith("train_"):
        return workloads.make(name, scale)
    import jax
    import models

    step, arguments = getattr(models, name.removeprefix("train_"))()
    leaves, structure = jax.tree.flatten(arguments)
    leaves = [np.asarray(leaf) for leaf in leaves]
    flat = lambda *given: jax.tree.leaves(step(*jax.tree.unflatten(structure, given)))  # noqa: E731
    return {"inputs": leaves, "np": None, "jax": flat, "replicas": 1, "inner": 1, "tol": STEP_TOLERANCE}


def lowered(given: dict[str, Any]) -> str:
    """The HLO text of a workload, as JAX lowers it."""
    import jax
    from jax._src.lib import xla_client

    inputs = given["inputs"]
    if given["replicas"] > 1:
        inputs = [each[0] for each in inputs]
    text = given.get("mlir") or jax.jit(given["jax"], keep_unused=True).lower(*inputs).as_text()
    text = given.get("mlir_fix", str)(text)
    computation = xla_client._xla.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    return str(computation.as_hlo_text(True))


def by_numpy(given: dict[str, Any], text: str) -> Callable[[], list[Any]] | None:
    function, inputs = given["np"], given["inputs"]
    return None if function is None else lambda: list(function(*inputs))


def by_xbuild(given: dict[str, Any], text: str) -> Callable[[], list[Any]]:
    import interpreter
    import xbuild as xb

    module, inputs, replicas = xb.parse_hlo(text), given["inputs"], given["replicas"]
    if replicas == 1:
        return lambda: _leaves(interpreter.evaluate(module.entry, *inputs))
    module = xb.Module(module.name, module.entry, num_replicas=replicas)
    rows = [[each[device] for each in inputs] for device in range(replicas)]
    return lambda: _stacked(interpreter.execute(module, rows))


def by_auto(given: dict[str, Any], text: str) -> Callable[[], list[Any]]:
    """xbuild with the engine auto, after as many runs as it takes to choose."""
    import interpreter
    import xbuild as xb
    from interpreter.auto import choice_of

    module, inputs, replicas = xb.parse_hlo(text), given["inputs"], given["replicas"]
    if replicas == 1:
        program: Any = module.entry
        run = lambda: _leaves(interpreter.evaluate(program, *inputs, engine="auto"))  # noqa: E731
    else:
        program = xb.Module(module.name, module.entry, num_replicas=replicas)
        rows = [[each[device] for each in inputs] for device in range(replicas)]
        run = lambda: _stacked(interpreter.execute(program, rows, engine="auto"))  # noqa: E731
    choice, end = choice_of(program, "auto"), time.monotonic() + MOST_SECONDS
    while choice.state == "counting" and time.monotonic() < end:
        run()
    sys.stderr.write("".join(f"  {line}\n" for line in choice.lines()))
    return run


MOST_SECONDS = 60
"""The seconds after which a workload is measured even if the engine auto still counts runs."""


def _stacked(results: list[Any]) -> list[Any]:
    """The results of all devices, as a list for each device; stacked for comparison."""
    return [list(each) for each in zip(*map(_leaves, results), strict=True)]


def by_xla(given: dict[str, Any], text: str) -> Callable[[], list[Any]]:
    import jax

    function, inputs = given["jax"], given["inputs"]
    if given["replicas"] == 1:
        compiled = jax.jit(function, keep_unused=True).lower(*inputs).compile()
    else:  # the marker of a workload stands for a sum over all replicas
        barrier, jax.lax.optimization_barrier = jax.lax.optimization_barrier, lambda x: jax.lax.psum(x, "replica")
        compiled = jax.pmap(function, axis_name="replica").lower(*inputs).compile()
        jax.lax.optimization_barrier = barrier
        inputs = jax.pmap(lambda *each: each)(*inputs)
    return lambda: _leaves(jax.block_until_ready(compiled(*inputs)))


def by_jax(given: dict[str, Any], text: str) -> Callable[[], list[Any]] | None:
    """JAX without jit: each op is dispatched separately; not for replicas."""
    import jax

    function, inputs = given["jax"], [jax.numpy.asarray(each) for each in given["inputs"]]
    if given["replicas"] > 1:
        return None
    return lambda: _leaves(jax.block_until_ready(function(*inputs)))


def by_stablehlo(given: dict[str, Any], text: str) -> Callable[[], list[Any]] | None:
    """StableHLO's reference interpreter in jaxlib, on a parsed module; not for replicas, which are its threads."""
    if given["replicas"] > 1:
        return None
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    import xbuild as xb
    from interpreter.engines import reference

    with reference.context(), ir.Location.unknown():
        module, function, _ = reference._assemble([xb.parse_hlo(text).to_stablehlo()], 1, 1)
        inputs = [
            reference._attribute(np.asarray(x), wire) for x, wire in zip(given["inputs"], function.inputs, strict=True)
        ]
    return lambda: [np.array(result) for result in stablehlo.eval_module(module, inputs)]


def by_evaluator(given: dict[str, Any], text: str) -> Callable[[], list[Any]] | None:
    """XLA's HloEvaluator, as the interpreter client of jaxlib 0.4.13 runs it; not for replicas."""
    if given["replicas"] > 1:
        return None
    from jaxlib import xla_client

    client = xla_client.make_interpreter_client()
    proto = xla_client._xla.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    lowered = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(proto))
    executable = client.compile(lowered, xla_client.CompileOptions())
    inputs = [client.buffer_from_pyval(np.asarray(each)) for each in given["inputs"]]
    return lambda: [each._single_device_array_to_np_array() for each in executable.execute(inputs)]


def _leaves(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, tuple | list) else [value]


ENGINES = {
    "numpy": by_numpy, "xbuild": by_xbuild, "auto": by_auto, "xla": by_xla, "jax": by_jax,
    "stablehlo": by_stablehlo, "evaluator": by_evaluator,
}  # fmt: skip
