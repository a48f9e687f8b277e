"""Index vectors of gather and scatter: slice starts per dimension, clamped starts, and starts as flat indices."""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from .integers import as_unsigned
from .lifting import widened

Starts: TypeAlias = dict[int, Array]
"""For each operand dimension, the starts of all slices, in an array with the batch shape of the index vectors."""


def vectors(indices: Array, index_vector_dim: int) -> Array:
    """The index vectors with their entries along the leading axis: row k has entry k of all vectors."""
    native = widened(np.asarray(indices))
    return native[None] if index_vector_dim == native.ndim else np.moveaxis(native, index_vector_dim, 0)


def clamped(starts: Array, limit: int) -> Array:
    """Starts clamped to 0..limit; unsigned starts are never read as negative."""
    return np.clip(starts, 0, min(limit, int(np.iinfo(starts.dtype).max))).astype(np.intp, copy=False)


def inside(starts: Array, limit: int) -> Array:
    """Whether starts are in 0..limit; read as unsigned, a negative start exceeds the limit."""
    return as_unsigned(starts) <= limit


def batch_numbers(batch: Dims, batching: Dims, indices_batching: Dims, index_vector_dim: int) -> Starts:
    """For each batching dimension of the operand, the batch number of each index vector."""
    axes = [dim - (dim > index_vector_dim) for dim in indices_batching]
    return {dim: _counted(batch, axis) for dim, axis in zip(batching, axes, strict=True)}


def _counted(shape: Dims, axis: int) -> Array:
    column = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return np.broadcast_to(column, shape)


def number(starts: Starts, extents: Dims) -> Array:
    """The flat indices of the starts in an array of these extents."""
    return _sum([start if (step := _step(extents, dim)) == 1 else start * step for dim, start in starts.items()])


def offsets(sizes: Dims, extents: Dims) -> Array:
    """The flat indices of the elements of the slice that starts at 0, in an array of these extents."""
    counts = np.ogrid[tuple(map(slice, sizes))]
    return _sum([count * _step(extents, dim) for dim, count in enumerate(counts)])


def _sum(arrays: list[Array]) -> Array:
    return reduce(np.add, arrays) if arrays else np.zeros((), np.intp)


def _step(extents: Dims, dim: int) -> int:
    """The distance in a flat array between neighbours along a dimension."""
    return int(np.prod(extents[dim + 1 :], dtype=np.int64))
