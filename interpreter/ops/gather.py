"""The value of gather: by whole rows, by elements if slices are small, else through a view of all windows."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from shape_inference import Dims
from shape_inference.indexing import merge_dimensions
from xbuild.core.attributes import Array

from ..kernels.indexing import Starts, batch_numbers, clamped, number, offsets, vectors
from ..rules import compute

BLOCK = 1 << 14
"""The number of small slices gathered at once, so that the element numbers stay in the cache."""

SMALL = 16
"""The largest slice size whose elements are gathered by element number."""


@compute
def gather(
    operand: Array,
    start_indices: Array,
    *,
    offset_dims: Dims,
    collapsed_slice_dims: Dims,
    start_index_map: Dims,
    operand_batching_dims: Dims,
    start_indices_batching_dims: Dims,
    index_vector_dim: int,
    slice_sizes: Dims,
    indices_are_sorted: bool,
) -> Array:
    operand = np.asarray(operand)
    left_out = collapsed_slice_dims + operand_batching_dims
    sizes = tuple(1 if dim in left_out else min(slice_sizes[dim], operand.shape[dim]) for dim in range(operand.ndim))
    entries = vectors(start_indices, index_vector_dim)
    batch = entries.shape[1:]
    starts = batch_numbers(batch, operand_batching_dims, start_indices_batching_dims, index_vector_dim)
    starts |= {
        dim: clamped(e, operand.shape[dim] - sizes[dim]) for dim, e in zip(start_index_map, entries, strict=True)
    }
    offset_sizes = tuple(sizes[dim] for dim in range(operand.ndim) if dim not in left_out)
    if not operand.size or not prod(batch) or not prod(offset_sizes):
        return np.zeros(merge_dimensions(offset_dims, offset_sizes, batch), operand.dtype)
    taken = _take_slices(operand, starts, sizes, batch)
    if taken.shape != batch + offset_sizes:
        taken = taken.reshape(batch + offset_sizes)
    order = merge_dimensions(offset_dims, range(len(batch), taken.ndim), range(len(batch)))
    return taken if order == tuple(range(taken.ndim)) else taken.transpose(order)


def _take_slices(operand: Array, starts: Starts, sizes: Dims, batch: Dims) -> Array:
    """The slices, with batch dimensions first, then slice dimensions, of which those of size 1 may be left out."""
    if not starts:
        return np.broadcast_to(operand[tuple(map(slice, sizes))], batch + sizes)
    moving = sorted(starts)
    rest = [dim for dim in range(operand.ndim) if dim not in starts]
    if all(sizes[dim] == 1 for dim in moving) and all(sizes[dim] == operand.shape[dim] for dim in rest):
        if len(moving) == 1:
            return _take_along(operand, starts[moving[0]], moving[0])
        if moving[-1] == len(moving) - 1:
            rows = operand.reshape(-1, *operand.shape[len(moving) :])
            return np.take(rows, number(starts, operand.shape[: len(moving)]), axis=0, mode="clip")
    if prod(sizes) <= SMALL:
        return _take_by_element(operand, number(starts, operand.shape), sizes)
    return _take_through_windows(operand, starts, sizes)


def _take_along(operand: Array, starts: Array, axis: int) -> Array:
    """The slices of size 1 at the starts along one axis."""
    taken = np.take(operand, starts, axis=axis, mode="clip")
    return np.moveaxis(taken, range(axis, axis + starts.ndim), range(starts.ndim)) if axis else taken


def _take_by_element(operand: Array, first: Array, sizes: Dims) -> Array:
    """The slices gathered by element number, a block of slices at a time."""
    flat, steps = operand.reshape(-1), offsets(sizes, operand.shape).reshape(-1)
    taken = np.empty(first.shape + sizes, operand.dtype)
    rows, starts = taken.reshape(-1, len(steps)), first.reshape(-1, 1)
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        np.take(flat, starts[part] + steps, out=rows[part], mode="clip")
    return taken


def _take_through_windows(operand: Array, starts: Starts, sizes: Dims) -> Array:
    """The slices selected by the starts from a strided view of all windows.

    NumPy does not make such a view of types that it does not have itself, which are read as bits.
    """
    dtype = operand.dtype
    if dtype.isbuiltin != 1:
        operand = operand.view(f"u{dtype.itemsize}")
    moving = sorted(starts)
    places = tuple(operand.shape[dim] - sizes[dim] + 1 for dim in moving)
    strides = tuple(operand.strides[dim] for dim in moving)
    windows = as_strided(operand, places + sizes, strides + operand.strides, writeable=False)
    taken: Array = windows[tuple(starts[dim] for dim in moving)]
    return taken.view(dtype)
