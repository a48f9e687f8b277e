"""Ops that rearrange the elements of arrays: broadcast, reshape, transpose, concatenate, pad, dimension sizes."""

from __future__ import annotations

from shape_inference import Dims

from ..core.attributes import Padding
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties


@op(Properties("moved", moves=("operand",), is_view=True))
def broadcast(operand: Value, *, sizes: Dims, dimensions: Dims) -> Value:
    """Repeat the operand along new dimensions: operand dimension i becomes result dimension dimensions[i].

    `sizes` are the extents of the result.
    Formula: result[..., j_dimensions[i], ...] = operand[..., j_i, ...].
    Shapes: takes an array of any shape, whose extent i is sizes[dimensions[i]]. Unsorted `dimensions` transpose the
    operand.
    Raises: not_array, attribute_length_mismatch, dimension_out_of_range, duplicate_dimension, dimension_mismatch,
    negative_size or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2])
    ... def columns(x):
    ...     return xb.ops.broadcast(x, sizes=(2, 3), dimensions=(0,))
    >>> xb.evaluate(columns, [1, 2])
    array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)

    Source: Operation Semantics, Broadcast; StableHLO, broadcast_in_dim.
    """
    ...


@op(Properties("moved", moves=("operand",), is_view=True, states_shape=True))
def reshape(operand: Value, *, new_sizes: Dims) -> Value:
    """Change the dimensions; the elements keep their order, in which the last dimension varies fastest.

    Shapes: takes an array of any shape. The product of new_sizes is the operand's element count. If a dimension is
    dynamic, the dimension that it becomes is dynamic too (the major one if it is split).
    Raises: not_array, negative_size or element_count_mismatch; dimension_mismatch if a dynamic dimension is lost.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2, 3])
    ... def tall(x):
    ...     return xb.ops.reshape(x, new_sizes=(3, 2))
    >>> xb.evaluate(tall, [[0, 1, 2], [3, 4, 5]])
    array([[0, 1],
           [2, 3],
           [4, 5]], dtype=int32)

    Source: Operation Semantics, Reshape.
    """
    ...


@op(Properties("moved", moves=("operand",), is_view=True))
def transpose(operand: Value, *, permutation: Dims) -> Value:
    """Reorder the dimensions: dimension i of the result is dimension permutation[i] of the operand.

    Shapes: takes an array of any shape. `permutation` names each dimension once.
    Raises: not_array or not_permutation.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3, 4])
    >>> xb.ops.transpose(x, permutation=(2, 0, 1)).shape
    f32[4,2,3]

    Source: Operation Semantics, Transpose.
    """
    ...


@op(Properties("moved", moves=("operand",), is_view=True))
def reverse(operand: Value, *, dimensions: Dims) -> Value:
    """Reverse the elements along each of `dimensions`: index i of extent n becomes n - 1 - i.

    Shapes: takes an array of any shape. The result has the same shape.
    Raises: not_array, dimension_out_of_range or duplicate_dimension.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[3])
    ... def backwards(x):
    ...     return xb.ops.reverse(x, dimensions=(0,))
    >>> xb.evaluate(backwards, [1, 2, 3])
    array([3, 2, 1], dtype=int32)

    Source: Operation Semantics, Rev (reverse).
    """
    ...


@op(Properties("moved", moves=("operands",), mixes_precisions=True))
def concatenate(operands: Values, *, dimension: int) -> Value:
    """Concatenate the operands along `dimension`.

    Shapes: takes one or more arrays of the same rank (1 or higher) and element type, with equal extents except in
    `dimension`.
    Raises: arity_mismatch, not_array, rank_mismatch, dimension_mismatch, dimension_out_of_range, element_type_mismatch
    or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2], xb.s32[1])
    ... def joined(x, y):
    ...     return xb.ops.concatenate((x, y), dimension=0)
    >>> xb.evaluate(joined, [1, 2], [3])
    array([1, 2, 3], dtype=int32)

    Source: Operation Semantics, Concatenate.
    """
    ...


