"""Values that are known before the run: what follows from constants, and from the ids of a device, alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape
from shape_inference.elided import ElidedArray

from ..core.graph import Instruction
from ..core.op import opcodes
from ..running import Evaluator, as_in_a_run

_MOST_STEPS = 10_000
"""The greatest number of instructions that are evaluated for one value."""

_IDS = opcodes(lambda op: op.depends_on == "device" and op.needs == "nobody")


def early_values(instruction: Instruction, ids: Sequence[tuple[int, int]]) -> list[Any] | None:
    """The value of an instruction on the devices of these ids (replica, partition), or None where it is not known.

    It is known where operands lead back to constants, iota and ids, inside its own computation.
    """
    order = _order(instruction)
    if order is None:
        return None
    evaluator = Evaluator()
    if not any(each.opcode in _IDS for each in order):
        ids = ids[:1]
    with as_in_a_run():
        found = [_evaluated(evaluator, order, each) for each in ids]
    return None if any(each is None for each in found) else found


def _order(instruction: Instruction) -> list[Instruction] | None:
    """The instruction behind all that it depends on; None where that is more than constants, or too many."""
    order: dict[Instruction, None] = {}
    stack = [(instruction, False)]
    while stack:
        each, is_done = stack.pop()
        if is_done:
            order[each] = None
        elif each not in order:
            if not _is_followed(each) or len(order) > _MOST_STEPS:
                return None
            stack.append((each, True))
            stack += [(operand, False) for operand in each.operands if operand not in order]
    return list(order)


def _is_followed(instruction: Instruction) -> bool:
    if instruction.opcode == "constant":
        return not isinstance(instruction.attributes.literal, ElidedArray)
    return instruction.opcode != "parameter"


def _evaluated(evaluator: Evaluator, order: Sequence[Instruction], ids: tuple[int, int]) -> Any:
    values: dict[Instruction, Any] = {}
    for each in order:
        values[each] = _value(evaluator, each, [values[operand] for operand in each.operands], ids)
        if values[each] is None:
            return None
    return values[order[-1]]


def _value(evaluator: Evaluator, instruction: Instruction, operands: list[Any], ids: tuple[int, int]) -> Any:
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        return np.asarray(literal) if isinstance(instruction.shape, Shape) else literal
    if instruction.opcode not in _IDS and not evaluator.is_pure(instruction):
        return None
    return evaluator.value(instruction, operands, ids)


def rows(values: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The distinct values, each with the devices that have it."""
    devices: dict[bytes, list[int]] = {}
    first: dict[bytes, Any] = {}
    for device, value in enumerate(values):
        key = repr(value).encode() if isinstance(value, tuple) else np.asarray(value).tobytes()
        devices.setdefault(key, []).append(device)
        first.setdefault(key, value)
    for key, value in first.items():
        yield tuple(devices[key]), value
