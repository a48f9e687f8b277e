"""Shardings of HLO text, by tiles and by names of axes, read into records and printed back.

Sections:

    Tile assignments
    Shardings by names of axes
    Shardings of both forms, read into records and printed
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import refuse
from shape_inference.bounds import MOST_DEVICES

from ..properties.mesh import Mesh
from ..text.meshes import AxisPart, DeviceIota, StatedMesh, read_axis_part, read_mesh
from ..text.scanner import Fault, Scanner
from ..text.shardings import ShardGroup as ShardGroup
from ..text.shardings import StatedSharding, stated_sharding
from .sharding import Axis, DimSharding, Placement, Sharding, merge_parts

# ----------------------------------------------------------------------------
# Tile assignments
#
# `devices=[2,1]<=[2]` as arrays of devices, and as axes of a mesh.

_SUBGROUPS = ("replicated", "manual", "unreduced")


@frozen
class TileAssignment:
    """A tile assignment: the tiles of each dimension, then subgroups with their kinds, and the devices row by row.

    >>> TileAssignment((2, 1), ("replicated",), (2,), (0, 2, 1, 3)).strides
    (((2, 1),), (), ((2, 2),))

    Source: XLA, TileAssignment.
    """

    dims: tuple[int, ...]
    kinds: tuple[str, ...]
    subgroups: tuple[int, ...]
    devices: tuple[int, ...]

    @property
    def strides(self) -> tuple[tuple[tuple[int, int], ...], ...] | None:
        """For each dimension and subgroup, pairs (size, stride), the outermost first; None if there are none."""
        return _strides(np.asarray(self.devices).reshape(*self.dims, *self.subgroups))

    @property
    def bounds(self) -> frozenset[int] | None:
        """The strides at which an axis of a mesh must begin or end; None if devices follow no strides."""
        strides = self.strides
        if strides is None:
            return None
        pairs = [pair for each in strides for pair in each]
        return frozenset({1, len(self.devices)}.union(*({stride, size * stride} for size, stride in pairs)))

    def is_on_all(self, count: int) -> bool:
        """Whether each of `count` devices holds one tile."""
        return len(self.devices) == count and sorted(self.devices) == [*range(count)]

    def on(self, mesh: Mesh) -> Sharding | None:
        """The sharding by axes of the mesh, or parts of them; None if they cannot express the tiles."""
        place = np.argsort(mesh.device_ids) if mesh.device_ids else np.arange(mesh.num_devices)
        if not self.is_on_all(mesh.num_devices):
            return None
        strides = _strides(place[np.asarray(self.devices)].reshape(*self.dims, *self.subgroups))
        axis_lists = [_axes(mesh, each) for each in strides or ()]
        found = [merge_parts(each) for each in axis_lists if each is not None]
        if strides is None or len(found) < len(axis_lists):
            return None
        count = len(self.dims)
        ends = {kind: _of_kind(kind, self.kinds, found[count:]) for kind in _SUBGROUPS}
        dims = tuple(DimSharding(axes) for axes in found[:count])
        return Sharding(mesh, dims, unreduced=ends["unreduced"], manual=ends["manual"])


def _of_kind(kind: str, kinds: Sequence[str], axes: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...]:
    return tuple(axis for each, group in zip(kinds, axes, strict=True) if each == kind for axis in group)


def _strides(places: np.ndarray[Any, Any]) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """Pairs (size, stride) of each dimension of an array of positions, if each is a sum of steps along them."""
    corner = (0,) * places.ndim
    if places[corner] != 0:
        return None
    found = []
    whole = np.zeros((), np.int64)
    for dim in range(places.ndim):
        line = np.moveaxis(places, dim, 0).reshape(places.shape[dim], -1)[:, 0]
        pairs = _strides_of_line(line)
        if pairs is None:
            return None
        found.append(pairs)
        whole = np.add.outer(whole, line)
    return tuple(found) if np.array_equal(whole, places) else None


def _strides_of_line(line: np.ndarray[Any, Any]) -> tuple[tuple[int, int], ...] | None:
    """A line of positions as pairs (size, stride), the outermost first: 0, 1, 4, 5 is ((2, 4), (2, 1))."""
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
    """The axes, or parts of them, along which positions differ by these steps."""
    found: list[Axis] = []
    for size, stride in pairs:
        parts = [*_parts(mesh, stride, size * stride)]
        if math.prod(part.size for part in parts) != size:
            return None
        found += parts
    return found


def _parts(mesh: Mesh, low: int, high: int) -> Iterator[Axis]:
    """The parts of axes whose strides are in low..high, the outermost first."""
    for name, size in mesh.sizes:
        begin = mesh.stride(name)
        bottom, top = max(begin, low), min(begin * size, high)
        if bottom < top and top % bottom == 0 and (begin * size) % top == 0 and bottom % begin == 0:
            yield Axis(name, top // bottom, begin * size // top)


def common_mesh(assignments: Iterable[TileAssignment]) -> Mesh:
    """One mesh whose axes express all of these assignments if possible, else as many as possible.

    Axes are called axis_0, axis_1 and so on. A single assignment always has a mesh, if necessary one with `device_ids`.

    >>> one = TileAssignment((2, 4), (), (), tuple(range(8)))
    >>> common_mesh([one, TileAssignment((4,), ("replicated",), (2,), tuple(range(8)))])
    Mesh(axis_0=2, axis_1=2, axis_2=2)
    """
    tiles = [*assignments]
    bounds: frozenset[int] = frozenset({1, max(len(each.devices) for each in tiles)})
    fits_any = False
    for each in tiles:
        own = each.bounds
        if own is not None and max(own) == max(bounds) and _is_chain(bounds | own):
            bounds, fits_any = bounds | own, True
    if not fits_any:
        return _own_mesh(tiles[0])
    sizes = [high // low for low, high in pairwise(sorted(bounds))]
    return Mesh({f"axis_{number}": size for number, size in enumerate(reversed(sizes or [1]))})


def _own_mesh(tiles: TileAssignment) -> Mesh:
    """The mesh of an assignment whose devices follow no strides: its tiles, with the order of its devices."""
    sizes = [size for size in (*tiles.dims, *tiles.subgroups) if size > 1] or [1]
    if sorted(tiles.devices) != [*range(len(tiles.devices))]:
        refuse(
            "invalid_attribute",
            f"a sharding over devices {_list_some(tiles.devices)} omits some of 0..{max(tiles.devices)}; "
            "every device of the program must hold a tile",
        )
    return Mesh({f"axis_{number}": size for number, size in enumerate(sizes)}, device_ids=tiles.devices)


def _is_chain(bounds: Iterable[int]) -> bool:
    return all(high % low == 0 for low, high in pairwise(sorted(bounds)))


def _list_some(devices: Sequence[int]) -> str:
    return ",".join(map(str, devices[:8])) + (",..." if len(devices) > 8 else "")


def tiled_text(sharding: Sharding, rank: int) -> str:
    """A sharding as a tile assignment of HLO text, without names of axes.

    >>> import xbuild as xb
    >>> from xbuild.sharding.sharding import get_axis
    >>> from xbuild.sharding.sharding import shard_dims
    >>> mesh = xb.Mesh(a=2, b=4)
    >>> tiled_text(shard_dims(mesh, [[get_axis(mesh, "b")]]), 2)
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
    """The axes, and parts of axes, that are unused, in the order of the mesh."""
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
    """The text of a tiling's devices: an iota with a transposition, or a list if the mesh has its own order."""
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


