"""Shape of scatter."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..dims import array, same_type
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
from ..types import AnyShape, Dims, ProgramShape, Shape, TupleShape, array_shape
from .reduction import accumulators

_NAMES = IndexNames(
    "scatter_indices",
    "scatter_dims_to_operand_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
)


@infer
def scatter(
    operands: Sequence[AnyShape],
    scatter_indices: AnyShape,
    updates: Sequence[AnyShape],
    *,
    to_apply: ProgramShape,
    update_window_dims: Dims,
    inserted_window_dims: Dims,
    scatter_dims_to_operand_dims: Dims,
    input_batching_dims: Dims,
    scatter_indices_batching_dims: Dims,
    index_vector_dim: int,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> AnyShape:
    arrays, given = _arrays(operands, updates)
    shape, indices = arrays[0], array("scatter_indices", scatter_indices)
    left_out, batching, indices_batching = inserted_window_dims, input_batching_dims, scatter_indices_batching_dims
    check_vectors(_NAMES, indices, index_vector_dim)
    dims.dimensions("update_window_dims", update_window_dims, "updates", given[0], ascending=True)
    check_index_map(_NAMES, scatter_dims_to_operand_dims, index_vector_dim, indices, shape)
    check_excluded(_NAMES, left_out, batching, indices_batching, scatter_dims_to_operand_dims, shape)
    check_pairs(_NAMES, batching, indices_batching, index_vector_dim, shape, indices)
    _ranks(shape, indices, given[0], update_window_dims, left_out, batching, index_vector_dim)
    kept = [dim for dim in range(shape.rank) if dim not in left_out and dim not in batching]
    _extents(shape, indices, given[0], update_window_dims, kept, without(indices.dims, index_vector_dim))
    types = accumulators(to_apply, arrays, [array_shape(each.dtype, ()) for each in given])
    results = [each.with_dtype(dtype) for each, dtype in zip(arrays, types, strict=True)]
    return results[0] if len(results) == 1 else TupleShape(results)


def _arrays(operands: Sequence[AnyShape], updates: Sequence[AnyShape]) -> tuple[list[Shape], list[Shape]]:
    """The shapes of operands and updates: as many updates as operands, of equal extents and compatible types."""
    if not operands or len(operands) != len(updates):
        refuse(
            "arity_mismatch",
            "expected at least 1 operand, followed by scatter_indices and one update for each operand, got "
            f"{len(operands) + 1 + len(updates)} arrays: {len(operands)} operands, scatter_indices and {len(updates)} "
            "updates",
        )
    arrays, given = _alike("operand", operands), _alike("update", updates)
    for number, (left, right) in enumerate(zip(arrays, given, strict=True)):
        same_type(f"operands[{number}]", left, f"updates[{number}]", right, mixed_floats=True)
    return arrays, given


def _alike(name: str, shapes: Sequence[AnyShape]) -> list[Shape]:
    found = [array(f"{name}s[{number}]", shape) for number, shape in enumerate(shapes)]
    for number, each in enumerate(found):
        if each.dims != found[0].dims:
            kind = "dimension_mismatch" if each.rank == found[0].rank else "rank_mismatch"
            refuse(kind, f"{name}s[0] is {found[0]} and {name}s[{number}] is {each}; their extents must be equal")
    return found


def _ranks(
    shape: Shape, indices: Shape, update: Shape, window: Dims, inserted: Dims, batching: Dims, vectors: int
) -> None:
    """Refuse an operand or updates whose rank is not the number of the dimensions that the attributes describe."""
    places = len(without(indices.dims, vectors))
    if update.rank != len(window) + places:
        refuse(
            "rank_mismatch",
            f"expected updates of rank {len(window) + places}, got {update} of rank {update.rank}: update_window_dims "
            f"{list(window)} adds {len(window)} to the rank, and the dimensions of scatter_indices {indices} "
            f"other than index_vector_dim={vectors} add {places}",
        )
    covered = len(window) + len(inserted) + len(batching)
    if covered != shape.rank:
        refuse(
            "rank_mismatch",
            f"operand {shape} has rank {shape.rank}, but update_window_dims {list(window)}, inserted_window_dims "
            f"{list(inserted)} and input_batching_dims {list(batching)} have {covered} entries in total",
        )


def _extents(shape: Shape, indices: Shape, update: Shape, window: Dims, kept: list[int], places: Dims) -> None:
    """Refuse a window that is larger than the operand, and updates that are not one for each index vector."""
    for dim, target in zip(window, kept, strict=True):
        if update.dims[dim] > shape.dims[target]:
            refuse(
                "index_out_of_range",
                f"the extent {update.dims[dim]} of window dimension {dim} of updates {update} exceeds the extent "
                f"{shape.dims[target]} of dimension {target} of operand {shape}",
            )
    sizes = [update.dims[dim] for dim in window]
    for dim, (have, wanted) in enumerate(zip(update.dims, merge_dimensions(window, sizes, places), strict=True)):
        if have != wanted:
            refuse(
                "dimension_mismatch",
                f"dimension {dim} of updates {update} has extent {have}, but scatter_indices {indices} has {wanted} "
                "index vectors along that dimension",
            )
