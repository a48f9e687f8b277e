"""Scalars that follow from the id of a device alone, as an array of their values on all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape

from ...core.graph import Instruction

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.floor_divide,
    "remainder": np.remainder,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
_HANDED_ON = ("bitcast", "convert", "copy", "reshape")
MOST_STEPS = 200


def by_device(instruction: Instruction, devices: int) -> Numbers | None:
    """The values of an integer scalar on each partition; None where it depends on anything else, or may be negative."""
    return _value(instruction, devices, [MOST_STEPS])


def _value(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    left[0] -= 1
    if left[0] < 0 or not _is_integer(instruction):
        return None
    if instruction.opcode == "partition_id":
        return np.arange(devices, dtype=np.int64)
    if instruction.opcode == "constant":
        literal = np.asarray(instruction.attributes.literal)
        return np.full(devices, int(literal.reshape(())), np.int64) if literal.size == 1 else None
    if instruction.opcode in _HANDED_ON and len(instruction.operands) == 1:
        return _value(instruction.operands[0], devices, left)
    if instruction.opcode == "dynamic_slice":
        return _looked_up(instruction, devices, left)
    return _computed(instruction, devices, left)


def _is_integer(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and shape.size == 1 and shape.dtype.kind in ("signed", "unsigned", "int", "uint")


def _computed(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    function = _ARITHMETIC.get(instruction.opcode)
    if function is None:
        return None
    given = [_value(each, devices, left) for each in instruction.operands]
    operands = [each for each in given if each is not None and bool(np.all(each >= 0))]
    if len(operands) < len(given) or (instruction.opcode in ("divide", "remainder") and not np.all(operands[1])):
        return None
    found: Numbers = function(*operands)
    return found if (found < 2**31).all() else None


def _looked_up(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    """One element of a constant list, at a place that follows from the device."""
    table, *starts = instruction.operands
    if table.opcode != "constant" or len(starts) != 1:
        return None
    places = _value(starts[0], devices, left)
    literal = np.asarray(table.attributes.literal).reshape(-1)
    return None if places is None else literal[np.clip(places, 0, len(literal) - 1)].astype(np.int64)