# ----------------------------------------------------------------------------
# Shardings by names of axes
#
# `{mesh['a'=2,'b'=4], [{'a'}, {'b', ?}]}`.

_AXIS_LISTS = ("replicated", "unreduced", "manual")


def read_named(scanner: Scanner) -> Sharding:
    """Read a sharding by names of axes, after its opening brace.

    A priority follows the braces of a dimension, as in Shardy's text: `{'a'}p1`.
    """
    if not scanner.take_word("mesh"):
        scanner.expected("mesh[...]")
    mesh = mesh_from(read_mesh(scanner))
    dims: tuple[DimSharding, ...] = ()
    ends: dict[str, Any] = {}
    while not scanner.take("}"):
        scanner.take(",")
        if scanner.sees("["):
            dims = tuple(scanner.listed(lambda: read_dim(scanner, mesh), "[", "]"))
        elif scanner.take_word("metadata"):
            scanner.expect("=")
            scanner.braces()
        else:
            kind, axes = _read_axis_list(scanner, mesh)
            ends[kind] = axes
    return check_once(evolve(Sharding(mesh, dims), **ends), scanner)


def _read_axis_list(scanner: Scanner, mesh: Mesh) -> tuple[str, tuple[Axis, ...]]:
    """The axes after a keyword; a keyword without a list means every axis, and `replicated` no axis."""
    place = scanner.skip()
    kind = scanner.word()
    if kind not in _AXIS_LISTS:
        scanner.fail("syntax", f"expected {', '.join(_AXIS_LISTS)} or metadata, got {kind!r}", place=place)
    if not scanner.take("="):
        return kind, () if kind == "replicated" else tuple(Axis(name, size) for name, size in mesh.sizes)
    return kind, tuple(scanner.listed(lambda: read_axis(scanner, mesh)))


