"""Tuples, and ops that hand values on: their pieces are those of the operands."""

from __future__ import annotations

from typing import Any

from ....core.graph import Instruction
from ..parts.frame import Frame
from ..parts.layouts import Tree
from ..parts.tables import special
from ..parts.walk import settled

_several: type[Any] = tuple


@special
def tuple(frame: Frame, instruction: Instruction) -> Tree:
    return settled(frame, _several(frame.values[each] for each in instruction.operands), instruction)


@special
def get_tuple_element(frame: Frame, instruction: Instruction) -> Tree:
    (operand,) = instruction.operands
    return settled(frame, frame.values[operand][instruction.attributes.index], instruction)
