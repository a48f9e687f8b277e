"""Values that cannot be are refused before anything runs."""

from __future__ import annotations

from collections.abc import Iterable

from xbuild.graph import Computation, Instruction, Module

from .limits import Limits
from .report import Stopped, too_large

_VIEWS = frozenset({"parameter", "constant", "broadcast", "reshape", "transpose", "reverse", "slice", "tuple", "get_tuple_element"})


def check_bytes(modules: Iterable[Module], limits: Limits) -> None:
    """Raise Stopped where an instruction's value alone is more than the limit of bytes."""
    if limits.bytes is None:
        return
    for module in {id(module): module for module in modules}.values():
        for computation in module.entry.reachable():
            for instruction in computation.instructions:
                if instruction.shape.bytes > limits.bytes and _takes_memory(instruction, module.entry):
                    raise Stopped(too_large(instruction, limits.bytes))


def _takes_memory(instruction: Instruction, entry: Computation) -> bool:
    """Whether its value is memory of its own; views of a small array are none, until they are given out."""
    return instruction.opcode not in _VIEWS or instruction is entry.root