def mesh_from(stated: StatedMesh) -> Mesh:
    """The mesh that a text states; one without axes becomes one axis of size 1."""
    return Mesh(dict(stated.sizes) or {"none": 1}, device_ids=stated.ids if stated.sizes else None)


def read_dim(scanner: Scanner, mesh: Mesh) -> DimSharding:
    """Read the sharding of a dimension: `{'a', 'b':(1)2, ?}p1`."""
    axes: list[Axis] = []
    is_open = False
    for axis in scanner.listed(lambda: _axis_or_open(scanner, mesh)):
        if is_open:
            scanner.fail("syntax", "'?' must be the last entry of a dimension")
        is_open = axis is None
        axes += [] if axis is None else [axis]
    priority = scanner.scan(re.compile(r"p(\d{1,9})"))
    return DimSharding(tuple(axes), is_open, int(priority[1]) if priority else 0)


def _axis_or_open(scanner: Scanner, mesh: Mesh) -> Axis | None:
    return None if scanner.take("?") else read_axis(scanner, mesh)


def axis_on(mesh: Mesh, part: AxisPart) -> Axis:
    """The axis of a mesh, or the part of one, that a text names."""
    return Axis(part.name, mesh.size(part.name)) if part.size is None else Axis(part.name, part.size, part.before or 0)


def read_axis(scanner: Scanner, mesh: Mesh) -> Axis:
    """Read an axis of a mesh, or a part of one: `'a'`, `'b':(2)4`."""
    place = scanner.skip()
    part = read_axis_part(scanner)
    name = part.name
    if name not in mesh.axes:
        scanner.fail("syntax", f"{mesh} has no axis {name!r}; its axes are {', '.join(mesh.axes)}", place=place)
    axis = axis_on(mesh, part)
    if axis.pre_size < 1 or axis.size < 1 or mesh.size(name) % axis.end:
        scanner.fail(
            "syntax",
            f"axis {name!r} of size {mesh.size(name)} cannot be split into {axis.end} equal parts",
            place=place,
        )
    return axis


def check_once(sharding: Sharding, scanner: Scanner) -> Sharding:
    """The sharding, if it names each axis once, in parts that fit together; else a Fault."""
    used: list[Axis] = []
    for axis in (*sharding.cut_axes, *sharding.replicated, *sharding.unreduced, *sharding.manual):
        twice = next((each for each in used if each.overlaps(axis)), None)
        if twice is not None:
            scanner.fail(
                "grid_axis_duplicated", f"axis {axis.name!r} appears twice; use each part of an axis only once"
            )
        used.append(axis)
    for number, axis in enumerate(split := (*sharding.cut_axes, *sharding.unreduced)):
        other = next((each for each in split[:number] if not each.fits(axis)), None)
        if other is not None:
            parts = " and ".join(f"({each.pre_size}){each.size}" for each in (other, axis))
            scanner.fail(
                "grid_axis_duplicated",
                f"axis {axis.name!r} cannot be split into parts that include both {parts}",
            )
    return sharding


