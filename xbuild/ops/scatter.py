"""Scatter: slices of an array combined with updates, at the places that an array of indices lists."""

from __future__ import annotations

from shape_inference import Dims

from ..core.attributes import Region
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties


@op(Properties("mixed", chosen_by=("scatter_indices",), calls="elements"))
def scatter(
    operands: Values,
    scatter_indices: Value,
    updates: Values,
    *,
    to_apply: Region,
    update_window_dims: Dims,
    inserted_window_dims: Dims,
    scatter_dims_to_operand_dims: Dims,
    input_batching_dims: Dims = (),
    scatter_indices_batching_dims: Dims = (),
    index_vector_dim: int,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Value:
    """Update the elements of the operands that the index vectors select: each becomes to_apply(element, update).

    Formula: result[start + offset] = to_apply(result[start + offset], updates[u]) for each index u of the updates.
    `offset` is u[update_window_dims[k]] in the k-th dimension that is neither inserted nor batching, otherwise 0.
    `start` is vector[k] in dimension scatter_dims_to_operand_dims[k], where `vector` is scatter_indices at the other
    entries of u. A window that is not entirely inside the operand changes nothing. Updates are applied in order here,
    so the last of several updates overwrites the others; XLA does not define the order. Floats narrower than 32 bits
    are rounded after each update.
    Shapes: takes N operands with equal extents, integer index vectors along `index_vector_dim`, and N updates with
    equal extents. If `index_vector_dim` equals the rank, each element is an index vector of length 1. `to_apply` maps
    (T_0, ..., T_N-1, T_0, ..., T_N-1) -> T_0, or the tuple of all T_i if N > 1; T_i is the operand's type or a wider
    float. The result has the operands' extents, and is a tuple if N > 1. `indices_are_sorted` and `unique_indices` are
    promises and do not change any value.
    Raises: arity_mismatch, not_array, rank_mismatch, element_type_mismatch, element_type_unsupported, bad_order,
    dimension_out_of_range, duplicate_dimension, attribute_length_mismatch, dimension_mismatch, index_out_of_range,
    invalid_attribute or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4], xb.s32[3], xb.f32[3])
    ... def add_at(x, places, updates):
    ...     return xb.ops.scatter(
    ...         x, places, updates, to_apply=xb.add, update_window_dims=(), inserted_window_dims=(0,),
    ...         scatter_dims_to_operand_dims=(0,), index_vector_dim=1
    ...     )
    >>> xb.evaluate(add_at, [1.0, 1.0, 1.0, 1.0], [0, 2, 0], [10.0, 20.0, 30.0])
    array([41.,  1., 21.,  1.], dtype=float32)

    Source: Operation Semantics, Scatter; StableHLO, scatter (batching dimensions, several operands).
    """
