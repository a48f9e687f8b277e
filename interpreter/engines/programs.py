"""The program that an engine gets: refused if real XLA cannot run it, and otherwise in spellings that the engine reads.

Sections:

    Refusal before XLA is started: some programs would hang, or end the process
    Spellings: the same program as the engine reads it
    Stand-ins for custom calls that XLA lacks and a run may not execute
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import evolve

from shape_inference import Shape, TokenShape, XbuildError, leaves
from shape_inference.elided import HINT, ElidedArray
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.editing import edit
from xbuild.properties.rewriting import mapped
from xbuild.variance.writing import readable

from ..custom_calls import certain
from .process import Failure

# ----------------------------------------------------------------------------
# Refusal before XLA is started: some programs would hang, or end the process.

_TRANSFER = "XLA:CPU has no transfers between devices or with the host"
_FEED = "jaxlib offers no call that feeds items to it, so the run would hang"
_ELEMENTARY = "XLA:CPU does not implement it"
_START = "XLA:CPU has no asynchronous form of it"

# Measured on jaxlib 0.10.2; an op that is not listed is left to XLA, and XLA's own refusal is reported.
NOT_ON_CPU = {
    **dict.fromkeys(("send", "send_done", "recv", "recv_done"), _TRANSFER),
    "infeed": _FEED,
    "outfeed": "jaxlib offers no call that takes its items, so the run would hang",
    "collective_broadcast": "XLA:CPU has no collective-broadcast",
    "ragged_all_to_all": "it crashes XLA:CPU",
    **dict.fromkeys(("copy_start", "copy_done"), _START),
    **dict.fromkeys(("mulhi", "ragged_dot", "scaled_dot"), _ELEMENTARY),
}


class EngineError(XbuildError):
    """An engine cannot run a program (`engine_unsupported`), or its process failed (`engine_failed`)."""


def refuse_unsupported(
    program: Module | ModuleGroup, platform: str | None = "cpu", *, may_skip_python: bool = False
) -> Module:
    """The program as one module that XLA may run; EngineError says why it cannot.

    With `may_skip_python`, calls of Python that a run may not execute are accepted.

    Real XLA runs one program on all devices, without values that only its own host runtime could supply or take.
    """
    if isinstance(program, ModuleGroup):
        distinct = {id(module) for module in program.modules.values()}
        raise _unsupported(
            f"{len(distinct)} programs for {program.num_devices} devices: XLA compiles one program for all devices "
            "(SPMD); different programs communicate with send and recv, which XLA:CPU does not support"
        )
    for shape, name in _boundary_leaves(program):
        if name and isinstance(shape, TokenShape):
            raise _unsupported(f"%{name} is a token, and jaxlib cannot pass a token to a program")
        if isinstance(shape, Shape) and shape.is_dynamic:
            raise _unsupported(f"{shape} has a dynamic dimension, and jaxlib does not report its size")
    skipped = {call for call in uncertain(program) if calls_python(call)} if may_skip_python else set()
    for instruction in _instructions(program):
        if instruction not in skipped and (reason := _reason(instruction, platform)):
            source = f" ({instruction.source})" if instruction.source else ""
            spelling = instruction.opcode.replace("_", "-")
            raise _unsupported(f"%{instruction.name} is {_article(spelling)} {spelling}{source}: {reason}")
    return program


def _reason(instruction: Instruction, platform: str | None) -> str | None:
    """Why XLA cannot run an instruction, or None."""
    if instruction.opcode == "custom_call" and calls_python(instruction):
        return "it calls back into the Python process that lowered the program, and XLA runs in another process"
    if instruction.opcode == "constant" and isinstance(instruction.attributes.literal, ElidedArray):
        return f"its elements are omitted from the text, so XLA would invent values; {HINT}"
    return NOT_ON_CPU.get(instruction.opcode) if platform == "cpu" else None


def _boundary_leaves(module: Module) -> Iterator[tuple[object, str]]:
    """The leaves of the parameters, each with its parameter's name, and those of the result."""
    for parameter in module.entry.parameters:
        yield from ((leaf, parameter.name) for leaf in leaves(parameter.shape))
    yield from ((leaf, "") for leaf in leaves(module.entry.root.shape))


