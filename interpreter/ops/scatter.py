"""The value of scatter: large windows are combined one by one, small windows as rows of the operand all at once."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from ..kernels.folds import Arrays
from ..kernels.indexing import Starts, batch_numbers, inside, number, offsets, vectors
from ..kernels.scattering import combine_at, combine_in
from ..rules import compute
from ..rules.region import AppliedComputation

LARGE = 64
"""The number of rows from which a window is combined as a slice."""


@compute
def scatter(
    operands: Arrays,
    scatter_indices: Array,
    updates: Arrays,
    *,
    to_apply: AppliedComputation,
    update_window_dims: Dims,
    inserted_window_dims: Dims,
    scatter_dims_to_operand_dims: Dims,
    input_batching_dims: Dims,
    scatter_indices_batching_dims: Dims,
    index_vector_dim: int,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    types = to_apply.types[: len(operands)]
    arrays = tuple(
        np.asarray(operand).astype(dtype, copy=False) for operand, dtype in zip(operands, types, strict=True)
    )
    new = [np.asarray(update).astype(dtype, copy=False) for update, dtype in zip(updates, types, strict=True)]
    entries = vectors(scatter_indices, index_vector_dim)
    batch = entries.shape[1:]
    starts = batch_numbers(batch, input_batching_dims, scatter_indices_batching_dims, index_vector_dim)
    starts |= dict(zip(scatter_dims_to_operand_dims, entries, strict=True))
    sizes = _window_sizes(arrays[0].ndim, new[0].shape, update_window_dims, inserted_window_dims + input_batching_dims)
    windows = tuple(_reorder_updates(update, update_window_dims, batch, sizes) for update in new)
    starts, windows = _keep_inside(starts, arrays[0].shape, sizes, windows)
    results = _combine_windows(to_apply, arrays, starts, windows, sizes)
    return results if len(results) > 1 else results[0]


def _window_sizes(rank: int, update: Dims, window: Dims, left_out: Dims) -> Dims:
    """The window size in each dimension of the operand."""
    update_sizes = iter(window)
    return tuple(1 if dim in left_out else update[next(update_sizes)] for dim in range(rank))


def _reorder_updates(update: Array, window: Dims, batch: Dims, sizes: Dims) -> Array:
    """The updates with the index vectors along the first axis, followed by one axis for each operand dimension."""
    others = [dim for dim in range(update.ndim) if dim not in window]
    return update.transpose([*others, *window]).reshape(prod(batch), *sizes)


def _keep_inside(starts: Starts, extents: Dims, sizes: Dims, windows: Arrays) -> tuple[Starts, Arrays]:
    """The starts and updates of the windows that lie entirely inside the operand."""
    is_inside = np.ones(len(windows[0]), bool)
    for dim, start in starts.items():
        is_inside &= inside(start.reshape(-1), extents[dim] - sizes[dim])
    flat = {dim: starts[dim].reshape(-1) for dim in sorted(starts)}
    if not is_inside.all():
        flat, windows = (
            {dim: start[is_inside] for dim, start in flat.items()},
            tuple(window[is_inside] for window in windows),
        )
    return {dim: start.astype(np.intp, copy=False) for dim, start in flat.items()}, windows


def _combine_windows(
    region: AppliedComputation, operands: Arrays, starts: Starts, windows: Arrays, sizes: Dims
) -> Arrays:
    if not windows[0].size:
        return tuple(map(np.array, operands))
    if len(windows[0]) == 1 or not starts or prod(sizes[dim] for dim in starts) >= LARGE:
        results = tuple(map(np.array, operands))
        _combine_one_by_one(region, results, starts, windows, sizes)
        return results
    order = [*starts, *(dim for dim in range(len(sizes)) if dim not in starts)]
    back = sorted(range(len(order)), key=order.__getitem__)
    turned = tuple(np.array(operand.transpose(order), order="C") for operand in operands)
    _combine_as_rows(
        region, turned, list(starts.values()), [w.transpose([0, *(dim + 1 for dim in order)]) for w in windows]
    )
    return turned if order == sorted(order) else tuple(array.transpose(back) for array in turned)


def _combine_one_by_one(
    region: AppliedComputation, targets: Arrays, starts: Starts, windows: Arrays, sizes: Dims
) -> None:
    for n in range(len(windows[0])):
        first = {dim: int(start[n]) for dim, start in starts.items()}
        where: tuple[Any, ...] = tuple(slice(first.get(d, 0), first.get(d, 0) + size) for d, size in enumerate(sizes))
        parts = tuple(target[(*where, ...)] for target in targets)  # the ellipsis makes a scalar target a writable view
        combine_in(region, parts, tuple(window[n, ...] for window in windows))


def _combine_as_rows(region: AppliedComputation, targets: Arrays, starts: list[Array], windows: list[Array]) -> None:
    """Combine windows whose starts vary in the leading dimensions, which are merged into row numbers."""
    moving = len(starts)
    extents, sizes = targets[0].shape, windows[0].shape[1:]
    rows = number(dict(enumerate(starts)), extents[:moving])
    if prod(sizes[:moving]) > 1:
        rows = (rows[:, None] + offsets(sizes[:moving], extents[:moving]).reshape(-1)).reshape(-1)
    rest = sizes[moving:]
    whole = () if rest == extents[moving:] and prod(rest) == 1 else rest
    flat = tuple(target.reshape(-1, *extents[moving:] if whole else ())[:, *map(slice, whole)] for target in targets)
    combine_at(region, flat, rows, tuple(window.reshape(rows.size, *whole) for window in windows))
