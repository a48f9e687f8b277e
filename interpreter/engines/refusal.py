"""Refusal of programs that real XLA cannot run, before XLA is started: some would hang, or end the process."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import Shape, TokenShape, XbuildError, leaves
from shape_inference.elided import HINT, ElidedArray
from xbuild.core.graph import Instruction, Module, ModuleGroup

from .untaken import calls_python, uncertain

_TRANSFER = "XLA:CPU has no transfers between devices or with the host"
_FEED = "jaxlib has no call that feeds it, so that it would wait for ever"
_ELEMENTARY = "XLA:CPU does not implement it"
_START = "XLA:CPU has no asynchronous form of it"

# Measured on jaxlib 0.10.2; an op that is not listed is left to XLA, and XLA's own refusal is reported.
NOT_ON_CPU = {
    **dict.fromkeys(("send", "send_done", "recv", "recv_done"), _TRANSFER),
    "infeed": _FEED,
    "outfeed": "jaxlib has no call that takes its items, so that it would wait for ever",
    "collective_broadcast": "XLA:CPU has no collective-broadcast",
    "ragged_all_to_all": "XLA:CPU dies of it",
    **dict.fromkeys(("copy_start", "copy_done"), _START),
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "mulhi"), _ELEMENTARY),
    **dict.fromkeys(("ragged_dot", "scaled_dot"), _ELEMENTARY),
}


class EngineError(XbuildError):
    """An engine cannot run a program (`engine_unsupported`), or its process failed (`engine_failed`)."""


def refuse_unsupported(
    program: Module | ModuleGroup, platform: str | None = "cpu", *, may_leave_out: bool = False
) -> Module:
    """The program as one module that XLA may run; EngineError says why it cannot.

    With `may_leave_out`, calls of Python that a run may not execute are accepted.

    Real XLA runs one program on all devices, without values that only its own host runtime could give or take.
    """
    if isinstance(program, ModuleGroup):
        alike = {id(module) for module in program.modules.values()}
        raise _unsupported(
            f"{len(alike)} programs for {program.num_devices} devices: XLA compiles one program for all of them "
            "(SPMD), and programs that differ meet in sends and receives, which XLA:CPU does not have"
        )
    for shape, name in _borders(program):
        if name and isinstance(shape, TokenShape):
            raise _unsupported(f"%{name} is a token, and jaxlib has no value that could be given for it")
        if isinstance(shape, Shape) and shape.is_dynamic:
            raise _unsupported(f"{shape} has a dynamic dimension, and jaxlib does not tell how much of it is in use")
    left_out = {call for call in uncertain(program) if calls_python(call)} if may_leave_out else set()
    for instruction in _instructions(program):
        if instruction not in left_out and (reason := _reason(instruction, platform)):
            source = f" ({instruction.source})" if instruction.source else ""
            spelling = instruction.opcode.replace("_", "-")
            raise _unsupported(f"%{instruction.name} is {_article(spelling)} {spelling}{source}: {reason}")
    return program


def _reason(instruction: Instruction, platform: str | None) -> str | None:
    """Why XLA cannot run an instruction, or None."""
    if instruction.opcode == "custom_call" and calls_python(instruction):
        return "it calls back into the process of Python that lowered it, which XLA would look for where it runs"
    if instruction.opcode == "constant" and isinstance(instruction.attributes.literal, ElidedArray):
        return f"its elements are left out of the text, and XLA would make some up; {HINT}"
    return NOT_ON_CPU.get(instruction.opcode) if platform == "cpu" else None


def _borders(module: Module) -> Iterator[tuple[object, str]]:
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