def _instructions(module: Module) -> Iterator[Instruction]:
    return (i for computation in module.entry.reachable() for i in computation.instructions)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _unsupported(message: str) -> EngineError:
    return EngineError("engine_unsupported", f"real XLA cannot run this: {message} [engine_unsupported]")


# ----------------------------------------------------------------------------
# Spellings: the same program as the engine reads it.

GROUPS = "replica_groups"


def as_engine_reads(module: Module) -> Module:
    """The module whose text an engine reads as the same program: groups are lists of devices.

    Groups that name axes of a mesh are not passed on as they are written: XLA turns each into a mesh of its own when it
    lowers the text, and uses one of several such meshes for all.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo('''HloModule m, num_partitions=2
    ... ENTRY e { x = f32[2] parameter(0)
    ...   ROOT g = f32[4] all-gather(x), channel_id=1, replica_groups=mesh['a'=2] {'a'}, dimensions={0},
    ...     use_global_device_ids=true }''')
    >>> "replica_groups={{0,1}}" in as_engine_reads(module).to_hlo()
    True
    """
    readable_module = readable(module)
    has_spelled_groups = any(GROUPS in instruction.annotations for instruction in _instructions(readable_module))
    return mapped(readable_module, _without_spelling) if has_spelled_groups else readable_module


def _without_spelling(instruction: Instruction) -> Instruction:
    """The instruction without the note of how its groups were spelled, so that they are printed as lists."""
    if GROUPS not in instruction.annotations:
        return instruction
    annotations = {key: value for key, value in instruction.annotations.items() if key != GROUPS}
    return evolve(instruction, annotations=annotations)


# ----------------------------------------------------------------------------
# Stand-ins for custom calls that XLA lacks and a run may not execute; a stand-in fails when it is executed.

# XLA resolves every target when it compiles, and counts the results of a handler when it runs it.
_LACKED = re.compile(r"(?:untyped custom call to|No FFI handler registered for) (\S+) (?:for|on)\b")
_MISCOUNTED = "Wrong number of results"
_STAND_INS = {"lapack_spotrf_ffi": 2, "lapack_sgetrf_ffi": 3}
"""Handlers of jaxlib, each with the number of its results."""


def uncertain(module: Module) -> list[Instruction]:
    """The custom calls under a conditional, a loop or a scan, which a run may not execute."""
    every = [i for c in module.entry.reachable() for i in c.instructions if i.opcode == "custom_call"]
    needed = set(certain(module.entry))
    return [call for call in every if call not in needed]


def calls_python(call: Instruction) -> bool:
    """Whether a custom call calls back into the Python process that lowered the program."""
    return "_python_" in call.attributes.custom_call_target


def missing_targets(failure: Failure, calls: Iterable[Instruction]) -> list[Instruction]:
    """The calls whose target XLA's message reports as missing."""
    match = _LACKED.search(failure.message)
    return [call for call in calls if match and call.attributes.custom_call_target == match[1]]


def with_stand_ins(module: Module, calls: Iterable[Instruction]) -> Module:
    """The module with stand-ins for these calls: handlers of jaxlib with a different number of results."""
    with edit(module) as editor:
        for call in calls:
            count = sum(isinstance(leaf, Shape) for leaf in leaves(call.shape))
            editor.set_attributes(
                call,
                custom_call_target=next(name for name, results in _STAND_INS.items() if results != count),
                api_version="API_VERSION_TYPED_FFI",
                backend_config="",
            )
    result = editor.result
    assert isinstance(result, Module)
    return result


def executed_stand_in(failure: Failure, calls: list[Instruction]) -> str | None:
    """The refusal of the custom call whose stand-in the run executed; None if it failed for another reason."""
    if not calls or _MISCOUNTED not in failure.message:
        return None
    names = [
        f"%{call.name} to {call.attributes.custom_call_target!r}{f' ({call.source})' if call.source else ''}"
        for call in calls[:4]
    ]
    more = f" or {len(calls) - 4} more" if len(calls) > 4 else ""
    return f"the run reached a custom call that this XLA does not have: {' or '.join(names)}{more}"
