"""Small expressions that derivative rules record: sums, comparisons, conversions, masks, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from shape_inference import Dims, PrimitiveType, Shape, s32, s64
from shape_inference.types import COMPLEX_OF, COMPONENT

from .. import ops
from ..core.builder import Builder, Value
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


def sign_on_side(sign: Value, side: int) -> Value:
    """A sign, with 0 replaced by the sign of a side: -1 for the side -1, otherwise 1."""
    one = full(sign.builder, -1 if side < 0 else 1, array_shape(sign))
    return ops.select(is_equal(sign, full(sign.builder, 0, array_shape(sign))), one, sign)


def sum_over(value: Value, dimensions: Sequence[int]) -> Value:
    """The sum over some dimensions, which are removed; the value itself if there are none."""
    if not dimensions:
        return value
    shape: Any = value.shape
    zero = full(value.builder, 0, shape.dtype[()])
    return ops.reduce((value,), (zero,), to_apply=ops.add, dimensions=tuple(dimensions))


def sum_all(value: Value) -> Value:
    """The sum of all elements."""
    return sum_over(value, range(len(dims_of(value))))


def broadcast_to(value: Value, sizes: Sequence[int], dimensions: Sequence[int] = ()) -> Value:
    """The value broadcast to these sizes, dimension i becoming dimensions[i]; unchanged if it has them already."""
    if dims_of(value) == tuple(sizes):
        return value
    return ops.broadcast(value, sizes=tuple(sizes), dimensions=tuple(dimensions))


def broadcast_over(value: Value, sizes: Sequence[int], reduced: Sequence[int]) -> Value:
    """A value without the reduced dimensions, broadcast along them."""
    return broadcast_to(value, sizes, [d for d in range(len(sizes)) if d not in reduced])


def array_shape(value: Value) -> Shape:
    """The shape of a value that is an array."""
    assert isinstance(value.shape, Shape), value
    return value.shape


def convert_to(value: Value, dtype: PrimitiveType) -> Value:
    """The value converted to an element type; the real part if a complex value becomes real."""
    current = array_shape(value).dtype
    if current is dtype:
        return value
    if current in COMPONENT and dtype not in COMPONENT:
        return convert_to(ops.real(value), dtype)
    return ops.convert(value, new_element_type=dtype)


def convert_like(value: Value | None, operand: Value) -> Value | None:
    """A cotangent converted to the element type of its operand."""
    return None if value is None else convert_to(value, array_shape(operand).dtype)


def conjugate(value: Value) -> Value:
    """The complex conjugate; a real value is unchanged."""
    if array_shape(value).dtype not in COMPONENT:
        return value
    return ops.complex(ops.real(value), ops.negate(ops.imag(value)))


def to_complex(value: Value) -> Value:
    """A real value converted to a complex one."""
    return convert_to(value, COMPLEX_OF[array_shape(value).dtype])


def transpose_unless_same(value: Value, permutation: Sequence[int]) -> Value:
    """The value with its dimensions permuted, or itself if the order is the same."""
    order = tuple(permutation)
    return value if order == tuple(range(len(order))) else ops.transpose(value, permutation=order)


def reshape_unless_same(value: Value, sizes: Dims) -> Value:
    """The elements in new extents, or the value itself if the extents are the same."""
    return value if array_shape(value).dims == tuple(sizes) else ops.reshape(value, new_sizes=tuple(sizes))


def keep_where(mask: Value, value: Value) -> Value:
    """The value where the mask is true, zeros elsewhere."""
    return ops.select(mask, value, full(value.builder, 0, array_shape(value)))


def compare(lhs: Value, rhs: Value, direction: Any) -> Value:
    return ops.compare(lhs, rhs, direction=direction)


def index_along(builder: Builder, sizes: Dims, dimension: int) -> Value:
    """The index of each element along a dimension."""
    dtype = s32 if sizes[dimension] < 1 << 31 else s64
    return ops.iota(builder, shape=dtype[sizes], iota_dimension=dimension)


def number_elements(builder: Builder, sizes: Dims) -> Value:
    """The number of each element among all, with the last dimension fastest."""
    size = Shape(s32, sizes).size
    flat = ops.iota(builder, shape=(s32 if size < 1 << 31 else s64)[size], iota_dimension=0)
    return reshape_unless_same(flat, sizes)


def triangle_mask(value: Value, direction: Any) -> Value:
    """A mask of where the row index compares with the column index in this way, for a stack of matrices."""
    sizes = array_shape(value).dims
    rows, columns = (index_along(value.builder, sizes, len(sizes) - back) for back in (2, 1))
    return compare(rows, columns, direction)
