"""Runs of programs on real XLA: jaxlib compiles a program for as many CPU devices as it has, or for other devices."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from xbuild.core.graph import Module, ModuleGroup

from ..kernels.values import ArgumentError, by_device
from ..rules.limits import Limits
from ..runtime.estimates import check_bytes
from ..runtime.run import checked
from .outcomes import argument_leaves, error_of, run_job, value_of
from .process import Child, Failure, Job
from .programs import (
    EngineError,
    as_engine_reads,
    calls_python,
    executed_stand_in,
    missing_targets,
    refuse_unsupported,
    uncertain,
    with_stand_ins,
)


def execute_on_xla(
    program: Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    platform: str | None = "cpu",
    limits: Limits | None = None,
    child: Child | None = None,
) -> list[Any]:
    """Check a program, then run it on real XLA in a separate process; returns the results by device, as `execute` does.

    `platform` is one of JAX's: for the CPU there are as many devices as the program has, for others those that
    exist; None is the platform that JAX prefers. The limit of seconds includes compiling but not starting
    JAX. A custom call that XLA does not have is refused if every run reaches it, or when this run reaches it.
    The limit of bytes applies to each value and, on Linux, to all that the process uses beyond one GiB of its own.
    `child` is a process that several runs share, with at least as many devices; by default each run has its own.

    Raises Refused if the check refuses the program, before XLA is started; Stopped if a limit is reached or the user
    interrupts; EngineError if XLA cannot run the program or its process dies; ArgumentError.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute_on_xla(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]
    """
    checked(program, 0)
    module = refuse_unsupported(program, platform, may_skip_python=platform == "cpu")
    limits = limits or Limits()
    check_bytes(module, limits)
    require_jaxlib()
    rows = argument_leaves(
        [module] * module.num_devices, by_device(inputs, [len(module.entry.parameters)] * module.num_devices)
    )
    outcome = _outcome(module, rows, platform, limits, child)
    return [value_of(module.entry.root.shape, iter(device)) for device in outcome]


def execute_here(module: Module, inputs: Mapping[int, Iterable[Any]], *, platform: str | None = None) -> dict[int, Any]:
    """Check a program, then run it on the JAX runtime of this process; returns the results of its devices.

    For programs that span machines: after `jax.distributed.initialize(...)` every process calls this function with the
    same module and the arguments of its own devices, by their numbers in the program. If XLA dies, the process dies.
    Raises Refused, EngineError, ArgumentError, and what jaxlib raises.

    >>> import jax
    >>> import xbuild as xb
    >>> twice = xb.Module("twice", xb.computation(xb.f32[2])(lambda x: x + x))
    >>> execute_here(twice, {0: [[1.0, 2.5]]})
    {0: array([2., 5.], dtype=float32)}
    """
    checked(module, 0)
    refuse_unsupported(module, platform or "cpu")
    require_jaxlib()
    from . import client

    try:
        client.require()
    except (ImportError, AttributeError) as error:
        raise error_of(Failure("misfit", str(error)), Limits(), "xla", None) from None
    numbers = sorted(inputs)
    if numbers and not 0 <= numbers[0] <= numbers[-1] < module.num_devices:
        raise ArgumentError(
            "argument_mismatch",
            f"got inputs for devices {numbers}, but the program has devices 0..{module.num_devices - 1} "
            "[argument_mismatch]",
        )
    rows = argument_leaves([module] * len(numbers), [tuple(inputs[n]) for n in numbers], numbers)
    leaves = dict(zip(numbers, rows, strict=True))
    outcome = client.run_text(
        as_engine_reads(module).to_hlo(), leaves, module.num_replicas, module.num_partitions, platform
    )
    return {device: value_of(module.entry.root.shape, iter(outcome[device])) for device in sorted(outcome)}


def require_jaxlib() -> None:
    """Refuse if jaxlib is missing, and say what to install."""
    if any(importlib.util.find_spec(name) is None for name in ("jax", "jaxlib")):
        raise EngineError(
            "missing_extra",
            "real XLA needs JAX, which is not installed: pip install 'xbuild-hlo[xla]' [missing_extra]",
        )


def _outcome(
    module: Module, rows: list[list[Any]], platform: str | None, limits: Limits, child: Child | None
) -> list[list[Any]]:
    """The leaves of the results; a call that XLA reports as missing gets a stand-in, and the program is run again."""
    calls = uncertain(module) if platform == "cpu" else []
    replaced = [call for call in calls if calls_python(call)]
    while True:
        text = as_engine_reads(with_stand_ins(module, replaced) if replaced else module).to_hlo()
        job = Job(text, rows, module.num_replicas, module.num_partitions, platform)
        outcome = run_job(job, limits, child)
        if not isinstance(outcome, Failure):
            return outcome
        more = missing_targets(outcome, (call for call in calls if call not in replaced))
        if not more:
            raise error_of(outcome, limits, "xla", executed_stand_in(outcome, replaced), module)
        replaced += more
