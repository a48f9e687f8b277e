"""Simplifications of what the rules of differentiation record, so that no derivative multiplies by one or adds zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import Shape
from shape_inference.rules import RuleTable

from .. import ops
from ..core.builder import Value
from ..core.graph import Instruction
from ..properties.patterns import number_in, reducer_of, spread

if TYPE_CHECKING:
    from .recorder import Recorder

simpler = RuleTable("simplification")
"""opcode -> rule(recorder, instruction): a value that is the same and simpler, or None."""


def simplified(recorder: Recorder, instruction: Instruction) -> Value | None:
    """A value that is the same as that of an instruction and takes less, or None."""
    rule = simpler.get(instruction.opcode)
    return rule(recorder, instruction) if rule is not None else None


def _same(recorder: Recorder, instruction: Instruction, operand: Instruction) -> Value | None:
    """The operand, where it has the shape of the instruction."""
    return recorder.value(operand) if _dims(operand) == _dims(instruction) else None


def _dims(instruction: Instruction) -> Any:
    shape = instruction.shape
    return (shape.dtype, shape.dims) if isinstance(shape, Shape) else None


def _number(recorder: Recorder, value: Any, like: Instruction) -> Value:
    """A number spread over the shape of an instruction."""
    shape: Any = like.shape
    with np.errstate(all="ignore"):
        literal = np.asarray(value).astype(shape.dtype.dtype)
    scalar = ops.constant(recorder, literal=literal)
    return scalar if shape.rank == 0 else ops.broadcast(scalar, sizes=shape.dims, dimensions=())


_FOLDED: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negate": np.negative,
}  # fmt: skip


def _folded(recorder: Recorder, instruction: Instruction) -> Value | None:
    """The number that an op of numbers is; floats and complex numbers alone, since integers divide otherwise."""
    shape: Any = instruction.shape
    if shape.dtype.kind not in ("float", "complex") or shape.is_dynamic:
        return None
    numbers = [number_in(each) for each in instruction.operands]
    if any(number is None for number in numbers):
        return None
    with np.errstate(all="ignore"):
        value = _FOLDED[instruction.opcode](*numbers)
    return _number(recorder, value, instruction)


def _of_numbers(recorder: Recorder, instruction: Instruction) -> Value | None:
    """An op of numbers, or of scalars that are spread over an array, done before they are spread."""
    found = _folded(recorder, instruction)
    return found if found is not None else _outside(recorder, instruction)


@simpler
def add(recorder: Recorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if number_in(one) == 0:
            return _same(recorder, instruction, other)
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if one.opcode == "dynamic_update_slice" and number_in(one.operands[0]) == 0:
            return _added_inside(recorder, other, one)
    if rhs.opcode == "negate" and _dims(lhs) == _dims(rhs):
        return ops.subtract(recorder.value(lhs), recorder.value(rhs.operands[0]))
    return _of_numbers(recorder, instruction)


def _added_inside(recorder: Recorder, whole: Instruction, part: Instruction) -> Value:
    """The sum of an array and one that is zero but for a part, added in that part alone."""
    update, starts = part.operands[1], tuple(map(recorder.value, part.operands[2:]))
    there = recorder.value(whole)
    sizes = update.shape.dims  # type: ignore[union-attr]
    before = ops.dynamic_slice(there, starts, dynamic_slice_sizes=sizes)
    return ops.dynamic_update_slice(there, ops.add(before, recorder.value(update)), starts)


@simpler
def subtract(recorder: Recorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    if number_in(rhs) == 0:
        return _same(recorder, instruction, lhs)
    return _of_numbers(recorder, instruction)


@simpler
def multiply(recorder: Recorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    for one, other in ((lhs, rhs), (rhs, lhs)):
        number = number_in(one)
        if number is not None and number == 1:
            return _same(recorder, instruction, other)
        if number is not None and number == -1 and _dims(other) == _dims(instruction):
            return ops.negate(recorder.value(other))
    return _of_numbers(recorder, instruction)


@simpler
def divide(recorder: Recorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    if number_in(rhs) == 1:
        return _same(recorder, instruction, lhs)
    return _of_numbers(recorder, instruction)


@simpler
def negate(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    if operand.opcode == "negate":
        return recorder.value(operand.operands[0])
    return _of_numbers(recorder, instruction)


def _outside(recorder: Recorder, instruction: Instruction) -> Value | None:
    """An op of scalars that are spread over an array as the op of the scalars, spread."""
    shape: Any = instruction.shape
    inside = [spread(each) for each in instruction.operands]
    if shape.rank == 0 or shape.is_dynamic or any(each is None for each in inside):
        return None
    operands = [recorder.value(each) for each in inside if each is not None]
    scalar = recorder.again(instruction.opcode, operands)
    return ops.broadcast(scalar, sizes=shape.dims, dimensions=())


@simpler
def convert(recorder: Recorder, instruction: Instruction) -> Value | None:
    return _same(recorder, instruction, instruction.operands[0])


@simpler
def reshape(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,), shape = instruction.operands, instruction.shape
    inner: Any = operand.shape
    if not isinstance(shape, Shape) or shape.is_dynamic or inner.is_dynamic:
        return None
    if inner.dims == shape.dims:
        return recorder.value(operand)
    if operand.opcode == "reshape":
        return ops.reshape(recorder.value(operand.operands[0]), new_sizes=shape.dims)
    scalar = spread(operand)
    if scalar is not None and operand.opcode == "broadcast":
        return ops.broadcast(recorder.value(scalar), sizes=shape.dims, dimensions=())
    return None


@simpler
def transpose(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,), shape = instruction.operands, instruction.shape
    permutation = instruction.attributes.permutation
    if permutation == tuple(range(len(permutation))):
        return recorder.value(operand)
    if operand.opcode == "transpose":
        inner = operand.attributes.permutation
        return ops.transpose(recorder.value(operand.operands[0]), permutation=tuple(inner[p] for p in permutation))
    scalar = spread(operand)
    if scalar is not None and operand.opcode == "broadcast" and isinstance(shape, Shape):
        return ops.broadcast(recorder.value(scalar), sizes=shape.dims, dimensions=())
    return None


@simpler
def broadcast(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,), sizes = instruction.operands, instruction.attributes.sizes
    dimensions, inner = instruction.attributes.dimensions, operand.shape
    if not isinstance(inner, Shape) or inner.is_dynamic:
        return None
    if inner.dims == sizes and dimensions == tuple(range(len(sizes))):
        return recorder.value(operand)
    if operand.opcode == "broadcast":
        through = tuple([dimensions[d] for d in operand.attributes.dimensions])
        return ops.broadcast(recorder.value(operand.operands[0]), sizes=sizes, dimensions=through)
    return None


@simpler
def select(recorder: Recorder, instruction: Instruction) -> Value | None:
    _, on_true, on_false = instruction.operands
    return recorder.value(on_true) if on_true is on_false else None


@simpler
def pad(recorder: Recorder, instruction: Instruction) -> Value | None:
    return _same(recorder, instruction, instruction.operands[0]) if _is_nothing(instruction) else None


def _is_nothing(pad: Instruction) -> bool:
    padding = pad.attributes.padding
    return all((d.low, d.high, d.interior) == (0, 0, 0) for d in padding)


@simpler
def slice(recorder: Recorder, instruction: Instruction) -> Value | None:
    return _same(recorder, instruction, instruction.operands[0]) if set(instruction.attributes.strides) <= {1} else None


@simpler
def concatenate(recorder: Recorder, instruction: Instruction) -> Value | None:
    return recorder.value(instruction.operands[0]) if len(instruction.operands) == 1 else None


@simpler
def real(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[0]) if operand.opcode == "complex" else None


@simpler
def imag(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[1]) if operand.opcode == "complex" else None


@simpler
def get_tuple_element(recorder: Recorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[instruction.attributes.index]) if operand.opcode == "tuple" else None


@simpler
def reduce(recorder: Recorder, instruction: Instruction) -> Value | None:
    if len(instruction.operands) != 2 or reducer_of(instruction.attributes.to_apply) != "add":
        return None
    operand, init = instruction.operands
    if number_in(init) != 0 or operand.shape.is_dynamic:  # type: ignore[union-attr]
        return None
    reduced = instruction.attributes.dimensions
    if all(operand.shape.dims[d] == 1 for d in reduced):  # type: ignore[union-attr]
        return ops.reshape(recorder.value(operand), new_sizes=instruction.shape.dims)  # type: ignore[union-attr]
    if operand.opcode == "broadcast":
        return _sum_of_broadcast(recorder, instruction, operand, reduced)
    return None


def _sum_of_broadcast(
    recorder: Recorder, instruction: Instruction, operand: Instruction, reduced: tuple[int, ...]
) -> Value | None:
    """The sum of what repeats as a product with how often it does."""
    shape: Any = operand.shape
    dimensions = operand.attributes.dimensions
    repeated = [d for d in reduced if d not in dimensions]
    if not repeated:
        return None
    count = math.prod([shape.dims[d] for d in repeated])
    inner = recorder.value(operand.operands[0])
    left = tuple([n for n, d in enumerate(dimensions) if d in reduced])
    if left:
        zero = recorder.value(instruction.operands[1])
        inner = ops.reduce((inner,), (zero,), to_apply=instruction.attributes.to_apply, dimensions=left)
    kept = [d for d in range(len(shape.dims)) if d not in reduced]
    places = tuple([kept.index(d) for d in dimensions if d not in reduced])
    scaled = ops.multiply(inner, _number(recorder, count, inner.instruction))
    return ops.broadcast(scaled, sizes=tuple([shape.dims[d] for d in kept]), dimensions=places)
