"""What the engines share: arguments as leaves, a job in a child process, its failures as errors, results as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import AnyShape, TokenShape, TupleShape
from xbuild.core.graph import Module
from xbuild.files.results import leaf_values

from ..rules.limits import Limits
from ..runtime.report import Report, Stopped
from ..runtime.run import read_all
from .process import Child, Failure, Job, Outcome
from .refusal import EngineError
from .wording import in_words

NAMES = {"xla": "real XLA", "stablehlo": "StableHLO's reference interpreter"}
"""What messages call each engine."""

_NO_MEMORY = ("RESOURCE_EXHAUSTED", "MemoryError", "bad_alloc", "Out of memory", "Cannot allocate memory")


def argument_leaves(
    modules: Sequence[Module], rows: Sequence[tuple[Any, ...]], numbers: Sequence[int] | None = None
) -> list[list[Any]]:
    """The leaves of the arguments of each device, converted as the interpreter converts arguments."""
    found = read_all(list(modules), list(rows), numbers)
    return [
        [
            np.asarray(leaf)
            for value, parameter in zip(row, module.entry.parameters, strict=True)
            for leaf, _ in leaf_values(value, parameter.shape)
        ]
        for module, row in zip(modules, found, strict=True)
    ]


def run_job(job: Job, limits: Limits) -> Outcome:
    """Run a job in a child process of its own."""
    try:
        with Child(job.num_replicas * job.num_partitions, job.platform, limits.bytes, job.engine) as child:
            return child.run(job, limits.seconds)
    except KeyboardInterrupt:
        what = f"interrupted from outside, while {NAMES[job.engine]} ran"
        raise Stopped(Report("interrupted", what)) from None


def failed(failure: Failure, limits: Limits, engine: str, told: str | None, module: Module | None = None) -> Exception:
    """The error for a job without results; `told` is why the engine cannot run the program, where that is known, and
    `module` has the instructions that the message of real XLA may name."""
    name = NAMES[engine]
    if failure.kind == "late":
        return Stopped(Report("limit_seconds", f"the limit of {limits.seconds} seconds is over, while {name} ran"))
    if limits.bytes is not None and any(each in failure.message for each in _NO_MEMORY):
        message = f"{name} wants more memory than the limit of {limits.bytes:,} bytes: {failure.message}"
        return Stopped(Report("limit_bytes", message))
    if told:
        return EngineError("engine_unsupported", f"{name} cannot run this: {told} [engine_unsupported]")
    if failure.kind == "died":
        return EngineError("engine_failed", f"{name} failed: {failure.message} [engine_failed]")
    sentence, _, own = in_words(failure.message, module).partition("\n") if module else (failure.message, "", "")
    told = f"{name} refuses this: {sentence} [engine_unsupported]"
    return EngineError("engine_unsupported", f"{told}\n{own}" if own else told)


def value_of(shape: AnyShape, leaves: Iterator[Any]) -> Any:
    """The value of this shape, as the interpreter gives it, made of its leaves."""
    if isinstance(shape, TupleShape):
        return tuple(value_of(element, leaves) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    array = np.asarray(next(leaves))
    if not array.ndim:
        return array[()]
    return array if array.flags.writeable and array.base is None else array.copy()
