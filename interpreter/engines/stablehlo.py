"""Runs of programs on StableHLO's reference interpreter, which jaxlib has: each device is a thread of its process."""

from __future__ import annotations

import importlib.util
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shape_inference import Shape, TokenShape, leaves
from shape_inference.elided import HINT, ElidedArray
from xbuild.checking.model.program import grid_of
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.editing import edit
from xbuild.properties.device_groups import count_of_ids
from xbuild.properties.effects import COLLECTIVES, TRANSFERS

from ..kernels.values import by_device
from ..rules.limits import Limits
from ..runtime.estimates import check_bytes
from ..runtime.run import checked, modules_of
from .outcomes import NAMES, argument_leaves, error_of, run_job, value_of
from .process import Failure, Job
from .programs import EngineError, as_engine_reads
from .reference import DEVICE_BREAK

_FED = "the reference interpreter has no infeed"
_HOST = "the reference interpreter has no transfers with the host"
_CROWDED = (
    "its channel connects more than two devices, but the reference interpreter identifies a transfer only by its "
    "channel"
)

_MEETINGS = {*COLLECTIVES, *TRANSFERS}

# What the process says when it ends itself, and the sentence for the user.
_ENDS = (
    (re.compile(r"Operation (\S+) is unsupported at the moment"), r"it does not implement \1"),
    (re.compile(r"Unsupported op: (?:%\S+ = )?\"?([\w.]+)\"?(?: (@\S+?)\()?"), r"it does not implement \1 \2"),
    (re.compile(r"Failed to find process group"), r"a device that belongs to no replica group reaches a collective"),
    (
        re.compile(r"(rendezvous|send|recv) timed out"),
        r"a device waited three seconds for other devices (\1 timed out)",
    ),
)


def execute_on_stablehlo(
    program: Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    limits: Limits | None = None,
) -> list[Any]:
    """Check a program, then run it as StableHLO on the reference interpreter of jaxlib, in a separate process.

    Returns the results by device, as `execute` does. Replicas and partitions are threads of one run; a module group has
    a program for each. Denormal numbers are kept. The limits of seconds and bytes apply as for real XLA.

    Raises Refused if the check refuses the program, before the process is started; Stopped if a limit is reached or the
    user interrupts; EngineError if StableHLO lacks an op of the program, the reference interpreter does not
    implement one, or its process dies; ArgumentError.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute_on_stablehlo(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]
    """
    checked(program, 0)
    modules, limits = modules_of(program), limits or Limits()
    for module in dict.fromkeys(modules):
        _refuse_unsupported(module)
        check_bytes(module, limits)
    _refuse_crowded(modules)
    _refuse_many(modules)
    _require_jaxlib()
    num_replicas, num_partitions, is_own = grid_of(program)
    texts = {
        module: _with_groups(as_engine_reads(module), num_replicas, num_partitions, is_own).to_stablehlo()
        for module in dict.fromkeys(modules)
    }
    written = texts.values() if len(texts) == 1 else (texts[module] for module in modules)
    rows = argument_leaves(modules, by_device(inputs, [len(module.entry.parameters) for module in modules]))
    outcome = run_job(Job(DEVICE_BREAK.join(written), rows, num_replicas, num_partitions, engine="stablehlo"), limits)
    if isinstance(outcome, Failure):
        raise error_of(outcome, limits, "stablehlo", _cause_of_death(outcome))
    return [value_of(m.entry.root.shape, iter(device)) for m, device in zip(modules, outcome, strict=True)]


def _require_jaxlib() -> None:
    """Refuse if jaxlib is missing, and say what to install."""
    if importlib.util.find_spec("jaxlib") is None:
        raise EngineError(
            "missing_extra",
            f"{NAMES['stablehlo']} needs jaxlib, which is not installed: pip install 'xbuild-hlo[xla]' [missing_extra]",
        )


def _refuse_unsupported(module: Module) -> None:
    """Refuse values that cannot be passed to the process, and waits for what it does not have."""
    for parameter in module.entry.parameters:
        if any(isinstance(leaf, TokenShape) for leaf in leaves(parameter.shape)):
            raise _unsupported(f"%{parameter.name} is a token, which cannot be passed to the process")
    for instruction in (*module.entry.parameters, module.entry.root):
        for leaf in leaves(instruction.shape):
            if isinstance(leaf, Shape) and leaf.is_dynamic:
                raise _unsupported(f"{leaf} has a dynamic dimension, and the process would not receive its size")
    for instruction in _instructions(module):
        if reason := _reason(instruction):
            raise _unsupported(f"{_named(instruction)}: {reason}")


def _reason(instruction: Instruction) -> str | None:
    """Why the reference interpreter cannot run an instruction, if it would not say so itself."""
    if instruction.opcode == "infeed":
        return _FED
    if instruction.opcode in ("send", "recv") and instruction.attributes.is_host_transfer:
        return _HOST
    if instruction.opcode == "constant" and isinstance(instruction.attributes.literal, ElidedArray):
        return f"its elements are omitted from the text; {HINT}"
    return None


def _refuse_crowded(modules: list[Module]) -> None:
    """Refuse a send or recv on whose channel several devices send or several receive."""
    ends: Counter[tuple[str, Any]] = Counter()
    for module in modules:
        used = {(i.opcode, i.attributes.channel_id): i for i in _instructions(module) if i.opcode in ("send", "recv")}
        for end, instruction in used.items():
            ends[end] += 1
            if ends[end] > 1:
                raise _unsupported(f"{_named(instruction)}: {_CROWDED}")


def _refuse_many(modules: list[Module]) -> None:
    """Refuse communicating devices if more than run at a time; those that wait would block the others."""
    meet = next((i for m in dict.fromkeys(modules) for i in _instructions(m) if i.opcode in _MEETINGS), None)
    at_a_time = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if meet is not None and len(modules) > at_a_time:
        raise _unsupported(
            f"{_named(meet)} needs {len(modules)} devices at the same time, but the reference interpreter runs only "
            f"{at_a_time} at a time, one for each processor of this machine"
        )


def _with_groups(module: Module, num_replicas: int, num_partitions: int, is_own: bool) -> Module:
    """The module with explicit groups of all devices, since StableHLO does not read missing groups as all devices."""
    ungrouped = [i for i in _instructions(module) if getattr(i.attributes, "replica_groups", None) == ()]
    if not ungrouped:
        return module
    with edit(module) as editor:
        for collective in ungrouped:
            ids = tuple(range(count_of_ids(collective, num_replicas, num_partitions, is_own)))
            editor.set_attributes(collective, replica_groups=(ids,))
    result = editor.result
    assert isinstance(result, Module)
    return result


def _instructions(module: Module) -> Iterator[Instruction]:
    return (i for computation in module.entry.reachable() for i in computation.instructions)


def _named(instruction: Instruction) -> str:
    source = f" ({instruction.source})" if instruction.source else ""
    return f"%{instruction.name}, {instruction.opcode.replace('_', '-')}{source}"


def _cause_of_death(failure: Failure) -> str | None:
    """The reason for which the process ended itself, if it is known."""
    for pattern, reason in _ENDS:
        if match := pattern.search(failure.message):
            return match.expand(reason).rstrip()
    return None


def _unsupported(message: str) -> EngineError:
    return EngineError("engine_unsupported", f"{NAMES['stablehlo']} cannot run this: {message} [engine_unsupported]")
