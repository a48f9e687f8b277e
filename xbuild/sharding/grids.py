"""Grids and shardings of MLIR's shard dialect: made from numbered axes, with the checks of the dialect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from shape_inference import refuse

from ..properties.mesh import Mesh
from .sharding import Axis, DimSharding, Sharding


def grid(shape: Sequence[int], *, device_ids: Sequence[int] | None = None) -> Mesh:
    """A mesh of these sizes, whose axes are numbered from 0; the last axis varies fastest.

    Raises: grid_rank_zero if there is no size; non_positive for a size below 1.

    >>> import xbuild as xb
    >>> xb.shard.grid([10, 20, 30]).device(**{"0": 1, "1": 2, "2": 3})
    663

    Source: MLIR, shard dialect, shard.grid.
    """
    if not shape:
        refuse("grid_rank_zero", "rank of grid is expected to be a positive integer, got shape=[]")
    return Mesh(list(shape), device_ids=device_ids)


def axes_of(mesh: Mesh, grid_axes: Iterable[int | str], what: str = "grid_axes") -> tuple[str, ...]:
    """The names of distinct axes of a grid, by number or name."""
    given = [*grid_axes]
    for each in given:
        _check_axis(mesh, each, what)
    names = [mesh.axes[each] if isinstance(each, int) else each for each in given]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        refuse("grid_axes_duplicate", f"{what}={given} lists axis {twice} twice; each axis may be listed once")
    return tuple(names)


def _check_axis(mesh: Mesh, axis: int | str, what: str) -> None:
    rank = len(mesh.axes)
    if isinstance(axis, str):
        mesh.named(axis)
    elif not hasattr(axis, "__index__") or isinstance(axis, bool):
        refuse("invalid_attribute", f"{what}: expected the number or name of a grid axis, got {axis!r}")
    elif axis < 0:
        refuse("grid_axis_negative", f"{what}: grid axis is expected to be non-negative, got {axis}")
    elif axis >= rank:
        message = f"{what}: 0-based grid axis index {axis} is out of bounds; the grid {mesh} is of rank {rank}"
        refuse("grid_axis_out_of_range", message)


def sharding(
    mesh: Mesh,
    split_axes: Sequence[Sequence[int | str]],
    *,
    halo_sizes: Sequence[int] = (),
    sharded_dims_offsets: Sequence[int] = (),
) -> Sharding:
    """The sharding by lists of grid axes, one list for each tensor dimension, the outermost axis first.

    `halo_sizes` has two numbers for each split dimension, `sharded_dims_offsets` n + 1 for one that is split into n.
    Halos that are all 0, and offsets at equal distances, are dropped.
    Raises: grid_axis_negative; grid_axis_out_of_range; grid_axis_duplicated; halo_and_offsets_exclusive; halo_count;
    offsets_wrong_size; offsets_decreasing; negative_size for a halo below 0.

    >>> import xbuild as xb
    >>> found = xb.shard.sharding(xb.shard.grid([4]), [[], [0]], sharded_dims_offsets=[0, 2, 5, 9, 14])
    >>> found.dim(1).parts, found.offsets
    (4, (0, 2, 5, 9, 14))

    Source: MLIR, shard dialect, shard.sharding.
    """
    names = _read_axis_names(mesh, split_axes)
    dims = tuple(DimSharding(tuple(Axis(name, mesh.size(name)) for name in each)) for each in names)
    parts = [math.prod(mesh.size(name) for name in each) for each in names if each]
    if halo_sizes and sharded_dims_offsets:
        refuse("halo_and_offsets_exclusive", "halo sizes and shard offsets are mutually exclusive, got both")
    _check_halos(halo_sizes, len(parts))
    _check_offsets(sharded_dims_offsets, parts)
    halos = tuple(map(int, halo_sizes)) if any(halo_sizes) else ()
    offsets = tuple(map(int, sharded_dims_offsets))
    return Sharding(mesh, dims, halo_sizes=halos, offsets=() if _is_even(offsets, parts) else offsets)


def _read_axis_names(mesh: Mesh, split_axes: Sequence[Sequence[int | str]]) -> list[tuple[str, ...]]:
    """The names of the axes of each dimension; refuses an axis that is listed twice."""
    found: list[tuple[str, ...]] = []
    for dim, given in enumerate(split_axes):
        for each in given:
            _check_axis(mesh, each, f"split_axes[{dim}]")
        names = tuple(mesh.axes[each] if isinstance(each, int) else each for each in given)
        used = [name for each in found for name in each]
        twice = next((n for k, n in enumerate(names) if n in used or n in names[:k]), None)
        if twice is not None:
            message = f"split_axes={[[*each] for each in split_axes]}: grid axis duplicated: {twice} is listed twice"
            refuse("grid_axis_duplicated", message)
        found.append(names)
    return found


def _check_halos(sizes: Sequence[int], num_split: int) -> None:
    if sizes and len(sizes) != 2 * num_split:
        expected = f"expected {2 * num_split} for {num_split} split dimensions"
        message = f"halo sizes must be specified for all split axes: {expected}, got {len(sizes)} in "
        refuse("halo_count", f"{message}halo_sizes={[*sizes]}")
    if any(size < 0 for size in sizes):
        refuse("negative_size", f"halo_sizes={[*sizes]} has a negative size")


def _check_offsets(offsets: Sequence[int], parts: Sequence[int]) -> None:
    expected = sum(each + 1 for each in parts)
    if offsets and len(offsets) != expected:
        message = f"sharded dims offsets has wrong size: expected {expected} for dimensions split into {[*parts]}, got "
        refuse("offsets_wrong_size", message + f"{len(offsets)} in {[*offsets]}")
    for each in _by_dim(offsets, parts):
        if each[0] != 0 or any(high < low for low, high in pairwise(each)):
            refuse("offsets_decreasing", f"sharded dims offsets must be non-decreasing from 0, got {[*each]}")


def _by_dim(offsets: Sequence[int], parts: Sequence[int]) -> list[tuple[int, ...]]:
    """The offsets of each split dimension; empty if there are none."""
    found, begin = [], 0
    for each in parts if offsets else ():
        found.append(tuple(offsets[begin : begin + each + 1]))
        begin += each + 1
    return found


def _is_even(offsets: Sequence[int], parts: Sequence[int]) -> bool:
    return all(len({high - low for low, high in pairwise(each)}) == 1 for each in _by_dim(offsets, parts))


def offsets_of(sharding: Sharding) -> dict[int, tuple[int, ...]]:
    """The stated offsets by dimension."""
    cut = [number for number, dim in enumerate(sharding.dims) if dim.axes]
    return dict(zip(cut, _by_dim(sharding.offsets, [sharding.dims[number].parts for number in cut]), strict=False))


def halos_of(sharding: Sharding) -> dict[int, tuple[int, int]]:
    """The halo sizes (below, above) by dimension."""
    cut = [number for number, dim in enumerate(sharding.dims) if dim.axes]
    sizes = sharding.halo_sizes
    return {dim: (sizes[2 * k], sizes[2 * k + 1]) for k, dim in enumerate(cut)} if sizes else {}
