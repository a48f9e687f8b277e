"""Small forms that rules of differentiation record: other element types, sums, masks, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import Dims, PrimitiveType, Shape, s32, s64
from shape_inference.types import COMPLEX_OF, COMPONENT

from ... import ops
from ...core.builder import Builder, Value
from ..rules import full


def array_of(value: Value) -> Shape:
    """The shape of a value that is an array."""
    assert isinstance(value.shape, Shape), value
    return value.shape


def in_type(value: Value, dtype: PrimitiveType) -> Value:
    """The value in another element type; of a complex one that is to be real the real part."""
    given = array_of(value).dtype
    if given is dtype:
        return value
    if given in COMPONENT and dtype not in COMPONENT:
        return in_type(ops.real(value), dtype)
    return ops.convert(value, new_element_type=dtype)


def like(value: Value | None, operand: Value) -> Value | None:
    """A cotangent in the element type of its operand."""
    return None if value is None else in_type(value, array_of(operand).dtype)


def conjugate(value: Value) -> Value:
    """The complex conjugate; a real value itself."""
    if array_of(value).dtype not in COMPONENT:
        return value
    return ops.complex(ops.real(value), ops.negate(ops.imag(value)))


def as_complex(value: Value) -> Value:
    """A real value as a complex one."""
    return in_type(value, COMPLEX_OF[array_of(value).dtype])


def transposed(value: Value, permutation: Sequence[int]) -> Value:
    """The dimensions in another order, where it is another."""
    order = tuple(permutation)
    return value if order == tuple(range(len(order))) else ops.transpose(value, permutation=order)


def reshaped(value: Value, sizes: Dims) -> Value:
    """The elements in other extents, where these are others."""
    return value if array_of(value).dims == tuple(sizes) else ops.reshape(value, new_sizes=tuple(sizes))


def selected(mask: Value, value: Value) -> Value:
    """The value where the mask holds, zeros elsewhere."""
    return ops.select(mask, value, full(value.builder, 0, array_of(value)))


def compared(lhs: Value, rhs: Value, direction: Any) -> Value:
    return ops.compare(lhs, rhs, direction=direction)


def counting(builder: Builder, sizes: Dims, dimension: int) -> Value:
    """The number of each element along a dimension."""
    dtype = s32 if sizes[dimension] < 1 << 31 else s64
    return ops.iota(builder, shape=dtype[sizes], iota_dimension=dimension)


def numbered(builder: Builder, sizes: Dims) -> Value:
    """The number of each element among all, the last dimension counting fastest."""
    size = Shape(s32, sizes).size
    flat = ops.iota(builder, shape=(s32 if size < 1 << 31 else s64)[size], iota_dimension=0)
    return reshaped(flat, sizes)


def triangle(value: Value, direction: Any) -> Value:
    """Where the number of the row stands in this relation to that of the column, for a stack of matrices."""
    sizes = array_of(value).dims
    rows, columns = (counting(value.builder, sizes, len(sizes) - back) for back in (2, 1))
    return compared(rows, columns, direction)