@lru_cache(maxsize=4096)
def named_text(sharding: Sharding, rank: int | None = None) -> str:
    """A sharding by names of axes, as XLA prints it; with `rank`, each dimension has an entry.

    Adjacent parts of an axis are merged; axes that split no dimension are in the order of the mesh, as XLA requires.

    >>> import xbuild as xb
    >>> from xbuild.sharding.sharding import get_axis
    >>> from xbuild.sharding.sharding import shard_dims
    >>> mesh = xb.Mesh(a=2, b=4)
    >>> named_text(shard_dims(mesh, [[get_axis(mesh, "b")], []]))
    "{mesh['a'=2,'b'=4], [{'b'}, {}]}"
    """
    mesh = sharding.mesh
    if rank is not None:
        sharding = sharding.padded(rank)
    ends = "".join(
        f", {kind}={{{_list_axes(in_order(axes, mesh), mesh)}}}"
        for kind, axes in zip(_AXIS_LISTS, (sharding.replicated, sharding.unreduced, sharding.manual), strict=True)
        if axes
    )
    return f"{{{mesh_text(mesh)}, [{', '.join(_dim_text(dim, mesh) for dim in sharding.dims)}]{ends}}}"


def in_order(axes: Iterable[Axis], mesh: Mesh) -> tuple[Axis, ...]:
    """Axes in the order of a mesh, with adjacent parts merged."""
    every = [*axes]
    if len(every) < 2:
        return (*every,)
    names = [name for name, _ in mesh.sizes]
    return merge_parts(sorted(every, key=lambda axis: (names.index(axis.name), axis.pre_size)))


def mesh_text(mesh: Mesh) -> str:
    """A mesh as HLO text writes it in a sharding."""
    axes = ",".join(f"'{name}'={size}" for name, size in mesh.sizes)
    order = f", device_ids=({','.join(map(str, mesh.device_ids))})" if mesh.device_ids else ""
    return f"mesh[{axes}]{order}"


def _dim_text(dim: DimSharding, mesh: Mesh) -> str:
    words = [*(_axis_text(axis, mesh) for axis in merge_parts(dim.axes)), *(["?"] if dim.is_open else [])]
    return f"{{{', '.join(words)}}}" + (f"p{dim.priority}" if dim.priority else "")


def _list_axes(axes: Sequence[Axis], mesh: Mesh) -> str:
    return ", ".join(_axis_text(axis, mesh) for axis in axes)


def _axis_text(axis: Axis, mesh: Mesh) -> str:
    part = "" if axis.size == mesh.size(axis.name) else f":({axis.pre_size}){axis.size}"
    return f"'{axis.name}'{part}"


# ----------------------------------------------------------------------------
# Shardings of both forms, read into records and printed

Stated: TypeAlias = "Sharding | Placement | TileAssignment"
AnySharding: TypeAlias = "Sharding | Placement | tuple[Sharding | Placement, ...]"


@frozen
class Parsed:
    """One sharding of a text, and its group."""

    stated: Stated
    group: ShardGroup | None = None


def parsed(text: str) -> Parsed | tuple[Parsed, ...]:
    """The record of a sharding in HLO text; a tuple for the shardings of a tuple; invalid_attribute for other text.

    >>> parsed("{devices=[2,1]<=[2]}").stated
    TileAssignment(dims=(2, 1), kinds=(), subgroups=(), devices=(0, 1))
    """
    try:
        found = stated_sharding(text)
        return tuple(map(_read_record, found)) if isinstance(found, tuple) else _read_record(found)
    except Fault as fault:
        refuse("invalid_attribute", f"sharding {text[:80]!r}: {fault.message}")


