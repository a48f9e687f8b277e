"""Convenience forms of broadcast, reshape, transpose, concatenate, pad and dimension sizes; XlaBuilder's collapse."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from shape_inference import Dims, Shape, ShapeError, s32
from shape_inference.dims import array
from shape_inference.dims import dimension as check_dimension
from shape_inference.dims import permutation as check_permutation
from shape_inference.ops.shaping import check_collapse

from .. import ops
from ..core.attributes import PaddingDimension, reader
from ..core.builder import Value
from .support import (
    as_value,
    as_values,
    counted_all,
    dressed,
    dtype_of,
    filled_up,
    into,
    normalize_dimensions,
    rank_of,
    require_value,
    shape_of,
    with_the_rest,
)

__all__ = [
    "broadcast", "broadcast_in_dim", "collapse", "concat_in_dim", "concatenate", "dynamic_reshape",
    "get_dimension_size", "pad", "remove_dynamic_dimension", "reshape", "rev", "reverse", "set_dimension_size",
    "transpose",
]  # fmt: skip

_sizes = reader("shape", Dims)
_dimensions, _broadcast_dimensions = reader("dimensions", Dims), reader("broadcast_dimensions", Dims)


@dressed
def broadcast(
    operand: Value, sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, name: str | None = None
) -> Value:
    """Repeat the operand along new leading dimensions of these sizes, as in XlaBuilder.

    With `dimensions`, record HLO's broadcast, like `xb.ops.broadcast`. The sizes are then the extents of the result.
    Raises: the same errors as xb.ops.broadcast.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
    >>> xb.broadcast(x, (4, 2)).shape, xb.broadcast(x, (4, 3, 2), dimensions=(1,)).shape
    (f32[4,2,3], f32[4,3,2])

    Source: Operation Semantics, Broadcast.
    """
    if dimensions is not None:
        counts = counted_all(dimensions, len(sizes) if hasattr(sizes, "__len__") else None)
        return ops.broadcast(operand, sizes=sizes, dimensions=counts, name=name)
    old = array("operand", shape_of(operand)).dims
    new = _sizes(sizes)
    return ops.broadcast(operand, sizes=new + old, dimensions=tuple(range(len(new), len(new) + len(old))), name=name)


def broadcast_in_dim(
    operand: Value, shape: Sequence[int] | Shape, broadcast_dimensions: Sequence[int], *, name: str | None = None
) -> Value:
    """Broadcast to this shape: operand dimension i becomes dimension broadcast_dimensions[i]; extents of 1 stretch.

    Records a broadcast, after a reshape if an extent of 1 must stretch.
    Raises: not_array, rank_mismatch, attribute_length_mismatch, dimension_out_of_range, duplicate_dimension,
    dimension_mismatch, negative_size or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2, 1])
    ... def stretched(x):
    ...     return xb.broadcast_in_dim(x, (2, 3), (0, 1))
    >>> xb.evaluate(stretched, [[1], [2]])
    array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)

    Source: xla_builder.h, BroadcastInDim; Broadcasting semantics.
    """
    plain = type(operand) is Value and type(broadcast_dimensions) is tuple and not broadcast_dimensions
    if plain and type(shape) is tuple and getattr(operand.instruction.shape, "dims", None) == ():
        with contextlib.suppress(ShapeError):  # which is said below, of `shape`
            return ops.broadcast(operand, sizes=shape, dimensions=(), name=name)  # without what other shapes need
    return _broadcast_in_dim(operand, shape, broadcast_dimensions, name=name)


@dressed
def _broadcast_in_dim(
    operand: Value, shape: Sequence[int] | Shape, broadcast_dimensions: Sequence[int], *, name: str | None
) -> Value:
    sizes = shape.dims if isinstance(shape, Shape) else _sizes(shape)
    return into(operand, sizes, _broadcast_dimensions(counted_all(broadcast_dimensions, len(sizes))), name)


@dressed
def reshape(
    operand: Value, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, name: str | None = None
) -> Value:
    """Change the dimensions of an array.

    `dimensions` is the order, major first, in which the old dimensions are read.
    One of the sizes may be -1; it is then computed from the others. Records a reshape, after a transpose if the order
    differs from the operand's.
    Raises: not_array, not_permutation, negative_size or element_count_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2, 3])
    ... def by_columns(x):
    ...     return xb.reshape(x, (6,), dimensions=(1, 0))
    >>> xb.evaluate(by_columns, [[1, 2, 3], [4, 5, 6]])
    array([1, 4, 2, 5, 3, 6], dtype=int32)

    Source: Operation Semantics, Reshape.
    """
    if dimensions is not None:
        order, shape = _normalize_dimensions(dimensions, operand), array("operand", shape_of(operand))
        check_permutation("dimensions", order, "operand", shape)
        if order != tuple(range(shape.rank)):
            operand = ops.transpose(operand, permutation=order)
    return ops.reshape(operand, new_sizes=with_the_rest(operand, new_sizes), name=name)


def _normalize_dimensions(dimensions: Any, operand: Any) -> Dims:
    """A list of dimension numbers of the operand, each counted from 0."""
    return _dimensions(counted_all(dimensions, rank_of(operand)))  # type: ignore[no-any-return]


@dressed
def collapse(operand: Value, dimensions: Sequence[int], *, name: str | None = None) -> Value:
    """Merge consecutive dimensions, in ascending order; an empty list changes nothing. Records a reshape.

    Raises: not_array, dimension_out_of_range or bad_order.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4, 2, 3])
    >>> xb.collapse(x, (1, 2)).shape
    f32[4,6]

    Source: Operation Semantics, Collapse.
    """
    return ops.reshape(
        operand, new_sizes=check_collapse(shape_of(operand), _normalize_dimensions(dimensions, operand)), name=name
    )


@dressed
def transpose(operand: Value, permutation: Sequence[int] | None = None, *, name: str | None = None) -> Value:
    """Reorder the dimensions: dimension i of the result is dimension permutation[i] of the operand.

    Without a permutation, the order of the dimensions is reversed; `x.T` does the same.
    Raises: not_array or not_permutation.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3, 4])
    >>> xb.transpose(x, (2, 0, 1)).shape
    f32[4,2,3]

    Source: Operation Semantics, Transpose.
    """
    rank = rank_of(operand)
    given = tuple(range(rank or 0)[::-1]) if permutation is None else counted_all(permutation, rank)
    return ops.transpose(operand, permutation=given, name=name)


@dressed
def reverse(operand: Value, dimensions: Sequence[int], *, name: str | None = None) -> Value:
    """Reverse the elements along these dimensions. This is XlaBuilder's Rev.

    Raises: not_array, dimension_out_of_range or duplicate_dimension.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[3])(lambda x: xb.reverse(x, (0,))), [1, 2, 3])
    array([3, 2, 1], dtype=int32)

    Source: Operation Semantics, Rev (reverse).
    """
    return ops.reverse(operand, dimensions=counted_all(dimensions, rank_of(operand)), name=name)


rev = reverse


@dressed
def concatenate(operands: Sequence[Any], dimension: int, *, name: str | None = None) -> Value:
    """Concatenate the operands along a dimension. NumPy arrays become constants. This is XlaBuilder's ConcatInDim.

    Raises: the same errors as xb.ops.concatenate.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[2])(lambda x: xb.concatenate([x, x], 0)), [1, 2])
    array([1, 2, 1, 2], dtype=int32)

    Source: Operation Semantics, Concatenate.
    """
    values = as_values(operands)
    return ops.concatenate(values, dimension=normalize_dimensions(dimension, rank_of(values)), name=name)


concat_in_dim = concatenate


@dressed
def pad(
    operand: Value,
    padding_value: Any,
    padding: Sequence[PaddingDimension | tuple[int, int] | tuple[int, int, int]],
    *,
    name: str | None = None,
) -> Value:
    """Insert `padding_value`, a value or a number, around and between the elements of the operand.

    `padding` holds (low, high) or (low, high, interior) for each dimension; a negative low or high crops that end.
    Raises: the same errors as xb.ops.pad.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[3])(lambda x: xb.pad(x, 0, [(1, 2)])), [1, 2, 3])
    array([0, 1, 2, 3, 0, 0], dtype=int32)

    Source: Operation Semantics, Pad.
    """
    value = as_value(require_value(operand).builder, padding_value, dtype_of(operand))
    return ops.pad(operand, value, padding=padding, name=name)


@dressed
def get_dimension_size(operand: Value, dimension: int, *, name: str | None = None) -> Value:
    """Return the number of elements along `dimension`, as s32[].

    For a dynamic dimension, it is the actual size, not the bound.
    Raises: not_array, dimension_out_of_range or overflow.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 3])(lambda x: xb.get_dimension_size(x, 1)), [[1.0] * 3] * 2)
    np.int32(3)

    Source: StableHLO, get_dimension_size; xla_builder.h, GetDimensionSize.
    """
    return ops.get_dimension_size(operand, dimension=normalize_dimensions(dimension, rank_of(operand)), name=name)


@dressed
def set_dimension_size(operand: Value, size: Any, dimension: int, *, name: str | None = None) -> Value:
    """Keep the first `size` elements along `dimension`, which becomes dynamic. `size` is a value or a number.

    Raises: the same errors as xb.ops.set_dimension_size.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[3])(lambda x: xb.set_dimension_size(x, 2, 0)), [1.0, 2.0, 3.0])
    array([1., 2.], dtype=float32)

    Source: xla_builder.h, SetDimensionSize.
    """
    count = as_value(require_value(operand).builder, size, s32)
    return ops.set_dimension_size(
        operand, count, dimension=normalize_dimensions(dimension, rank_of(operand)), name=name
    )


@dressed
def remove_dynamic_dimension(operand: Value, dimension: int, *, name: str | None = None) -> Value:
    """Make `dimension` static, with its bound as the extent. Elements beyond the size are zero.

    Records a dynamic_update_slice into an array of zeros. A static dimension is unchanged.
    Raises: not_array or dimension_out_of_range.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3])
    ... def whole(x):
    ...     return xb.remove_dynamic_dimension(xb.set_dimension_size(x, 2, 0), 0)
    >>> xb.evaluate(whole, [1.0, 2.0, 3.0])
    array([1., 2., 0.], dtype=float32)

    Source: xla_builder.h, RemoveDynamicDimension.
    """
    shape = array("operand", shape_of(operand))
    dimension = normalize_dimensions(dimension, shape.rank)
    check_dimension(f"dimension={dimension}", dimension, "operand", shape)
    return filled_up(operand, shape, dimension, name)


@dressed
def dynamic_reshape(
    operand: Value,
    dim_sizes: Sequence[Any],
    new_size_bounds: Sequence[int],
    dims_are_dynamic: Sequence[bool],
    *,
    name: str | None = None,
) -> Value:
    """Reshape to the extents in `dim_sizes`, which are values or numbers; `dims_are_dynamic` marks the dynamic
    dimensions.

    Raises: the same errors as xb.ops.dynamic_reshape.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3])
    >>> xb.dynamic_reshape(x, (6,), (6,), (True,)).shape
    f32[<=6]

    Source: xla_builder.h, DynamicReshape.
    """
    builder = require_value(operand).builder
    sizes = [as_value(builder, size, s32) for size in dim_sizes]
    return ops.dynamic_reshape(
        operand, sizes, new_size_bounds=new_size_bounds, dims_are_dynamic=dims_are_dynamic, name=name
    )
