"""Reductions: padding is the neutral element, the initial value counts on one device, partial results are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference import Shape

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ...planning.record import constant, dims_of, spread
from ..parts.choices import partial_axes
from ..parts.frame import Frame
from ..parts.masks import combiner_of, masked, neutral
from ..parts.tables import Cut, Operands, joining, preparing, recording


def _neutral(instruction: Instruction) -> Any:
    """The neutral element of a reduction of one array by an op; None where there is none."""
    if len(instruction.operands) != 2:
        return None
    opcode, shape = combiner_of(instruction.attributes.to_apply), instruction.operands[0].shape
    assert isinstance(shape, Shape)
    is_same = isinstance(instruction.shape, Shape) and instruction.shape.dtype is shape.dtype
    return neutral(opcode, shape.dtype) if opcode is not None and is_same else None


@joining
def reduce(instruction: Instruction) -> Callable[..., Any] | None:
    return instruction.attributes.to_apply if _neutral(instruction) is not None else None


def _prepared(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    """The operand without padding, and an initial value that one device of each group counts."""
    axes = partial_axes(cut.site, cut.assignment)
    if not axes:
        return operands
    number, sharding, shape = _neutral(cut.instruction), cut.operands[0], cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    assert sharding is not None
    uneven = {*cut.uneven_reductions()}
    places = [dim for dim, factors in enumerate(cut.site.rule.operands[0]) if uneven & {*factors}]
    value = masked(frame, operands[0], sharding, shape, places, number)
    return [value, counted_once(frame, operands[1], number, axes)]


@recording
def reduce_(frame: Frame, cut: Cut, operands: Operands) -> Value | None:
    """Of a cut dimension the reduction begins with the neutral element, which XLA takes for granted; then comes the
    initial value.
    """
    instruction = cut.instruction
    if not partial_axes(cut.site, cut.assignment) or operands[1].instruction.opcode == "constant":
        return None
    begin = constant(frame.builder, _neutral(instruction))
    attributes = dict(instruction.attribute_values())
    value = frame.record("reduce", [operands[0], begin], instruction.segments, attributes, instruction.name)
    opcode = combiner_of(instruction.attributes.to_apply)
    assert opcode is not None
    return frame.record(opcode, [value, spread(operands[1], dims_of(value))], None, {})


def counted_once(frame: Frame, value: Value, number: Any, axes: Any) -> Value:
    """An initial value on the first device along the axes, the neutral element on the others."""
    given = value.instruction
    if given.opcode == "constant" and np.array_equal(given.attributes.literal, number):
        return value
    is_first = ops.compare(frame.recorder.place(axes), constant(frame.builder, np.int32(0)), direction="EQ")
    return ops.select(is_first, value, constant(frame.builder, number))


preparing.enter("reduce", _prepared)
