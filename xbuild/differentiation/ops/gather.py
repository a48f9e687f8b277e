"""The cotangent of gather: each slice is added back to where it was taken from."""

from __future__ import annotations

from shape_inference import Dims

from ... import ops
from ...core.builder import Value
from ..arrays import array_shape
from ..indexing import SlicePlaces
from ..rules import Cotangents, Pullback, vjp


@vjp
def gather(
    back: Pullback,
    operand: Value,
    start_indices: Value,
    *,
    offset_dims: Dims,
    collapsed_slice_dims: Dims,
    start_index_map: Dims,
    operand_batching_dims: Dims,
    start_indices_batching_dims: Dims,
    index_vector_dim: int,
    slice_sizes: Dims,
    indices_are_sorted: bool,
) -> Cotangents:
    """Index vectors not known to be in bounds are clamped first, since scatter drops what gather clamps."""
    if not array_shape(back.ct).size:
        return None, None
    places = SlicePlaces(
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        operand_batching_dims,
        start_indices_batching_dims,
        index_vector_dim,
    )
    starts = places.clamp(start_indices, places.last_starts(operand, slice_sizes))
    is_sorted = indices_are_sorted and (starts is start_indices or len(start_index_map) == 1)
    return places.scatter(back.zeros(operand), starts, back.ct, ops.add, is_sorted), None
