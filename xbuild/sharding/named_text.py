"""Shardings by names of axes, as HLO text has them: `{mesh['a'=2,'b'=4], [{'a'}, {'b', ?}]}`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from attrs import evolve

from ..properties.mesh import Mesh
from ..text.spelling.scanner import Scanner
from .axis import Axis, merged
from .placement import Placement
from .sharding import DimSharding, Sharding

_PART = re.compile(r":\((\d{1,9})\)(\d{1,9})")
_WORDS = ("replicated", "unreduced", "manual")


def named(scanner: Scanner) -> Sharding | Placement:
    """Read a sharding by names, after its opening brace.

    A priority is written as Shardy's text has it, after the braces of a dimension: `{'a'}p1`.
    """
    if scanner.take_word("maximal_mesh"):
        scanner.expect("[")
        scanner.expect("device_id=")
        device = scanner.integer()
        scanner.expect("]")
        _skip_to_end(scanner)
        return Placement("maximal", device)
    mesh = _mesh(scanner)
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
            kind, axes = _end(scanner, mesh)
            ends[kind] = axes
    return check_once(evolve(Sharding(mesh, dims), **ends), scanner)


def _skip_to_end(scanner: Scanner) -> None:
    if scanner.take(",") and scanner.take_word("metadata"):
        scanner.expect("=")
        scanner.braces()
    scanner.expect("}")


def _end(scanner: Scanner, mesh: Mesh) -> tuple[str, tuple[Axis, ...]]:
    """The axes after one of the words; a word alone means every axis, and `replicated` alone that no axis cuts."""
    place = scanner.skip()
    kind = scanner.word()
    if kind not in _WORDS:
        scanner.fail("syntax", f"{', '.join(_WORDS)} or metadata is wanted, and {kind!r} stands here", place=place)
    if not scanner.take("="):
        return kind, () if kind == "replicated" else tuple(Axis(name, size) for name, size in mesh.sizes)
    return kind, tuple(scanner.listed(lambda: read_axis(scanner, mesh)))


def _mesh(scanner: Scanner) -> Mesh:
    if not scanner.take_word("mesh"):
        scanner.expected("mesh[...]")
    pairs = scanner.listed(lambda: _size(scanner), "[", "]")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        scanner.fail("syntax", f"the mesh names an axis twice: {', '.join(names)}")
    count = math.prod(size for _, size in pairs)
    ids = None
    place = scanner.skip()
    if scanner.take(",") and scanner.sees("device_ids"):
        scanner.expect("device_ids")
        scanner.expect("=")
        ids = device_ids(scanner, count)
    else:
        scanner.place = place
    return Mesh(dict(pairs) or {"none": 1}, device_ids=ids)


def _size(scanner: Scanner) -> tuple[str, int]:
    name = scanner.string()
    scanner.expect("=")
    return name, scanner.integer()


def device_ids(scanner: Scanner, count: int) -> list[int]:
    """The order of the devices of a mesh: a list `(3,2,1,0)`, or an iota `([2,2]T(1,0))`."""
    place = scanner.skip()
    scanner.expect("(")
    if scanner.sees("["):
        sizes = scanner.listed(scanner.integer, "[", "]")
        order = scanner.listed(scanner.integer, "(", ")") if scanner.take("T") else [*range(len(sizes))]
        scanner.expect(")")
        if math.prod(sizes) != count or sorted(order) != [*range(len(sizes))]:
            scanner.fail("syntax", f"the devices are no order of {count}", place=place)
        return list(np.arange(count).reshape(sizes).transpose(order).reshape(-1).tolist())
    scanner.place -= 1
    found = scanner.listed(scanner.integer, "(", ")")
    if sorted(found) != [*range(count)]:
        scanner.fail("syntax", f"device_ids name each of 0..{count - 1} once", place=place)
    return found


def read_dim(scanner: Scanner, mesh: Mesh) -> DimSharding:
    """Read how a dimension is cut: `{'a', 'b':(1)2, ?}p1`."""
    axes: list[Axis] = []
    is_open = False
    for axis in scanner.listed(lambda: _axis_or_open(scanner, mesh)):
        if is_open:
            scanner.fail("syntax", "'?' is the last of a dimension")
        is_open = axis is None
        axes += [] if axis is None else [axis]
    priority = scanner.scan(re.compile(r"p(\d{1,9})"))
    return DimSharding(tuple(axes), is_open, int(priority[1]) if priority else 0)


def _axis_or_open(scanner: Scanner, mesh: Mesh) -> Axis | None:
    return None if scanner.take("?") else read_axis(scanner, mesh)


def read_axis(scanner: Scanner, mesh: Mesh) -> Axis:
    """Read an axis of a mesh, or a part of one: `'a'`, `'b':(2)4`."""
    place = scanner.skip()
    name = scanner.string()
    if name not in mesh.axes:
        scanner.fail("syntax", f"no axis is named {name!r}; the mesh is {mesh}", place=place)
    part = scanner.scan(_PART)
    axis = Axis(name, int(part[2]), int(part[1])) if part else Axis(name, mesh.size(name))
    if axis.pre_size < 1 or axis.size < 1 or mesh.size(name) % axis.end:
        scanner.fail("syntax", f"{axis.end} parts do not divide axis {name!r} of size {mesh.size(name)}", place=place)
    return axis


def check_once(sharding: Sharding, scanner: Scanner) -> Sharding:
    """The sharding, whose axes are each named once, and cut as parts of one splitting; a Fault otherwise."""
    used: list[Axis] = []
    for axis in (*sharding.cut_axes, *sharding.replicated, *sharding.unreduced, *sharding.manual):
        twice = next((each for each in used if each.overlaps(axis)), None)
        if twice is not None:
            _twice(scanner, axis)
        used.append(axis)
    for number, axis in enumerate(cuts := (*sharding.cut_axes, *sharding.unreduced)):
        other = next((each for each in cuts[:number] if not each.fits(axis)), None)
        if other is not None:
            parts = " and ".join(f"({each.pre_size}){each.size}" for each in (other, axis))
            scanner.fail("grid_axis_duplicated", f"no splitting of axis {axis.name!r} has both parts {parts}")
    return sharding


def _twice(scanner: Scanner, axis: Axis) -> NoReturn:
    scanner.fail("grid_axis_duplicated", f"axis {axis.name!r} is named twice; each part of an axis counts once")


def spelled(sharding: Sharding, rank: int | None = None) -> str:
    """A sharding by names, as XLA prints it; with `rank`, each dimension has an entry.

    Adjacent parts of an axis stand as one, and axes that cut no dimension in the order of the mesh, as XLA wants them.

    >>> import xbuild as xb
    >>> from xbuild.sharding.axis import whole
    >>> from xbuild.sharding.sharding import cut
    >>> mesh = xb.Mesh(a=2, b=4)
    >>> spelled(cut(mesh, [[whole(mesh, "b")], []]))
    "{mesh['a'=2,'b'=4], [{'b'}, {}]}"
    """
    mesh = sharding.mesh
    if rank is not None:
        sharding = sharding.padded(rank)
    ends = "".join(
        f", {kind}={{{_listed(in_order(axes, mesh), mesh)}}}"
        for kind, axes in zip(_WORDS, (sharding.replicated, sharding.unreduced, sharding.manual), strict=True)
        if axes
    )
    return f"{{{mesh_text(mesh)}, [{', '.join(_dim_text(dim, mesh) for dim in sharding.dims)}]{ends}}}"


def in_order(axes: Iterable[Axis], mesh: Mesh) -> tuple[Axis, ...]:
    """Axes in the order of a mesh, adjacent parts of one as one."""
    names = [name for name, _ in mesh.sizes]
    return merged(sorted(axes, key=lambda axis: (names.index(axis.name), axis.pre_size)))


def mesh_text(mesh: Mesh) -> str:
    """A mesh as it stands in a sharding."""
    axes = ",".join(f"'{name}'={size}" for name, size in mesh.sizes)
    order = f", device_ids=({','.join(map(str, mesh.device_ids))})" if mesh.device_ids else ""
    return f"mesh[{axes}]{order}"


def _dim_text(dim: DimSharding, mesh: Mesh) -> str:
    words = [*(_axis_text(axis, mesh) for axis in merged(dim.axes)), *(["?"] if dim.is_open else [])]
    return f"{{{', '.join(words)}}}" + (f"p{dim.priority}" if dim.priority else "")


def _listed(axes: Sequence[Axis], mesh: Mesh) -> str:
    return ", ".join(_axis_text(axis, mesh) for axis in axes)


def _axis_text(axis: Axis, mesh: Mesh) -> str:
    part = "" if axis.size == mesh.size(axis.name) else f":({axis.pre_size}){axis.size}"
    return f"'{axis.name}'{part}"
