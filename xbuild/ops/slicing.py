"""Ops that read or replace a window of an array, at static or at computed places."""

from __future__ import annotations

from shape_inference import Dims

from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties


@op(Properties("moved", moves=("operand",), is_view=True, states_shape=True))
def slice(operand: Value, *, start_indices: Dims, limit_indices: Dims, strides: Dims = ()) -> Value:
    """Take every stride-th element from start to limit (exclusive) in each dimension; by default all elements.

    Shapes: takes an array of any shape, with 0 <= start <= limit <= extent and stride >= 1. Each extent of the result
    is ceil((limit - start) / stride).
    Raises: not_array, attribute_length_mismatch, index_out_of_range or non_positive.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[5])
    ... def middle(x):
    ...     return xb.ops.slice(x, start_indices=(2,), limit_indices=(4,))
    >>> xb.evaluate(middle, [0.0, 1.0, 2.0, 3.0, 4.0])
    array([2., 3.], dtype=float32)

    Source: Operation Semantics, Slice.
    """
    ...


@op(Properties("moved", moves=("operand",), chosen_by=("start_indices",), states_shape=True))
def dynamic_slice(operand: Value, start_indices: Values, *, dynamic_slice_sizes: Dims) -> Value:
    """Take the window of these sizes that begins at `start_indices`, shifted to lie inside the operand.

    Formula: start[d] = clamp(0, start[d], extent[d] - size[d]).
    Shapes: takes an array of any shape and its start indices: either one integer scalar for each dimension, all of the
    same type, or one vector of such integers.
    Raises: not_array, arity_mismatch, rank_mismatch, non_scalar, dimension_mismatch, element_type_unsupported,
    element_type_mismatch, attribute_length_mismatch, negative_size or index_out_of_range.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[5], xb.s32[()])
    ... def pair_at(x, i):
    ...     return xb.ops.dynamic_slice(x, i, dynamic_slice_sizes=(2,))
    >>> xb.evaluate(pair_at, [0.0, 1.0, 2.0, 3.0, 4.0], 9)
    array([3., 4.], dtype=float32)

    Source: Operation Semantics, DynamicSlice.
    """
    ...


@op(
    Properties(
        "moved",
        moves=("operand", "update"),
        chosen_by=("start_indices",),
        mixes_precisions=True,
        states_shape=True,
    )
)
def dynamic_update_slice(operand: Value, update: Value, start_indices: Values) -> Value:
    """Write `update` over the window that begins at `start_indices`, shifted to lie inside the operand.

    Formula: start[d] = clamp(0, start[d], extent[d] - update extent[d]).
    Shapes: takes two arrays of the same rank and element type. No extent of the update is larger than the operand's.
    The start indices are as in dynamic_slice.
    Raises: not_array, rank_mismatch, element_type_mismatch, index_out_of_range, arity_mismatch, non_scalar,
    dimension_mismatch or element_type_unsupported.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[5], xb.f32[2], xb.s32[()])
    ... def put(x, update, i):
    ...     return xb.ops.dynamic_update_slice(x, update, i)
    >>> xb.evaluate(put, [0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0], 2)
    array([0., 1., 5., 6., 4.], dtype=float32)

    Source: Operation Semantics, DynamicUpdateSlice.
    """
    ...
