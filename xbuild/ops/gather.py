"""Gather: slices of an array, taken at the places that an array of indices lists."""

from __future__ import annotations

from shape_inference import Dims

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties


@op(Properties("moved", moves=("operand",), chosen_by=("start_indices",)))
def gather(
    operand: Value,
    start_indices: Value,
    *,
    offset_dims: Dims,
    collapsed_slice_dims: Dims,
    start_index_map: Dims,
    operand_batching_dims: Dims = (),
    start_indices_batching_dims: Dims = (),
    index_vector_dim: int,
    slice_sizes: Dims,
    indices_are_sorted: bool = False,
) -> Value:
    """For each index vector, take a slice of size `slice_sizes` at that index, shifted to lie inside the operand.

    Formula: result[out] = operand[start + offset]. `offset` is out[offset_dims[k]] in the k-th dimension that is
    neither collapsed nor batching, otherwise 0. `start` is clamp(0, vector[k], extent - slice size) in dimension
    start_index_map[k], where `vector` is start_indices at the other entries of out. In a batching dimension, `start` is
    the batch index itself.
    Shapes: takes an array of any shape, and integer index vectors along `index_vector_dim`. If
    `index_vector_dim` equals the rank, each element is an index vector of length 1.
    Result: `offset_dims` are the dimensions of the slice, without the collapsed and batching ones, whose slice size is
    1. The other dimensions are those of start_indices without `index_vector_dim`. `indices_are_sorted` is a promise and
    does not change any value.
    Raises: not_array, element_type_unsupported, dimension_out_of_range, duplicate_dimension, bad_order,
    attribute_length_mismatch, dimension_mismatch, index_out_of_range, negative_size, invalid_attribute or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3, 2], xb.s32[2])
    ... def rows(table, numbers):
    ...     return xb.ops.gather(
    ...         table, numbers, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1,
    ...         slice_sizes=(1, 2),
    ...     )
    >>> xb.evaluate(rows, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1, 9])
    array([[3., 4.],
           [5., 6.]], dtype=float32)

    Source: Operation Semantics, Gather; StableHLO, gather (batching dimensions).
    """
