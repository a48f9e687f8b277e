"""Tuples, and ops that hand values on: their pieces are those of the operands."""

from __future__ import annotations

from typing import Any

from ....core.graph import Instruction
from ..parts.frame import Frame
from ..parts.layouts import Tree, mapped
from ..parts.tables import special
from ..parts.trees import pieces_of
from ..parts.walk import put_together, settled
from ..reasons import Result

_several: type[Any] = tuple


@special
def tuple(frame: Frame, instruction: Instruction) -> Tree:
    return settled(frame, _several(frame.values[each] for each in instruction.operands), instruction)


@special
def get_tuple_element(frame: Frame, instruction: Instruction) -> Tree:
    (operand,) = instruction.operands
    return settled(frame, frame.values[operand][instruction.attributes.index], instruction)


@special
def opt_barrier(frame: Frame, instruction: Instruction) -> Tree:
    """The barrier on the parts, as they are made."""
    (operand,) = instruction.operands
    tree = frame.values[operand]
    shardings = mapped(lambda piece: piece.sharding, tree)
    given = put_together(frame, tree, shardings, Result(instruction))
    value = frame.record(instruction.opcode, [given], instruction.segments, {}, instruction.name)
    return settled(frame, pieces_of(frame, value, instruction.shape, shardings, instruction), instruction)
