"""What the engines share: a job in a child process, its failures as errors, and its results as values.

Sections:

    Messages of real XLA as sentences
    Arguments, jobs, errors and results
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape, TokenShape
from shape_inference.trees import map_leaves
from xbuild.core.graph import Instruction, Module
from xbuild.files.arrays import leaf_values

from ..rules.limits import Limits
from ..runtime.report import Report, Stopped
from ..runtime.run import read_all
from .process import Child, Failure, Job, Outcome
from .programs import EngineError

# ----------------------------------------------------------------------------
# Messages of real XLA as sentences that name the instruction, followed by XLA's own text.

_STATUS = {
    "UNIMPLEMENTED": "this build of XLA does not implement an op or a feature of the program",
    "INVALID_ARGUMENT": "XLA rejects the program or one of its arguments",
    "INTERNAL": "an internal check of XLA failed while it compiled or ran the program",
    "NOT_FOUND": "XLA cannot find something that the program refers to, such as the function of a custom call",
    "FAILED_PRECONDITION": "XLA is in a state in which it cannot run the program",
    "RESOURCE_EXHAUSTED": "XLA does not have enough memory",
    "OUT_OF_RANGE": "an index or a size in the program is outside the range that XLA allows",
    "DEADLINE_EXCEEDED": "XLA waited too long, for example for a device that did not reach a collective",
    "ABORTED": "XLA aborted the run",
    "CANCELLED": "XLA cancelled the run",
    "UNAVAILABLE": "a device or a process that XLA needs cannot be reached",
    "UNKNOWN": "XLA states no specific reason",
}
"""The status codes of XLA (absl/status/status.h), in words."""

_CODE = re.compile(rf"\b({'|'.join(_STATUS)})\b:?\s*")
_CLASS = re.compile(r"^(?:[\w.]*(?:Error|Exception)): ")
_CONTEXT = re.compile(r"during context \[[^\]]*\]:?\s*|(?<!\s)\s*+\(external/[^()]*+\)")
_MOST = 600
"""The greatest number of characters of XLA's own text."""


def sentence_of(message: str, module: Module) -> str:
    """A message of XLA as a sentence, the instruction that it names with the user's line, and XLA's own text."""
    code = _CODE.search(message)
    sentence = _STATUS[code[1]] if code else "XLA raised an error without a status"
    named = _named(message, module)
    where = f"; it names %{named.name} ({_place(named)})" if named is not None else ""
    own = _CONTEXT.sub("", _CODE.sub("", _CLASS.sub("", message), count=1)).strip()
    own = f"{own[:_MOST]}..." if len(own) > _MOST else own
    return f"{sentence}{where}\n  XLA says: {own}"


def _named(message: str, module: Module) -> Instruction | None:
    """The first instruction of the module whose name is in the message."""
    words = {word.rstrip(".") for word in re.findall(r"[\w.-]+", message)}
    instructions = [i for computation in reversed(module.computations) for i in computation.instructions]
    return next((i for i in instructions if i.name in words and _is_distinct(i)), None)


def _is_distinct(instruction: Instruction) -> bool:
    """Whether a name is not an ordinary word of messages, such as `add` or `x`."""
    return len(instruction.name) > 1 and any(sign in instruction.name for sign in "._0123456789")


def _place(instruction: Instruction) -> str:
    spelling = instruction.opcode.replace("_", "-")
    return f"{spelling}, {instruction.source}" if instruction.source else spelling


# ----------------------------------------------------------------------------
# Arguments as leaves, a job in a child process, its failures as errors, its results as values.

NAMES = {"xla": "real XLA", "stablehlo": "StableHLO's reference interpreter"}
"""What messages call each engine."""

OLDEST = {"xla": "0.6", "stablehlo": "0.7"}
"""The oldest jaxlib that has what each engine needs."""

TESTED = ("0.6.2", "0.8.1", "0.10.2", "0.12.0.1")
"""The versions of jaxlib that the engines are tested with."""

_NO_MEMORY = ("RESOURCE_EXHAUSTED", "MemoryError", "bad_alloc", "Out of memory", "Cannot allocate memory")


def argument_leaves(
    modules: Sequence[Module], rows: Sequence[tuple[Any, ...]], numbers: Sequence[int] | None = None
) -> list[list[Any]]:
    """The leaves of the arguments of each device, converted as the interpreter converts arguments."""
    arguments = read_all(list(modules), list(rows), numbers)
    return [
        [
            np.asarray(leaf)
            for value, parameter in zip(row, module.entry.parameters, strict=True)
            for leaf, _ in leaf_values(value, parameter.shape)
        ]
        for module, row in zip(modules, arguments, strict=True)
    ]


def run_job(job: Job, limits: Limits, child: Child | None = None) -> Outcome:
    """Run a job in this child process, or in one of its own."""
    try:
        if child is not None:
            return child.run(job, limits.seconds)
        with Child(job.num_replicas * job.num_partitions, job.platform, limits.bytes, job.engine) as child:
            return child.run(job, limits.seconds)
    except KeyboardInterrupt:
        message = f"interrupted while {NAMES[job.engine]} ran"
        raise Stopped(Report("interrupted", message)) from None


def error_of(
    failure: Failure, limits: Limits, engine: str, reason: str | None, module: Module | None = None
) -> Exception:
    """The error for a job without results; `reason` is why the engine cannot run the program, if that is known, and
    `module` has the instructions that the message of real XLA may name."""
    name = NAMES[engine]
    if failure.kind == "late":
        return Stopped(Report("limit_seconds", f"the limit of {limits.seconds} seconds was reached while {name} ran"))
    if limits.bytes is not None and any(text in failure.message for text in _NO_MEMORY):
        message = f"{name} needs more memory than the limit of {limits.bytes:,} bytes: {failure.message}"
        return Stopped(Report("limit_bytes", message))
    if failure.kind == "misfit":
        return EngineError("missing_extra", f"{name} {_needs(engine)}: {failure.message} [missing_extra]")
    if reason:
        return EngineError("engine_unsupported", f"{name} cannot run this: {reason} [engine_unsupported]")
    if failure.kind == "died":
        return EngineError("engine_failed", f"{name} failed: {failure.message} [engine_failed]")
    sentence, _, own = sentence_of(failure.message, module).partition("\n") if module else (failure.message, "", "")
    message = f"{name} refuses this: {sentence} [engine_unsupported]"
    return EngineError("engine_unsupported", f"{message}\n{own}" if own else message)


def _needs(engine: str) -> str:
    """Which jaxlib an engine needs, and which is installed."""
    required = f"jaxlib {OLDEST[engine]} or newer (tested: {', '.join(TESTED)})"
    return f"needs internals of {required}, but jaxlib {version('jaxlib')} is installed"


def value_of(shape: AnyShape, leaves: Iterator[Any]) -> Any:
    """The value of this shape, as the interpreter returns it, from its leaves."""

    def value(leaf: Shape | TokenShape) -> Any:
        if isinstance(leaf, TokenShape):
            return None
        array = np.asarray(next(leaves))
        if not array.ndim:
            return array[()]
        return array if array.flags.writeable and array.base is None else array.copy()

    return map_leaves(value, shape)
