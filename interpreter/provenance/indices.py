"""Provenance through indices: the index vectors that selected an element, and the scatter updates combined in it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..kernels.indexing import batch_numbers, inside, number, offsets, vectors


def chosen(instruction: Instruction, indices: Any) -> Array:
    """For each result element, the elements of the index operand that selected it."""
    dims = instruction.shape.dims  # type: ignore[union-attr]
    if instruction.opcode != "gather":
        return np.broadcast_to(np.arange(np.size(indices)), (prod(dims), np.size(indices)))
    given = instruction.attribute_values()
    rows = _rows(indices, given["index_vector_dim"])
    batch = iter(rows.shape)
    spread = [1 if axis in given["offset_dims"] else next(batch) for axis in range(len(dims))]
    count = rows.shape[-1]
    return np.broadcast_to(rows.reshape(*spread, count), (*dims, count)).reshape(-1, count)


def _rows(indices: Any, dim: int) -> Array:
    """The element numbers of the indices, with the entries of each index vector along the last axis."""
    elements = np.arange(np.size(indices)).reshape(np.shape(indices))
    return elements[..., None] if dim == elements.ndim else np.moveaxis(elements, dim, -1)


def scattered(operand: Any, indices: Any, update: Any, given: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """The tables of the operand, of the index vectors and of the updates for each result element of a scatter.

    If updates replace elements, only the last update of an element counts, and the operand's element does not.
    """
    target, rows = _targets(np.shape(operand), indices, np.shape(update), given)
    size, places = np.size(operand), np.flatnonzero(target >= 0)
    places = places[np.argsort(target[places], kind="stable")]
    at = target[places]
    root, own = given["to_apply"].root, np.arange(size)
    if root.opcode == "parameter" and root.attributes.number == 1:
        last = np.append(at[1:] != at[:-1], [True] * bool(at.size))
        at, places = at[last], places[last]
        own[at] = -1
    turn = np.arange(at.size) - np.searchsorted(at, at)
    most = int(turn.max(initial=0)) + 1
    updates = np.full((size, most), -1)
    updates[at, turn] = places
    vector = np.full((size, most, rows.shape[-1]), -1)
    vector[at, turn] = rows[places]
    return own[:, None], vector.reshape(size, -1), updates


def _targets(extents: Dims, indices: Any, update: Dims, given: Mapping[str, Any]) -> tuple[Array, Array]:
    """For each element of an update, its flat index in the operand (-1 if dropped) and its index vector."""
    window, dim = given["update_window_dims"], given["index_vector_dim"]
    entries = vectors(indices, dim)
    batch = entries.shape[1:]
    starts = batch_numbers(batch, given["input_batching_dims"], given["scatter_indices_batching_dims"], dim)
    starts |= dict(zip(given["scatter_dims_to_operand_dims"], entries, strict=True))
    kept, sizes = iter(window), (*given["inserted_window_dims"], *given["input_batching_dims"])
    extent = tuple(1 if axis in sizes else update[next(kept)] for axis in range(len(extents)))
    within = np.ones(batch, bool)
    for axis, start in starts.items():
        within &= inside(start, extents[axis] - extent[axis])
    first = number({axis: starts[axis].astype(np.intp) for axis in sorted(starts)}, extents)
    others = [axis for axis in range(len(update)) if axis not in window]
    places = np.where(
        within[..., None], np.reshape(first, (*np.shape(first), 1)) + offsets(extent, extents).reshape(-1), -1
    )
    rows = _rows(indices, dim)[..., None, :]
    shape = [update[axis] for axis in (*others, *window)]
    back = np.argsort([*others, *window])
    found = np.broadcast_to(rows, (*places.shape, rows.shape[-1])).reshape(*shape, -1)
    return places.reshape(shape).transpose(back).reshape(-1), found.transpose(*back, len(shape)).reshape(
        prod(update), -1
    )
