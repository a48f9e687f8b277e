"""Shardings as records: axes of a mesh, how they split the dimensions of an array, and which device holds which part.

Sections:

    Axis: an axis of a mesh, or a part of one
    Placement: a sharding that names no axes
    Sharding: which axes split each dimension, and along which axes devices hold partial sums
    Positions of devices along axes: indices, groups and tiles as arrays by device
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import evolve, frozen

from ..properties.device_groups import Groups
from ..properties.mesh import Mesh

# ----------------------------------------------------------------------------
# Axis: an axis of a mesh, or a part of one


@frozen(order=True, cache_hash=True)
class Axis:
    """An axis of a mesh, or a part of it: the axis is reshaped to [pre_size, size, rest], and the middle is this part.

    >>> Axis("x", 8), Axis("x", 2, pre_size=4)
    (Axis(name='x', size=8, pre_size=1), Axis(name='x', size=2, pre_size=4))

    Source: Shardy, sharding representation (sub-axes).
    """

    name: str
    size: int
    pre_size: int = 1

    @property
    def end(self) -> int:
        """The parts of the axis up to the end of this part: the pre-size of a part that may follow."""
        return self.pre_size * self.size

    def overlaps(self, other: Axis) -> bool:
        """Whether two parts share coordinates of devices, so that no array may be split by both."""
        return self.name == other.name and self.pre_size < other.end and other.pre_size < self.end

    def fits(self, other: Axis) -> bool:
        """Whether an array may be split by both, by their sizes: the axis can be split into parts that include both.

        >>> Axis("x", 2).fits(Axis("x", 3, pre_size=2)), Axis("x", 2).fits(Axis("x", 2, pre_size=3))
        (True, False)

        Source: Shardy, axes that can coexist.
        """
        if self.name != other.name:
            return True
        ends = sorted((self.pre_size, other.pre_size, self.end, other.end))
        return all(large % small == 0 for small, large in pairwise(ends))

    def spelled(self, mesh: Mesh) -> str:
        """The axis in Shardy's text: its name, and for a part its pre-size and size.

        >>> import xbuild as xb
        >>> Axis("x", 2, pre_size=4).spelled(xb.Mesh(x=8))
        '"x":(4)2'
        """
        part = "" if self.size == mesh.size(self.name) else f":({self.pre_size}){self.size}"
        return f'"{self.name}"{part}'


def get_axis(mesh: Mesh, name: str | int) -> Axis:
    """An axis of a mesh, not a part of one, by its name or number; unbound_axis if the mesh does not have it."""
    (found,) = mesh.named(name)
    return Axis(found, mesh.size(found))


def merge_parts(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes with adjacent parts of one axis merged.

    >>> merge_parts([Axis("x", 2), Axis("x", 4, pre_size=2), Axis("y", 2)])
    (Axis(name='x', size=8, pre_size=1), Axis(name='y', size=2, pre_size=1))
    """
    found: list[Axis] = []
    for axis in axes:
        last = found[-1] if found else None
        if last is not None and last.name == axis.name and last.end == axis.pre_size:
            found[-1] = Axis(axis.name, last.size * axis.size, last.pre_size)
        else:
            found.append(axis)
    return tuple(found)


def count(axes: Iterable[Axis]) -> int:
    """The number of parts into which axes split a dimension."""
    return math.prod(axis.size for axis in axes)


# ----------------------------------------------------------------------------
# Placement: a sharding that names no axes

PlacementKind: TypeAlias = Literal["replicated", "maximal", "manual", "unreduced", "unknown"]


@frozen
class Placement:
    """A sharding that names no axes: `{replicated}`, `{maximal device=3}`, `{manual}`, `{unreduced}` or `{unknown}`.

    A `maximal` one has the array on `device` only. The devices of the others are those of the program.

    Source: XLA, HloSharding.
    """

    kind: PlacementKind
    device: int | None = None

    def __str__(self) -> str:
        return f"{{{self.kind}}}" if self.device is None else f"{{{self.kind} device={self.device}}}"


# ----------------------------------------------------------------------------
# Sharding: which axes split each dimension, and along which axes devices hold partial sums