def shardings(text: str, mesh: Mesh | None = None) -> AnySharding:
    """The sharding, or the shardings of a tuple, that HLO text states.

    Tiles are read by the axes of `mesh`, or of a mesh that is inferred from them. `{replicated}`, `{manual}` and
    `{unreduced}` become a Placement if no mesh is text. Raises invalid_attribute for a text that is not a sharding, or
    whose tiles the axes of the mesh cannot express.

    >>> import xbuild as xb
    >>> shardings("{devices=[4,1,2]<=[8] last_tile_dim_replicate}").mesh
    Mesh(axis_0=4, axis_1=2)
    >>> shardings("{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}]}").dim(1)
    DimSharding(axes=(Axis(name='b', size=2, pre_size=1),), is_open=True, priority=0)

    Source: XLA, HloSharding and NamedSharding.
    """
    found = parsed(text)
    if isinstance(found, tuple):
        return tuple(express_by_axes(each.stated, mesh) for each in found)
    return express_by_axes(found.stated, mesh)


def express_by_axes(stated: Stated, mesh: Mesh | None) -> Sharding | Placement:
    """A stated sharding, with tiles and keywords as axes of the mesh."""
    if isinstance(stated, TileAssignment):
        found = stated.on(mesh or common_mesh([stated]))
        if found is None:
            tiles = [*stated.dims, *stated.subgroups]
            refuse("invalid_attribute", f"axes of {mesh} cannot express a sharding with tiles {tiles}")
        return found
    if not isinstance(stated, Placement) or mesh is None or stated.kind in ("maximal", "unknown"):
        return stated
    every = tuple(Axis(name, size) for name, size in mesh.sizes)
    if stated.kind == "replicated":
        return Sharding(mesh)
    return Sharding(mesh, manual=every) if stated.kind == "manual" else Sharding(mesh, unreduced=every)


def _read_record(text: StatedSharding) -> Parsed:
    if text.named:
        scanner = Scanner(text.text)
        scanner.expect("{")
        return Parsed(read_named(scanner))
    return Parsed(_read_unnamed(text), text.group)


def _read_unnamed(text: StatedSharding) -> Stated:
    tiles, devices = text.tiles, text.devices
    if text.kind or tiles is None:
        is_one = text.kind == "maximal" and text.device is None
        first = 0 if isinstance(devices, DeviceIota) else next(iter(devices), None)
        return Placement(text.kind, first if is_one else text.device)  # type: ignore[arg-type]  # a word of the text
    if max(tiles) > MOST_DEVICES or math.prod(tiles) > MOST_DEVICES or min(tiles) < 1:
        _fail(f"tiles {[*tiles]} must have 1 to {MOST_DEVICES} devices")
    if isinstance(devices, DeviceIota):
        if math.prod(devices.dims) != math.prod(tiles):
            _fail(
                f"the tiles {[*tiles]} number {math.prod(tiles)}, but the devices {[*devices.dims]} number "
                f"{math.prod(devices.dims)}"
            )
        devices = tuple(devices.ids.tolist())
    kinds = text.subgroups
    count = len(tiles) - len(kinds)
    if count < 0 or math.prod(tiles) != len(devices):
        _fail(f"the tiles {[*tiles]} number {math.prod(tiles)}, but the list has {len(devices)} devices")
    if wrong := {*kinds} & {"maximal", "unknown"}:
        _fail(f"mesh axes cannot express tiles along dimensions of the kind {', '.join(sorted(wrong))}")
    return TileAssignment(tiles[:count], kinds, tiles[count:], devices)


def _fail(message: str) -> NoReturn:
    raise Fault("syntax", message, 0)


def hlo_text(sharding: AnySharding, rank: int | None = None, group: ShardGroup | None = None) -> str:
    """A sharding as HLO text by names of axes, as XLA prints a NamedSharding; `tiled_text` uses no names.

    Raises invalid_attribute for halos and offsets, which HLO text cannot express.
    """
    if isinstance(sharding, tuple):
        return f"{{{', '.join(hlo_text(each) for each in sharding)}}}"
    if isinstance(sharding, Sharding) and (sharding.halo_sizes or sharding.offsets):
        refuse("invalid_attribute", "HLO text cannot express halo sizes or offsets; use the text of the shard dialect")
    text = str(sharding) if isinstance(sharding, Placement) else named_text(sharding, rank)
    return f"{text[:-1]} {group.kind} {group.number}}}" if group else text
