"""Gather, scatter and the window ops element by element, as Operation Semantics has them: slow, and plain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]


def indices(shape: Any) -> Iterator[Index]:
    return itertools.product(*map(range, shape))


def vector_at(array: Array, batch: Index, index_vector_dim: int) -> list[int]:
    """S[i] = array[Combine(batch, i)]."""
    if index_vector_dim == array.ndim:
        return [int(array[batch])]
    size = array.shape[index_vector_dim]
    return [int(array[(*batch[:index_vector_dim], i, *batch[index_vector_dim:])]) for i in range(size)]


def batch_at(batch: Index, dim: int, index_vector_dim: int) -> int:
    """The entry of a batch index for a dimension of the index array."""
    return batch[dim if dim < index_vector_dim else dim - 1]


def gather(
    operand: Array,
    start_indices: Array,
    *,
    offset_dims: Index,
    collapsed_slice_dims: Index,
    start_index_map: Index,
    index_vector_dim: int,
    slice_sizes: Index,
    operand_batching_dims: Index = (),
    start_indices_batching_dims: Index = (),
    indices_are_sorted: bool = False,
) -> Array:
    batch_shape = [n for dim, n in enumerate(start_indices.shape) if dim != index_vector_dim]
    missing = (*collapsed_slice_dims, *operand_batching_dims)
    expand = [dim for dim in range(operand.ndim) if dim not in missing]
    rank = len(batch_shape) + len(offset_dims)
    batch_dims = [dim for dim in range(rank) if dim not in offset_dims]
    shape = [0] * rank
    for dim, size in zip(batch_dims, batch_shape, strict=True):
        shape[dim] = size
    for dim, source in zip(offset_dims, expand, strict=True):
        shape[dim] = slice_sizes[source]
    result = np.zeros(shape, operand.dtype)
    for out in indices(shape):
        batch = tuple(out[dim] for dim in batch_dims)
        found = [0] * operand.ndim
        for dim, start in zip(start_index_map, vector_at(start_indices, batch, index_vector_dim), strict=True):
            found[dim] = max(0, min(start, operand.shape[dim] - slice_sizes[dim]))
        for dim, other in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            found[dim] = batch_at(batch, other, index_vector_dim)
        for dim, source in zip(offset_dims, expand, strict=True):
            found[source] += out[dim]
        result[out] = operand[tuple(found)]
    return result


def scatter(
    operand: Array,
    scatter_indices: Array,
    updates: Array,
    to_apply: Callable[[Any, Any], Any],
    *,
    update_window_dims: Index,
    inserted_window_dims: Index,
    scatter_dims_to_operand_dims: Index,
    index_vector_dim: int,
    input_batching_dims: Index = (),
    scatter_indices_batching_dims: Index = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    missing = (*inserted_window_dims, *input_batching_dims)
    expand = [dim for dim in range(operand.ndim) if dim not in missing]
    sizes = dict(zip(expand, (updates.shape[dim] for dim in update_window_dims), strict=True))
    scatter_dims = [dim for dim in range(updates.ndim) if dim not in update_window_dims]
    result = operand.copy()
    for u in indices(updates.shape):
        batch = tuple(u[dim] for dim in scatter_dims)
        found = [0] * operand.ndim
        for dim, start in zip(
            scatter_dims_to_operand_dims, vector_at(scatter_indices, batch, index_vector_dim), strict=True
        ):
            found[dim] = start
        for dim, other in zip(input_batching_dims, scatter_indices_batching_dims, strict=True):
            found[dim] = batch_at(batch, other, index_vector_dim)
        if any(not 0 <= start <= operand.shape[dim] - sizes.get(dim, 1) for dim, start in enumerate(found)):
            continue
        for dim, source in zip(update_window_dims, expand, strict=True):
            found[source] += u[dim]
        result[tuple(found)] = to_apply(result[tuple(found)], updates[u])
    return result


def base_of(window: Any, place: Index, offset: Index, extents: Index) -> Index | None:
    """The element that an offset of the window at a place meets; None for padding and holes."""
    found = []
    for dim, p, k, extent in zip(window, place, offset, extents, strict=True):
        base = p * dim.stride + k * dim.window_dilation - dim.padding_low
        if base % dim.base_dilation or not 0 <= base // dim.base_dilation < extent:
            return None
        found.append(base // dim.base_dilation)
    return tuple(found)


def places_of(window: Any, extents: Index) -> list[int]:
    found = []
    for dim, extent in zip(window, extents, strict=True):
        base = (extent - 1) * dim.base_dilation + 1 if extent else 0
        padded, span = dim.padding_low + base + dim.padding_high, (dim.size - 1) * dim.window_dilation + 1
        found.append(0 if padded <= 0 or span > padded else (padded - span) // dim.stride + 1)
    return found


def reduce_window(operand: Array, init: Any, to_apply: Callable[[Any, Any], Any], window: Any) -> Array:
    result = np.zeros(places_of(window, operand.shape), operand.dtype)
    for place in indices(result.shape):
        value = init
        for offset in indices(dim.size for dim in window):
            where = base_of(window, place, offset, operand.shape)
            if where is not None:
                value = to_apply(value, operand[where])
        result[place] = value
    return result


def select_and_scatter(
    operand: Array,
    source: Array,
    init: Any,
    select: Callable[[Any, Any], bool],
    scatter: Callable[[Any, Any], Any],
    window: Any,
) -> Array:
    result = np.full(operand.shape, init, operand.dtype)
    for place in indices(source.shape):
        chosen = None
        for offset in indices(dim.size for dim in window):
            where = base_of(window, place, offset, operand.shape)
            if where is not None and (chosen is None or not select(operand[chosen], operand[where])):
                chosen = where
        if chosen is not None:
            result[chosen] = scatter(result[chosen], source[place])
    return result


def convolution(
    lhs: Array, rhs: Array, window: Any, numbers: Any, dtype: Any, feature_groups: int = 1, batch_groups: int = 1
) -> Array:
    image = lhs.transpose(numbers.lhs).astype(dtype)
    kernel = rhs.transpose(numbers.rhs).astype(dtype)
    outputs, inputs = kernel.shape[:2]
    batch = image.shape[0] // batch_groups
    result = np.zeros((batch, outputs, *places_of(window, image.shape[2:])), dtype)
    for b, o, *place in indices(result.shape):
        group = o // (outputs // (feature_groups * batch_groups))
        row = b + (group * batch if batch_groups > 1 else 0)
        first = group * inputs if feature_groups > 1 else 0
        value = dtype(0)
        for i in range(inputs):
            for offset in indices(dim.size for dim in window):
                where = base_of(window, tuple(place), offset, image.shape[2:])
                k = tuple(dim.size - 1 - n if dim.window_reversal else n for dim, n in zip(window, offset, strict=True))
                if where is not None:
                    value += image[(row, first + i, *where)] * kernel[(o, i, *k)]
        result[(b, o, *place)] = value
    return result.transpose(np.argsort(numbers.output))
