"""Reductions: padding is the neutral element, the initial value counts on one device, partial results are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference import Shape

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ...axis import Axis, merged
from ...planning.record import constant, dims_of, spread
from ..parts.choices import partial_axes
from ..parts.folding import folding
from ..parts.frame import Frame
from ..parts.layouts import bytes_of
from ..parts.masks import combiner_of, count_of, masked, neutral
from ..parts.tables import Cut, Operands, gathered, gathering, joining, preparing, recording
from ..reasons import Gathered


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
    if _neutral(cut.instruction) is None:
        return _filled(frame, cut, operands)
    number, sharding, shape = _neutral(cut.instruction), cut.operands[0], cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    assert sharding is not None
    uneven = {*cut.uneven_reductions()}
    places = [dim for dim, factors in enumerate(cut.site.rule.operands[0]) if uneven & {*factors}]
    value = masked(frame, operands[0], sharding, shape, places, number)
    return [value, counted_once(frame, operands[1], number, axes)]


@recording
def reduce___(frame: Frame, cut: Cut, operands: Operands) -> Value | None:
    """Of a cut dimension the reduction begins with the neutral element, which XLA takes for granted; then comes the
    initial value. A reduction of several arrays, or by another computation than one op, is recorded as it is.
    """
    instruction = cut.instruction
    opcode = combiner_of(instruction.attributes.to_apply)
    is_one = len(operands) == 2 and opcode is not None and bool(partial_axes(cut.site, cut.assignment))
    if not is_one or operands[1].instruction.opcode == "constant":
        return None
    begin = constant(frame.builder, _neutral(instruction))
    attributes = dict(instruction.attribute_values())
    value = frame.record("reduce", [operands[0], begin], instruction.segments, attributes, instruction.name)
    return frame.record(str(opcode), [value, spread(operands[1], dims_of(value))], None, {})


def counted_once(frame: Frame, value: Value, number: Any, axes: Any) -> Value:
    """An initial value on the first device along the axes, the neutral element on the others."""
    given = value.instruction
    if given.opcode == "constant" and np.array_equal(given.attributes.literal, number):
        return value
    is_first = ops.compare(frame.recorder.place(axes), constant(frame.builder, np.int32(0)), direction="EQ")
    return ops.select(is_first, value, constant(frame.builder, number))


preparing.enter("reduce", _prepared)


# Several arrays, or another computation: the results of all devices are gathered, and reduced once more in order.


@gathering
def reduce_(instruction: Instruction, factor: int) -> bool:
    """Whether parts may be reduced apart along a factor: along any where the order is free, else along the first."""
    found = folding(instruction)
    first = min(instruction.attributes.dimensions, default=0)
    return found.is_apart and (found.is_unordered or factor == first)


def _filled(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    """The operands with their initial values as padding."""
    uneven, count = {*cut.uneven_reductions()}, len(operands) // 2
    found = []
    for number, value in enumerate(operands[:count]):
        sharding, shape = cut.operands[number], cut.instruction.operands[number].shape
        assert isinstance(shape, Shape)
        assert sharding is not None
        places = [dim for dim, factors in enumerate(cut.site.rule.operands[number]) if uneven & {*factors}]
        literal = np.asarray(cut.instruction.operands[count + number].attributes.literal)
        found.append(masked(frame, value, sharding, shape, places, literal))
    return [*found, *operands[count:]]


@gathered
def reduce__(frame: Frame, cut: Cut, values: list[Value]) -> list[Value]:
    """The results of all devices in a new dimension, reduced along it."""
    instruction, factors = cut.instruction, cut.site.rule.factors
    axes = merged(a for n, each in enumerate(cut.assignment) if factors[n].kind == "reduction" for a in each)
    everyone = [_of_all(frame, cut, value, axes) for value in values]
    inits = [
        constant(frame.builder, each.attributes.literal)
        for each in instruction.operands[len(instruction.operands) // 2 :]
    ]
    found = ops.reduce(tuple(everyone), tuple(inits), to_apply=instruction.attributes.to_apply, dimensions=(0,))
    if isinstance(found.shape, Shape):
        return [found]
    return [ops.get_tuple_element(found, index=number) for number in range(len(values))]


def _of_all(frame: Frame, cut: Cut, value: Value, axes: tuple[Axis, ...]) -> Value:
    value = ops.reshape(value, new_sizes=(1, *dims_of(value)))
    parts, shape = count_of(axes), value.shape
    assert isinstance(shape, Shape)
    found = ops.all_gather([value], all_gather_dimension=0, shard_count=parts, **frame.recorder.global_groups(axes))
    reason = Gathered(cut.instruction, cut.site.mesh, cut.site.rule, cut.assignment)
    frame.note(found, axes, bytes_of(shape.dtype[(parts, *shape.dims)]), cut.instruction, reason)
    return found
