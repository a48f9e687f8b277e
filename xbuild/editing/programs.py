"""What an edit takes and gives back: a module, or a computation, which is edited as the module of one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..graph import Computation, Instruction, Module
from ..scheduling.program import linear
from .refusals import refusal

Program = TypeVar("Program", Module, Computation)


def module_of(program: Module | Computation) -> Module:
    return program if isinstance(program, Module) else Module(program.name, program)


def ordered(computation: Computation) -> tuple[Instruction, ...]:
    """The instructions in their order, mended where an operand stands after its user; refused where there is none."""
    found = linear(computation)
    if found is None:
        raise refusal("cycle", f"the instructions of {computation.name} need each other in a cycle")
    return found


def applied(edit: Callable[[Module], Module], program: Program) -> Program:
    """The edit of a module, on either; what it gives is of the same kind."""
    given: Any = program
    edited: Any = edit(module_of(given))
    return edited if isinstance(given, Module) else edited.entry  # type: ignore[no-any-return]
