"""Tile assignments of HLO text (`devices=[2,1]<=[2]`) as arrays of devices, and as axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import refuse

from ..properties.mesh import Mesh
from .axis import Axis, merged
from .sharding import DimSharding, Sharding

MOST_DEVICES = 1 << 20
_SUBGROUPS = ("replicated", "manual", "unreduced")


@frozen
class Tiles:
    """A tile assignment: tiles of each dimension, then subgroups with their kinds, and the devices row by row.

    >>> Tiles((2, 1), ("replicated",), (2,), (0, 2, 1, 3)).strides
    (((2, 1),), (), ((2, 2),))

    Source: XLA, TileAssignment.
    """

    dims: tuple[int, ...]
    kinds: tuple[str, ...]
    subgroups: tuple[int, ...]
    devices: tuple[int, ...]

    @property
    def strides(self) -> tuple[tuple[tuple[int, int], ...], ...] | None:
        """For each dimension and subgroup pairs (size, stride), the outermost first; None where they do not exist."""
        return _strides(np.asarray(self.devices).reshape(*self.dims, *self.subgroups))

    @property
    def bounds(self) -> frozenset[int] | None:
        """The strides at which an axis of a mesh has to begin or end; None where devices follow no strides."""
        strides = self.strides
        if strides is None:
            return None
        pairs = [pair for each in strides for pair in each]
        return frozenset({1, len(self.devices)}.union(*({stride, size * stride} for size, stride in pairs)))

    def is_on_all(self, count: int) -> bool:
        """Whether each of so many devices holds one tile."""
        return len(self.devices) == count and sorted(self.devices) == [*range(count)]

    def on(self, mesh: Mesh) -> Sharding | None:
        """The sharding by axes of the mesh, or parts of them; None where they do not cut so."""
        place = np.argsort(mesh.device_ids) if mesh.device_ids else np.arange(mesh.num_devices)
        if not self.is_on_all(mesh.num_devices):
            return None
        strides = _strides(place[np.asarray(self.devices)].reshape(*self.dims, *self.subgroups))
        cuts = [_axes(mesh, each) for each in strides or ()]
        found = [merged(each) for each in cuts if each is not None]
        if strides is None or len(found) < len(cuts):
            return None
        count = len(self.dims)
        ends = {kind: _of_kind(kind, self.kinds, found[count:]) for kind in _SUBGROUPS}
        dims = tuple(DimSharding(axes) for axes in found[:count])
        return Sharding(mesh, dims, unreduced=ends["unreduced"], manual=ends["manual"])


def _of_kind(kind: str, kinds: Sequence[str], axes: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    return tuple(axis for each, group in zip(kinds, axes, strict=True) if each == kind for axis in group)


def _strides(places: np.ndarray[Any, Any]) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """Pairs (size, stride) of each dimension of an array of places, if every place is a sum of steps along them."""
    corner = (0,) * places.ndim
    if places[corner] != 0:
        return None
    found = []
    whole = np.zeros((), np.int64)
    for dim in range(places.ndim):
        line = np.moveaxis(places, dim, 0).reshape(places.shape[dim], -1)[:, 0]
        pairs = _digits(line)
        if pairs is None:
            return None
        found.append(pairs)
        whole = np.add.outer(whole, line)
    return tuple(found) if np.array_equal(whole, places) else None


def _digits(line: np.ndarray[Any, Any]) -> tuple[tuple[int, int], ...] | None:
    """A line of places as digits of growing places, the outermost first: 0, 1, 4, 5 is ((2, 4), (2, 1))."""
    found: list[tuple[int, int]] = []
    while len(line) > 1:
        step = int(line[1] - line[0])
        is_run = line == np.arange(len(line)) * step
        run = len(line) if is_run.all() else int(np.argmin(is_run))
        size = math.gcd(run, len(line))
        whole = line.reshape(-1, size) if size > 1 else line[:, None]
        if step <= 0 or size < 2 or not np.array_equal(whole, whole[:, :1] + np.arange(size) * step):
            return None
        found.insert(0, (size, step))
        line = whole[:, 0]
    return tuple(found)


def _axes(mesh: Mesh, pairs: Sequence[tuple[int, int]]) -> list[Axis] | None:
    """The axes, or parts of them, along which places differ by these steps."""
    found: list[Axis] = []
    for size, stride in pairs:
        parts = [*_parts(mesh, stride, size * stride)]
        if math.prod(part.size for part in parts) != size:
            return None
        found += parts
    return found


def _parts(mesh: Mesh, low: int, high: int) -> Iterator[Axis]:
    """The parts of the axes whose strides are in low..high, the outermost first."""
    for name, size in mesh.sizes:
        begin = mesh.stride(name)
        bottom, top = max(begin, low), min(begin * size, high)
        if bottom < top and top % bottom == 0 and (begin * size) % top == 0 and bottom % begin == 0:
            yield Axis(name, top // bottom, begin * size // top)


def common_mesh(assignments: Iterable[Tiles]) -> Mesh:
    """One mesh whose axes cut as all of these assignments do, where that is possible, else as most of them do.

    Axes are called axis_0, axis_1 and so on. An assignment alone always has a mesh, if need be one with `device_ids`.

    >>> one = Tiles((2, 4), (), (), tuple(range(8)))
    >>> common_mesh([one, Tiles((4,), ("replicated",), (2,), tuple(range(8)))])
    Mesh(axis_0=2, axis_1=2, axis_2=2)
    """
    given = [*assignments]
    bounds: frozenset[int] = frozenset({1, max(len(each.devices) for each in given)})
    is_cut = False
    for each in given:
        wanted = each.bounds
        if wanted is not None and max(wanted) == max(bounds) and _is_chain(bounds | wanted):
            bounds, is_cut = bounds | wanted, True
    if not is_cut:
        return _own_mesh(given[0])
    sizes = [high // low for low, high in pairwise(sorted(bounds))]
    return Mesh({f"axis_{number}": size for number, size in enumerate(reversed(sizes or [1]))})


def _own_mesh(tiles: Tiles) -> Mesh:
    """The mesh of an assignment whose devices follow no strides: its tiles, in the order of its devices."""
    sizes = [size for size in (*tiles.dims, *tiles.subgroups) if size > 1] or [1]
    if sorted(tiles.devices) != [*range(len(tiles.devices))]:
        refuse(
            "invalid_attribute",
            f"a sharding over devices {_some(tiles.devices)} leaves out some of 0..{max(tiles.devices)}; "
            "every device of the program holds a tile",
        )
    return Mesh({f"axis_{number}": size for number, size in enumerate(sizes)}, device_ids=tiles.devices)


def _is_chain(bounds: Iterable[int]) -> bool:
    return all(high % low == 0 for low, high in pairwise(sorted(bounds)))


def _some(devices: Sequence[int]) -> str:
    return ",".join(map(str, devices[:8])) + (",..." if len(devices) > 8 else "")


def tiled_text(sharding: Sharding, rank: int) -> str:
    """A sharding as a tile assignment of HLO text, without names of axes.

    >>> import xbuild as xb
    >>> from xbuild.sharding.axis import whole
    >>> from xbuild.sharding.sharding import cut
    >>> mesh = xb.Mesh(a=2, b=4)
    >>> tiled_text(cut(mesh, [[whole(mesh, "b")]]), 2)
    '{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}'
    """
    mesh = sharding.mesh
    lists = [sharding.dim(number).axes for number in range(rank)]
    ends = {"manual": sharding.manual, "unreduced": sharding.unreduced}
    used = [axis for each in (*lists, *ends.values()) for axis in each]
    ends = {kind: axes for kind, axes in {**ends, "replicated": rest_of(mesh, used)}.items() if axes}
    lists += [*ends.values()]
    dims = ",".join(str(math.prod(axis.size for axis in each)) for each in lists)
    if len(ends) == 1 and not sharding.cut_axes and rank == len(lists) - 1 and math.prod(mesh.shape) > 1:
        return f"{{{next(iter(ends))}}}"
    if mesh.num_devices == 1:
        return "{replicated}"
    return f"{{devices=[{dims}]{_devices(mesh, [a for each in lists for a in each])}{_ends(ends)}}}"


def _ends(ends: Iterable[str]) -> str:
    kinds = [*ends]
    if kinds == ["replicated"]:
        return " last_tile_dim_replicate"
    return f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""


def rest_of(mesh: Mesh, used: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes, and parts of axes, that are not used, in the order of the mesh."""
    return tuple(part for name, size in mesh.sizes for part in _gaps(name, size, used))


