"""Which callees are flattened into the caller's level, and which instructions are items of a level."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...core.graph import Computation, Instruction
from ...properties.effects import FOLLOWED, UNITS, Path, Step, communicates, communicates_itself, steps
from .verdict import Order

Choose: TypeAlias = Callable[[Instruction, Path], int | None]
OrderOf: TypeAlias = Callable[[Computation], Order]


def flattened_step(instruction: Instruction, path: Path, choose: Choose) -> Step | None:
    """The call that is flattened: the one computation that runs, where that is known and communicates.

    A loop of no trip runs its silent condition, if it has one; a loop of one trip its body.
    """
    if instruction.opcode not in FOLLOWED or not any(map(communicates, instruction.called)):
        return None
    branch = choose(instruction, path) if instruction.opcode in UNITS else 0
    if branch is None:
        return None
    every = [*[None] * (instruction.opcode == "scan"), *steps(instruction)]
    step = every[branch]
    return step if step is not None and communicates(step.computation) else None


def is_item(instruction: Instruction, path: Path, choose: Choose) -> bool:
    """Whether an instruction is an item: it communicates, or is a loop or conditional whose decision is unknown."""
    if communicates_itself(instruction):
        return True
    if instruction.opcode not in UNITS or not any(map(communicates, instruction.called)):
        return False
    return choose(instruction, path) is None
