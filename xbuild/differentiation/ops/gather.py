"""The cotangent of gather: each slice is added where it was taken from."""

from __future__ import annotations

from shape_inference import Dims

from ... import ops
from ...core.builder import Value
from ..forms.arrays import array_of
from ..forms.indexing import Places
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
    """Index vectors are clamped first, unless they are known to be inside, since scatter drops what gather moves."""
    if not array_of(back.ct).size:
        return None, None
    places = Places(
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        operand_batching_dims,
        start_indices_batching_dims,
        index_vector_dim,
    )
    starts = places.clamped(start_indices, places.last_starts(operand, slice_sizes))
    is_sorted = indices_are_sorted and (starts is start_indices or len(start_index_map) == 1)
    return places.scattered(back.zeros(operand), starts, back.ct, ops.add, is_sorted), None