@op(Properties("moved", moves=("operand", "padding_value"), mixes_precisions=True))
def pad(operand: Value, padding_value: Value, *, padding: Padding) -> Value:
    """Insert `padding_value` before, after and between the elements of each dimension.

    Formula: extent d becomes low + d + max(d - 1, 0) * interior + high. If low or high is negative, that end is
    cropped, after the interior padding.
    Shapes: takes an array of any shape and a scalar of its element type.
    Raises: not_array, non_scalar, element_type_mismatch, attribute_length_mismatch, negative_size or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[3], xb.s32[()])
    ... def spread(x, hole):
    ...     return xb.ops.pad(x, hole, padding=[(-1, -1, 1)])
    >>> xb.evaluate(spread, [1, 2, 3], 9)
    array([9, 2, 9], dtype=int32)

    Source: Operation Semantics, Pad.
    """
    ...


@op(Properties("made"))
def get_dimension_size(operand: Value, *, dimension: int) -> Value:
    """Return the number of elements along `dimension`, as s32[].

    For a dynamic dimension, it is the actual size, not the bound.
    Shapes: takes an array of any shape. The bound of the dimension is at most 2^31 - 1.
    Raises: not_array, dimension_out_of_range or overflow.

    >>> import xbuild as xb
    >>> from shape_inference import parse_shape
    >>> @xb.computation(parse_shape("f32[<=4]"))
    ... def count(x):
    ...     return xb.ops.get_dimension_size(x, dimension=0)
    >>> xb.evaluate(count, [1.0, 2.0, 3.0])
    np.int32(3)

    Source: StableHLO, get_dimension_size; xla_builder.h, GetDimensionSize.
    """
    ...


@op(Properties("moved", moves=("operand",), chosen_by=("size",)))
def set_dimension_size(operand: Value, size: Value, *, dimension: int) -> Value:
    """Keep the first `size` elements along `dimension`, which becomes dynamic, with the operand's extent as its bound.

    A size above the bound becomes the bound, and a negative size becomes 0. Elements beyond the size are zero.
    Shapes: takes an array of any shape and an s32[]. A constant size does not make the result static, even if it equals
    the bound.
    Raises: not_array, non_scalar, element_type_mismatch, dimension_out_of_range or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4], xb.s32[()])
    ... def first(x, size):
    ...     return xb.ops.set_dimension_size(x, size, dimension=0)
    >>> first.root.shape, xb.evaluate(first, [1.0, 2.0, 3.0, 4.0], 2)
    (f32[<=4], array([1., 2.], dtype=float32))

    Source: xla_builder.h, SetDimensionSize; shape_inference.cc, InferSetDimensionSizeShape.
    """
    ...


@op(Properties("moved", moves=("operand",), chosen_by=("dim_sizes",), states_shape=True))
def dynamic_reshape(
    operand: Value, dim_sizes: Values, *, new_size_bounds: Dims, dims_are_dynamic: tuple[bool, ...]
) -> Value:
    """Reshape to an array with dynamic extents, which the program computes; the elements stay in the same order.

    If dims_are_dynamic[i] is true, the extent of dimension i is dim_sizes[i], clamped to 0..bound; otherwise it is the
    bound. Elements that do not fit into the result are dropped; positions without an element are zero.
    Shapes: takes an array of any shape and an s32[] for each dimension of the result. The product of the bounds is the
    operand's element count.
    Raises: not_array, attribute_length_mismatch, arity_mismatch, non_scalar, element_type_mismatch, negative_size,
    overflow or element_count_mismatch.

    >>> import xbuild as xb
    >>> from shape_inference import parse_shape
    >>> @xb.computation(parse_shape("s32[<=6]"), xb.s32[()], xb.s32[()])
    ... def table(x, rows, columns):
    ...     return xb.ops.dynamic_reshape(x, (rows, columns), new_size_bounds=(2, 3), dims_are_dynamic=(False, True))
    >>> table.root.shape
    s32[2,<=3]
    >>> xb.evaluate(table, [1, 2, 3, 4], 2, 2)
    array([[1, 2],
           [3, 4]], dtype=int32)

    Source: xla_builder.h, DynamicReshape; shape_inference.cc, InferDynamicReshapeShape.
    """
    ...
