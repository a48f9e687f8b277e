"""What rules of several families record: sums, comparisons, numbers spread over a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from shape_inference import Shape

from .. import ops
from ..core.builder import Value
from .rules import full


def dims_of(value: Value) -> tuple[int, ...]:
    """The extents of an array."""
    assert isinstance(value.shape, Shape), value
    return value.shape.dims


def is_complex(value: Value) -> bool:
    """Whether a value is an array of complex numbers."""
    return isinstance(value.shape, Shape) and value.shape.dtype.kind == "complex"


def is_equal(lhs: Value, rhs: Value) -> Value:
    """Where two arrays are equal."""
    return ops.compare(lhs, rhs, direction="EQ")


def is_greater(lhs: Value, rhs: Value, direction: Literal["GT", "GE"] = "GT") -> Value:
    """Where the first of two arrays is greater."""
    return ops.compare(lhs, rhs, direction=direction)


def sum_over(value: Value, dimensions: Sequence[int]) -> Value:
    """The sum over some dimensions, which it loses; the value itself where there are none."""
    if not dimensions:
        return value
    shape: Any = value.shape
    zero = full(value.builder, 0, shape.dtype[()])
    return ops.reduce((value,), (zero,), to_apply=ops.add, dimensions=tuple(dimensions))


def total(value: Value) -> Value:
    """The sum of all elements."""
    return sum_over(value, range(len(dims_of(value))))


def broadcast_to(value: Value, sizes: Sequence[int], dimensions: Sequence[int] = ()) -> Value:
    """The value repeated to these sizes, dimension i being dimension dimensions[i]; as it is where it has them."""
    if dims_of(value) == tuple(sizes):
        return value
    return ops.broadcast(value, sizes=tuple(sizes), dimensions=tuple(dimensions))


def spread_over(value: Value, sizes: Sequence[int], reduced: Sequence[int]) -> Value:
    """What lacks the reduced dimensions, repeated along them."""
    return broadcast_to(value, sizes, [d for d in range(len(sizes)) if d not in reduced])
