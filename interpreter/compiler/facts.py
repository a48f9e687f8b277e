"""Analyses of a computation before code generation: effects, live instructions, size when written out."""

from __future__ import annotations

from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes
from xbuild.properties.effects import COLLECTIVES, communicates_anywhere, has_side_effect

__all__ = [
    "COLLECTIVES",
    "as_module",
    "communicates",
    "depends_on_device",
    "largest_buffer",
    "live",
    "weight",
    "yields_request",
]


def yields_request(instruction: Instruction) -> bool:
    """Whether an instruction or one of its callees yields a request: to other devices, the host or a custom call."""
    if communicates_anywhere(instruction) or instruction.opcode == "custom_call":
        return True
    return any(map(communicates, instruction.called))


@remembered
def communicates(computation: Computation) -> bool:
    """Whether a run of a computation may yield a request to the grid."""
    return any(map(yields_request, computation.instructions))


OF_DEVICE = opcodes(lambda op: op.depends_on in ("device", "random_state"))


@remembered
def depends_on_device(computation: Computation) -> bool:
    """Whether a computation uses the ids or the random state of the device."""
    return any(i.opcode in OF_DEVICE or any(map(depends_on_device, i.called)) for i in computation.instructions)


@remembered
def advances_state(computation: Computation) -> bool:
    """Whether a run of a computation advances the random state of the device."""
    return any(map(_advances_state, computation.instructions))


def _advances_state(instruction: Instruction) -> bool:
    return instruction.opcode == "rng_get_and_update_state" or any(map(advances_state, instruction.called))


def _has_effect(instruction: Instruction) -> bool:
    """Whether an instruction must run even if its result is not used."""
    if communicates_anywhere(instruction) or has_side_effect(instruction):
        return True
    return any(map(has_effects, instruction.called))


@remembered
def has_effects(computation: Computation) -> bool:
    """Whether a run of a computation has an effect that other devices or the host can observe."""
    return any(map(_has_effect, computation.instructions))


@remembered
def weight(computation: Computation) -> int:
    """The number of instructions of a computation with every call inlined, up to a million."""
    inner = sum(weight(called) for i in computation.instructions for called in i.called)
    return min(len(computation.instructions) + inner, 1_000_000)


@remembered
def live(computation: Computation) -> frozenset[Instruction]:
    """The instructions that the root or an effect needs; the others are not evaluated."""
    stack = [computation.root, *(i for i in computation.instructions if _has_effect(i) or _advances_state(i))]
    found: set[Instruction] = set()
    while stack:
        instruction = stack.pop()
        if instruction not in found:
            found.add(instruction)
            stack += instruction.operands
    return frozenset(found)


@remembered
def as_module(computation: Computation) -> Module:
    """The computation as the program of one device."""
    return Module(computation.name, computation)


_VIEWS = opcodes(lambda op: op.is_view and op.half == "none")


@remembered
def largest_buffer(computation: Computation) -> Instruction:
    """The instruction whose value takes the most memory, callees included; a view takes none."""
    candidates = [i for called in computation.reachable() for i in called.instructions if i.opcode not in _VIEWS]
    return max([computation.root, *candidates], key=lambda i: i.shape.bytes)


MOST_BYTES = 2**63 - 1
"""The most bytes that NumPy can address; a larger view cannot be made, though a view takes no memory."""


@remembered
def largest_value(computation: Computation) -> Instruction:
    """The instruction whose value has the most bytes, callees and views included."""
    every = (i for called in computation.reachable() for i in called.instructions)
    return max(every, key=lambda i: i.shape.bytes)
