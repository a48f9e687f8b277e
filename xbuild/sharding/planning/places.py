"""Where devices stand along axes of a mesh and parts of axes: indices, groups and tiles as tables by device."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from ...properties.device_groups import Groups
from ...properties.mesh import Mesh
from ..axis import Axis

Table: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@functools.lru_cache(maxsize=4096)
def index_along(mesh: Mesh, axes: tuple[Axis, ...]) -> Table:
    """For each device its place along axes together, the first outermost.

    >>> index_along(Mesh(x=4, y=2), (Axis("y", 2), Axis("x", 2, 2))).tolist()
    [0, 2, 1, 3, 0, 2, 1, 3]
    """
    found = np.zeros(mesh.num_devices, np.int64)
    for axis in axes:
        found = found * axis.size + _coordinate(mesh, axis)
    return found


def _coordinate(mesh: Mesh, axis: Axis) -> Table:
    return _places(mesh) // _stride(mesh, axis) % axis.size


def _stride(mesh: Mesh, axis: Axis) -> int:
    return mesh.stride(axis.name) * (mesh.size(axis.name) // axis.end)


@functools.lru_cache(maxsize=256)
def _places(mesh: Mesh) -> Table:
    """The place of each device in the grid, row by row."""
    found = np.arange(mesh.num_devices)
    if mesh.device_ids is not None:
        found[list(mesh.device_ids)] = np.arange(mesh.num_devices)
    return found


@functools.lru_cache(maxsize=4096)
def groups_along(mesh: Mesh, axes: tuple[Axis, ...]) -> Groups:
    """The devices that differ along these axes alone, in the order of the axes as they are given.

    >>> groups_along(Mesh(x=4), (Axis("x", 2, 2),))
    ((0, 1), (2, 3))
    """
    rest = _places(mesh).copy()
    for axis in axes:
        rest -= _coordinate(mesh, axis) * _stride(mesh, axis)
    order = np.lexsort((index_along(mesh, axes), rest))
    size = 1
    for axis in axes:
        size *= axis.size
    return tuple(map(tuple, order.reshape(-1, size).tolist()))


def tiles_of(mesh: Mesh, dims: Iterable[tuple[Axis, ...]]) -> Table:
    """For each device the number of the tile that it holds, row by row."""
    return index_along(mesh, tuple(axis for axes in dims for axis in axes))


@functools.lru_cache(maxsize=1024)
def moves(mesh: Mesh, before: tuple[tuple[Axis, ...], ...], after: tuple[tuple[Axis, ...], ...]) -> Groups:
    """(source, target) of each device, so that it gets the tile that it holds after; from itself where it can be."""
    held, wanted = tiles_of(mesh, before), tiles_of(mesh, after)
    pairs = [(device, device) for device in range(mesh.num_devices) if held[device] == wanted[device]]
    done = {device for device, _ in pairs}
    givers: dict[int, list[int]] = {}
    for device in range(mesh.num_devices):
        if device not in done:
            givers.setdefault(int(held[device]), []).append(device)
    takers = [device for device in range(mesh.num_devices) if device not in done]
    return tuple(sorted([*pairs, *((givers[int(wanted[taker])].pop(0), taker) for taker in takers)]))
