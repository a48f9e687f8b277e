"""Code of tuples and barriers: a plan has a variable for each tuple element, and a barrier returns its operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xbuild.core.graph import Instruction

from ..compiler.lines import Path
from ..rules import compute, planned

if TYPE_CHECKING:
    from ..compiler.emit import Emitter
    from ..compiler.requests import Expr


@compute
def opt_barrier(operand: Any) -> Any:
    return operand


@compute
def domain(operand: Any, *, kind: str, entry: str, exit: str) -> Any:
    return operand


@planned
def tuple_(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return tuple(operands)


@planned
def get_tuple_element(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0][instruction.attributes.index]


@planned
def after_all(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return "None"


@planned
def add_dependency(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0]
