"""Shape of gather."""

from __future__ import annotations

from .. import dims
from ..dims import array, dynamic_of
from ..indexing import (
    IndexNames,
    check_excluded,
    check_index_map,
    check_pairs,
    check_vectors,
    merge_dimensions,
    without,
)
from ..rules import infer, refuse
from ..types import AnyShape, Dims, Shape, array_shape

_NAMES = IndexNames(
    "start_indices", "start_index_map", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"
)


@infer
def gather(
    operand: AnyShape,
    start_indices: AnyShape,
    *,
    offset_dims: Dims,
    collapsed_slice_dims: Dims,
    start_index_map: Dims,
    operand_batching_dims: Dims,
    start_indices_batching_dims: Dims,
    index_vector_dim: int,
    slice_sizes: Dims,
    indices_are_sorted: bool,
) -> Shape:
    shape, starts = array("operand", operand), array("start_indices", start_indices)
    left_out, batching, starts_batching = collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims
    check_vectors(_NAMES, starts, index_vector_dim)
    batch = without(starts.dims, index_vector_dim)
    _offsets(offset_dims, len(batch) + len(offset_dims))
    check_index_map(_NAMES, start_index_map, index_vector_dim, starts, shape)
    check_excluded(_NAMES, left_out, batching, starts_batching, start_index_map, shape)
    check_pairs(_NAMES, batching, starts_batching, index_vector_dim, shape, starts)
    _sizes(slice_sizes, shape, left_out, batching)
    kept = [dim for dim in range(shape.rank) if dim not in left_out and dim not in batching]
    if len(kept) != len(offset_dims):
        _offset_count(offset_dims, kept, shape)
    sizes = merge_dimensions(offset_dims, [slice_sizes[dim] for dim in kept], batch)
    dims.sizes("the result", sizes)
    if not shape.dynamic and not starts.dynamic:
        return array_shape(shape.dtype, sizes)
    flags = [bool(shape.dynamic) and shape.dynamic[dim] and slice_sizes[dim] == shape.dims[dim] for dim in kept]
    batch_flags = without(starts.dynamic or (False,) * starts.rank, index_vector_dim)
    return Shape(shape.dtype, sizes, dynamic_of(len(sizes), merge_dimensions(offset_dims, flags, batch_flags)))


def _offsets(offset_dims: Dims, rank: int) -> None:
    """Refuse offset_dims that are out of range, repeated or not ascending."""
    for dim in offset_dims:
        if not 0 <= dim < rank:
            refuse(
                "dimension_out_of_range",
                f"dimension {dim} in offset_dims {list(offset_dims)} is out of range for the result; "
                f"{dims.legal_dimensions(rank)}",
            )
    dims.distinct("offset_dims", offset_dims)
    if list(offset_dims) != sorted(offset_dims):
        refuse(
            "bad_order",
            f"offset_dims must be in ascending order, got {list(offset_dims)}",
            f"the ascending order is {sorted(offset_dims)}",
        )


def _offset_count(offset_dims: Dims, kept: list[int], shape: Shape) -> None:
    refuse(
        "attribute_length_mismatch",
        f"offset_dims must have one entry for each dimension of operand {shape} that is neither collapsed nor batching "
        f"({kept}): expected {len(kept)}, got {len(offset_dims)} in {list(offset_dims)}",
    )


def _sizes(slice_sizes: Dims, shape: Shape, collapsed: Dims, batching: Dims) -> None:
    """Refuse slice sizes greater than the extent, or greater than 1 in a collapsed or batching dimension."""
    dims.length("slice_sizes", slice_sizes, shape.rank, f"dimension of operand {shape}")
    for dim, (size, extent) in enumerate(zip(slice_sizes, shape.dims, strict=True)):
        if not 0 <= size <= extent:
            dims.sizes("slice_sizes", slice_sizes)
            refuse(
                "index_out_of_range",
                f"slice_sizes[{dim}]={size} exceeds the extent {extent} of dimension {dim} of operand {shape}",
            )
        for attribute, missing in (("collapsed_slice_dims", collapsed), ("operand_batching_dims", batching)):
            if size > 1 and dim in missing:
                refuse(
                    "invalid_attribute",
                    f"slice_sizes[{dim}] must be at most 1 because {attribute} {list(missing)} contains dimension "
                    f"{dim}, got {size} in {list(slice_sizes)}",
                )
