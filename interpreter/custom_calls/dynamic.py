"""Custom calls that convert between dynamic and static dimensions, by cutting an array or by padding it with zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from .table import target


@target("SliceToDynamic")
def slice_to_dynamic(instruction: Instruction, operand: Array, *sizes: Any) -> Array:
    """The operand cut to these sizes, one for each dimension."""
    return operand[tuple(slice(int(size)) for size in sizes)]


@target("PadToStatic")
def pad_to_static(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The operand padded to its bounds, and the size of each dimension."""
    whole = np.zeros(instruction.shape.elements[0].dims, operand.dtype)  # type: ignore[union-attr]
    whole[tuple(slice(size) for size in operand.shape)] = operand
    return whole, *(np.int32(size) for size in operand.shape)