@frozen
class DimSharding:
    """The sharding of a dimension: its axes from the outermost, whether propagation may append axes, and its priority.

    Source: Shardy, sharding representation.
    """

    axes: tuple[Axis, ...] = ()
    is_open: bool = False
    priority: int = 0

    @property
    def parts(self) -> int:
        """The number of parts of the dimension."""
        return count(self.axes)


@frozen(cache_hash=True)
class Sharding:
    """How an array is distributed over the devices of a mesh.

    Dimensions that are not named are not split. Along `unreduced` axes, each device holds a partial sum. `replicated`
    are axes that propagation must not use; `manual` are axes along which the program is already that of one device.
    `halo_sizes` has two numbers for each split dimension: elements of the neighbours below and above that each device
    also holds. `offsets` has n + 1 numbers for each split dimension: where each device's part begins, and the end.

    Source: Shardy, sharding representation; MLIR, shard dialect, shard.sharding (halo_sizes, sharded_dims_offsets).
    """

    mesh: Mesh
    dims: tuple[DimSharding, ...] = ()
    replicated: tuple[Axis, ...] = ()
    unreduced: tuple[Axis, ...] = ()
    manual: tuple[Axis, ...] = ()
    halo_sizes: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    def dim(self, number: int) -> DimSharding:
        """The sharding of a dimension; one that is not named is not split."""
        return self.dims[number] if number < len(self.dims) else DimSharding()

    def padded(self, rank: int) -> Sharding:
        """The same sharding with an entry for each of `rank` dimensions."""
        if len(self.dims) >= rank:
            return self
        return evolve(self, dims=(*self.dims, *[DimSharding()] * (rank - len(self.dims))))

    @property
    def cut_axes(self) -> tuple[Axis, ...]:
        """The axes that split dimensions, in the order of the dimensions."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    @property
    def is_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        return not self.cut_axes and not self.unreduced


def shard_dims(mesh: Mesh, dims: Iterable[Sequence[Axis]], unreduced: Iterable[Axis] = ()) -> Sharding:
    """A closed sharding by the axes of each dimension."""
    return _shard_dims(mesh, tuple(map(tuple, dims)), tuple(unreduced))


@functools.lru_cache(maxsize=1 << 14)
def _shard_dims(mesh: Mesh, dims: tuple[tuple[Axis, ...], ...], unreduced: tuple[Axis, ...]) -> Sharding:
    """The sharding of `shard_dims`: equal ones are one object, which is quick to compare."""
    return Sharding(mesh, tuple(map(DimSharding, dims)), unreduced=unreduced)


# ----------------------------------------------------------------------------
# Positions of devices along axes: indices, groups and tiles as arrays by device

Table: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@functools.lru_cache(maxsize=4096)
def index_along(mesh: Mesh, axes: tuple[Axis, ...]) -> Table:
    """For each device, its position along axes together, the first outermost.

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
    """The position of each device in the grid, row by row."""
    found = np.arange(mesh.num_devices)
    if mesh.device_ids is not None:
        found[list(mesh.device_ids)] = np.arange(mesh.num_devices)
    return found


@functools.lru_cache(maxsize=4096)
def groups_along(mesh: Mesh, axes: tuple[Axis, ...]) -> Groups:
    """The groups of devices that differ only along these axes, ordered by the axes as listed.

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
    """For each device, the number of the tile that it holds, row by row."""
    return index_along(mesh, tuple(axis for axes in dims for axis in axes))


@functools.lru_cache(maxsize=1024)
def moves(mesh: Mesh, before: tuple[tuple[Axis, ...], ...], after: tuple[tuple[Axis, ...], ...]) -> Groups:
    """Source-target pairs that give each device its tile of `after`; one that already holds it is its own source."""
    held, needed = tiles_of(mesh, before), tiles_of(mesh, after)
    pairs = [(device, device) for device in range(mesh.num_devices) if held[device] == needed[device]]
    done = {device for device, _ in pairs}
    senders: dict[int, list[int]] = {}
    for device in range(mesh.num_devices):
        if device not in done:
            senders.setdefault(int(held[device]), []).append(device)
    receivers = [device for device in range(mesh.num_devices) if device not in done]
    return tuple(sorted([*pairs, *((senders[int(needed[device])].pop(0), device) for device in receivers)]))
