"""The arithmetic of counters: whole numbers and truths known before a run, and vectors that a loop goes along."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import cmp_using, field, frozen

from shape_inference import AnyShape, RuleTable, Shape

from ..graph import Instruction
from .analysis import Leaf, Reading

if TYPE_CHECKING:
    from .constants import Constants

known = RuleTable("known")

LONGEST = 1 << 16  # of a vector whose elements are looked at


@frozen
class Vector:
    """The elements of an array of rank 1, all known."""

    elements: np.ndarray[Any, Any] = field(eq=cmp_using(eq=np.array_equal))


def element(leaf: Leaf, place: int) -> Leaf:
    return leaf.elements[place] if isinstance(leaf, Vector) else None


def stacked(shape: AnyShape, column: Sequence[Leaf]) -> Leaf:
    """The vector of these elements, where all are known."""
    is_known = _is_small(shape) and not any(each is None for each in column)
    return _leaf(shape, np.array(column)) if is_known else None


def _is_small(shape: AnyShape) -> bool:
    if not isinstance(shape, Shape) or shape.dtype.kind not in ("signed", "unsigned", "pred"):
        return False
    is_vector = shape.rank == 1 and shape.dims[0] <= LONGEST and not shape.is_dynamic and shape.dtype.is_native
    return not shape.dims or is_vector


def _leaf(shape: AnyShape, value: Any) -> Leaf:
    assert isinstance(shape, Shape)
    dtype = shape.dtype.dtype
    return Vector(np.asarray(value).astype(dtype)) if shape.dims else dtype.type(value)


def _plain(leaf: Leaf) -> Any:
    return leaf.elements if isinstance(leaf, Vector) else leaf


def _folding(function: Callable[..., Any]) -> Callable[..., Leaf]:
    def fold(of: Constants, instruction: Instruction, *operands: Leaf) -> Leaf:
        if not _is_small(instruction.shape) or any(operand is None for operand in operands):
            return None
        return _leaf(instruction.shape, function(*map(_plain, operands)))

    return fold


_FOLDED: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "negate": lambda x: x - x - x,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "convert": lambda x: x,
}
for _opcode, _function in _FOLDED.items():
    known.enter(_opcode, _folding(_function))

_COMPARISONS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _dividing(function: Callable[..., Any]) -> Callable[..., Leaf]:
    """Of whole numbers, toward zero; what a zero divides, and what would overflow, only the run can tell."""
    fold = _folding(function)

    def divide(of: Constants, instruction: Instruction, lhs: Leaf, rhs: Leaf) -> Leaf:
        if lhs is None or rhs is None:
            return None
        dividend, divisor = _plain(lhs), _plain(rhs)
        is_told = not np.any((divisor == 0) | ((divisor == -1) & (dividend < 0)))
        return fold(of, instruction, lhs, rhs) if is_told else None

    return divide


known.enter("divide", _dividing(lambda lhs, rhs: (lhs - np.fmod(lhs, rhs)) // rhs))
known.enter("remainder", _dividing(np.fmod))


@known
def constant(of: Constants, instruction: Instruction) -> Leaf:
    return _leaf(instruction.shape, instruction.attributes.literal[()]) if _is_small(instruction.shape) else None


@known
def iota(of: Constants, instruction: Instruction) -> Leaf:
    shape = instruction.shape
    return _leaf(shape, np.arange(shape.dims[0])) if isinstance(shape, Shape) and _is_small(shape) else None


def _reshaped(of: Constants, instruction: Instruction, operand: Leaf) -> Leaf:
    """Of rank 0 or 1 the elements as they are, or one again and again."""
    if operand is None or not isinstance(instruction.shape, Shape) or not _is_small(instruction.shape):
        return None
    elements = np.asarray(_plain(operand))
    return _leaf(
        instruction.shape,
        np.broadcast_to(elements, instruction.shape.dims) if instruction.shape.dims else elements.item(),
    )


known.enter("broadcast", _reshaped)
known.enter("reshape", _reshaped)


def _taking(taken: Callable[..., slice]) -> Callable[..., Leaf]:
    """Elements of a vector."""

    def take(of: Constants, instruction: Instruction, operand: Leaf, *where: Leaf) -> Leaf:
        if not isinstance(operand, Vector) or any(each is None for each in where):
            return None
        return Vector(operand.elements[taken(operand, instruction.attributes, *where)])

    return take


def _from(operand: Vector, attributes: Any, start: Leaf) -> slice:
    """Where it would reach beyond the end, or begin before the start, as near as it can."""
    (size,) = attributes.dynamic_slice_sizes
    first = min(max(np.asarray(_plain(start)).item(), 0), len(operand.elements) - size)
    return slice(first, first + size)


known.enter("dynamic_slice", _taking(_from))
known.enter("slice", _taking(lambda _, a: slice(a.start_indices[0], a.limit_indices[0], *a.strides)))
known.enter("reverse", _taking(lambda _, a: slice(None, None, -1 if a.dimensions else 1)))


@known
def replica_id(of: Constants, instruction: Instruction) -> Leaf:
    return np.uint32(of.device // of.num_partitions)


@known
def partition_id(of: Constants, instruction: Instruction) -> Leaf:
    return np.uint32(of.device % of.num_partitions)


@known
def compare(of: Constants, instruction: Instruction, lhs: Leaf, rhs: Leaf) -> Leaf:
    if lhs is None or rhs is None:
        return None
    return _leaf(instruction.shape, _COMPARISONS[instruction.attributes.direction](_plain(lhs), _plain(rhs)))


@known
def select(of: Constants, instruction: Instruction, pred: Leaf, on_true: Reading, on_false: Reading) -> Reading:
    if isinstance(pred, Vector):
        is_known = isinstance(on_true, Vector) and isinstance(on_false, Vector)
        return Vector(np.where(pred.elements, on_true.elements, on_false.elements)) if is_known else None
    if pred is None:
        return of.joined(on_true, on_false)
    return on_true if pred else on_false
