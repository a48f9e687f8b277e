"""Index vectors of gather and scatter: the start of each slice in each dimension, clamped, as a flat number."""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from .integers import as_unsigned
from .lifting import widened

Starts: TypeAlias = dict[int, Array]
"""For a dimension of the operand the starts of all slices, in an array with the extents of the index vectors' batch."""


def vectors(indices: Array, index_vector_dim: int) -> Array:
    """Entry k of all index vectors as row k."""
    native = widened(np.asarray(indices))
    return native[None] if index_vector_dim == native.ndim else np.moveaxis(native, index_vector_dim, 0)


def clamped(starts: Array, limit: int) -> Array:
    """Starts moved into 0..limit; one without a sign is large, never negative."""
    return np.clip(starts, 0, min(limit, int(np.iinfo(starts.dtype).max))).astype(np.intp, copy=False)


def inside(starts: Array, limit: int) -> Array:
    """Whether starts are in 0..limit; without its sign a negative one is too large."""
    return as_unsigned(starts) <= limit


def batch_numbers(batch: Dims, batching: Dims, indices_batching: Dims, index_vector_dim: int) -> Starts:
    """For each batching dimension of the operand the number of the batch."""
    axes = [dim - (dim > index_vector_dim) for dim in indices_batching]
    return {dim: _counted(batch, axis) for dim, axis in zip(batching, axes, strict=True)}


def _counted(shape: Dims, axis: int) -> Array:
    column = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return np.broadcast_to(column, shape)


def number(starts: Starts, extents: Dims) -> Array:
    """The starts in a flat array of these extents."""
    return _sum([start if (step := _step(extents, dim)) == 1 else start * step for dim, start in starts.items()])


def offsets(sizes: Dims, extents: Dims) -> Array:
    """The elements of the slice at 0 in a flat array of these extents."""
    counts = np.ogrid[tuple(map(slice, sizes))]
    return _sum([count * _step(extents, dim) for dim, count in enumerate(counts)])


def _sum(arrays: list[Array]) -> Array:
    return reduce(np.add, arrays) if arrays else np.zeros((), np.intp)


def _step(extents: Dims, dim: int) -> int:
    """How far apart two neighbours of a dimension are in a flat array."""
    return int(np.prod(extents[dim + 1 :], dtype=np.int64))