def _gaps(name: str, size: int, used: Sequence[Axis]) -> Iterator[Axis]:
    end = 1
    for axis in sorted((each for each in used if each.name == name), key=lambda each: each.pre_size):
        if axis.pre_size > end:
            yield Axis(name, axis.pre_size // end, end)
        end = axis.end
    if size > end:
        yield Axis(name, size // end, end)


def _devices(mesh: Mesh, order: Sequence[Axis]) -> str:
    """The devices of tiles: an iota with a transposition, or a list where the mesh has another order of devices."""
    spans = [(mesh.stride(a.name) * mesh.size(a.name) // a.end, a.size) for a in order if a.size > 1]
    if mesh.device_ids:
        places = np.zeros((), np.int64)
        for stride, size in spans:
            places = np.add.outer(places, np.arange(size) * stride)
        return ",".join(map(str, np.asarray(mesh.device_ids)[places].reshape(-1).tolist()))
    runs: list[tuple[int, int]] = []  # stride, size
    for stride, size in spans:
        if runs and runs[-1][0] == stride * size:
            runs[-1] = (stride, runs[-1][1] * size)
        else:
            runs.append((stride, size))
    outer = sorted(runs, reverse=True)
    shape = ",".join(str(size) for _, size in outer)
    if outer == runs:
        return f"<=[{mesh.num_devices}]"
    return f"<=[{shape}]T({','.join(str(outer.index(each)) for each in runs)})"
