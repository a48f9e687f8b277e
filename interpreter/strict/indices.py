"""Strict rules for indices: clamped starts, dropped updates, and indices that are not sorted or unique as declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from ..kernels.indexing import batch_numbers, vectors
from .born import scatter_births
from .table import Evaluation, Spotted, first, strict


@strict
def dynamic_slice(it: Evaluation) -> Iterator[Spotted]:
    operand, starts = it.operands
    yield from _moved(starts, np.shape(operand), it.attributes.dynamic_slice_sizes)


@strict
def dynamic_update_slice(it: Evaluation) -> Iterator[Spotted]:
    operand, update, starts = it.operands
    yield from _moved(starts, np.shape(operand), np.shape(update))


def _moved(starts: Sequence[Any], extents: Dims, sizes: Dims) -> Iterator[Spotted]:
    """Find clamped starts, with one finding for each dimension."""
    numbers = starts[0] if len(starts) == 1 and np.ndim(starts[0]) else starts
    for dim, (start, extent, size) in enumerate(zip(numbers, extents, sizes, strict=True)):
        moved = max(0, min(int(start), extent - size))
        if moved != int(start):
            what = f"becomes {moved}: in dimension {dim} 0..{extent - size} is inside"
            yield Spotted("index_clamped", what, None, ((f"start_indices[{dim}]", start),), part=dim)


@strict
def conditional(it: Evaluation) -> Iterator[Spotted]:
    index, *_ = it.operands
    last = len(it.instruction.called) - 1
    if it.instruction.operands[0].shape.dtype.kind != "pred" and not 0 <= int(index) <= last:  # type: ignore[union-attr]
        what = f"takes branch {last}: there are 0..{last}"
        yield Spotted("index_clamped", what, None, (("branch_index", index),))


@strict
def gather(it: Evaluation) -> Iterator[Spotted]:
    a, (operand, indices) = it.attributes, it.operands
    extents = np.shape(operand)
    entries = vectors(indices, a.index_vector_dim)
    for row, dim in enumerate(a.start_index_map):
        last = extents[dim] - min(a.slice_sizes[dim], extents[dim])
        if found := first(_outside(entries[row], last)):
            place, further = found
            start = entries[row][place]
            what = f"becomes {max(0, min(int(start), last))}: in dimension {dim} 0..{last} is inside"
            name = _entry("start_indices", indices, place, row, a.index_vector_dim)
            yield Spotted("index_clamped", what, None, ((name, start),), further, dim)
    if a.indices_are_sorted:
        yield from _unsorted(_rows(entries, _batches(it)))


@strict
def scatter(it: Evaluation) -> Iterator[Spotted]:
    a, (operands, indices, updates) = it.attributes, it.operands
    extents = np.shape(operands[0])
    entries = vectors(indices, a.index_vector_dim)
    sizes = _window_sizes(it, np.shape(updates[0]), len(extents))
    for row, dim in enumerate(a.scatter_dims_to_operand_dims):
        last = extents[dim] - sizes[dim]
        if found := first(_outside(entries[row], last)):
            place, further = found
            name = _entry("scatter_indices", indices, place, row, a.index_vector_dim)
            what = f"drops the update: in dimension {dim} 0..{last} is inside"
            yield Spotted("update_dropped", what, None, ((name, entries[row][place]),), further, dim)
    rows = _rows(entries, _batches(it))
    if a.indices_are_sorted:
        yield from _unsorted(rows)
    if a.unique_indices and (again := len(rows) - len({tuple(row) for row in rows.tolist()})):
        yield Spotted("promise_broken", f"unique_indices=true, and {again} index vectors come again")
    yield from scatter_births(it)


def _window_sizes(it: Evaluation, update: Dims, rank: int) -> Dims:
    a = it.attributes
    given = iter(a.update_window_dims)
    left_out = a.inserted_window_dims + a.input_batching_dims
    return tuple(1 if dim in left_out else update[next(given)] for dim in range(rank))


def _outside(starts: Array, last: int) -> Array:
    return np.asarray((starts < 0) | (starts > last))


def _entry(name: str, indices: Array, place: tuple[int, ...], row: int, index_vector_dim: int) -> str:
    """The name and index, in the indices operand, of an index vector's entry; scalar vectors may have no dimension."""
    vector = (row,) if np.ndim(indices) > len(place) else ()
    index = [*place[:index_vector_dim], *vector, *place[index_vector_dim:]]
    return f"{name}{index}" if index else name


def _batches(it: Evaluation) -> tuple[Dims, Dims, int]:
    a = it.attributes
    if it.instruction.opcode == "gather":
        return a.operand_batching_dims, a.start_indices_batching_dims, a.index_vector_dim
    return a.input_batching_dims, a.scatter_indices_batching_dims, a.index_vector_dim


def _rows(entries: Array, batching: tuple[Dims, Dims, int]) -> Array:
    """The index vectors as rows of integers, each preceded by its batch numbers."""
    numbers = batch_numbers(entries.shape[1:], *batching).values()
    columns = [each.reshape(-1) for each in (*numbers, *entries)]
    return np.stack(columns, -1) if columns else np.zeros((int(np.prod(entries.shape[1:])), 0), np.int64)


def _unsorted(rows: Array) -> Iterator[Spotted]:
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    if found := first(np.any(rows[order] != rows, -1)):
        yield Spotted("promise_broken", f"indices_are_sorted=true, and index vector {found[0][0]} is out of order")
