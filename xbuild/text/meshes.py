"""Meshes, iotas of device ids, and the replica groups that they state: one grammar, read into records.

Sections:

    Iotas
    Meshes, and axes of meshes
    Replica groups
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from shape_inference import Dims
from shape_inference.bounds import MOST_DEVICES

from ..core.attributes import ReplicaGroups
from ..core.graph import Instruction
from .scanner import Scanner

if TYPE_CHECKING:
    from .spelling import NameWriter


# ----------------------------------------------------------------------------
# Iotas: device ids that count up along the dimensions of an array, `[2,4]T(1,0)`


@frozen
class DeviceIota:
    """The ids 0, 1, ... in an array of these dimensions, transposed by `order`."""

    dims: Dims
    order: Dims

    @property
    def ids(self) -> np.ndarray[Any, Any]:
        """The ids in row-major order."""
        return np.arange(math.prod(self.dims)).reshape(self.dims).transpose(self.order).reshape(-1)


def read_iota(scanner: Scanner) -> DeviceIota:
    """Read `[2,4]`, or `[2,4]T(1,0)`; several dimensions may be transposed."""
    dims = read_sizes(scanner)
    place = scanner.skip()
    if not scanner.take("T("):
        return DeviceIota(dims, tuple(range(len(dims))))
    scanner.place -= 1
    order = tuple(scanner.listed(scanner.integer, "(", ")"))
    if len(dims) < 2 or sorted(order) != [*range(len(dims))]:
        scanner.fail(
            "syntax",
            f"T({_sizes_text(order)}) is not a permutation of the dimensions of [{_sizes_text(dims)}]",
            place=place,
        )
    return DeviceIota(dims, order)


def read_sizes(scanner: Scanner) -> Dims:
    """Read sizes in brackets, at least one."""
    place = scanner.skip()
    found = tuple(scanner.listed(scanner.integer, "[", "]"))
    return found or scanner.fail("syntax", "expected sizes, as in [2,1]", place=place)


def _check_count(scanner: Scanner, sizes: Dims, place: int) -> int:
    count = math.prod(sizes)
    if not sizes or len(sizes) > 32 or min(sizes) < 1 or count > MOST_DEVICES:
        scanner.fail("syntax", f"[{_sizes_text(sizes)}] must describe 1 to {MOST_DEVICES:,} devices", place=place)
    return count


def _sizes_text(values: Dims) -> str:
    return ",".join(map(str, values[:20]))


# ----------------------------------------------------------------------------
# Meshes and their axes: `'a'=2`, the sub-axis `'a':(2)4`, and the devices: `device_ids=(3,2,1,0)` in HLO,
# `device_ids=[3,2,1,0]` in Shardy's text

_PART = re.compile(r":\s*\(\s*(\d{1,9})\s*\)\s*(\d{1,9})", re.ASCII)
AXIS = re.compile(r'(?<!\\)"((?:[^"\\]++|\\.)*+)"(?::\((\d{1,9})\)(\d{1,9}))?')
"""An axis or sub-axis, anywhere in Shardy's text."""
_LISTED = re.compile(r"\(\s*[\d)]", re.ASCII)
_SHARDY = re.compile(r"#sdy\.mesh\b")


@frozen
class AxisPart:
    """An axis in a text, or the sub-axis of `size` that follows a part of size `before`."""

    name: str
    before: int | None = None
    size: int | None = None


@frozen
class StatedMesh:
    """A mesh in a text: the sizes of its axes, and its device ids in row-major order; None for 0, 1, ..."""

    sizes: tuple[tuple[str, int], ...]
    ids: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """The number of devices."""
        return math.prod(size for _, size in self.sizes)

    def groups(self, parts: Iterable[AxisPart]) -> ReplicaGroups:
        """The groups of devices that differ only along these axes; the first axis is outermost.

        Raises ValueError for an unknown axis, a repeated one, or sub-axes that do not divide their axis.

        >>> StatedMesh((("a", 2), ("b", 4))).groups([AxisPart("a"), AxisPart("b", 2, 2)])
        ((0, 1, 4, 5), (2, 3, 6, 7))
        """
        sizes = dict(self.sizes)
        named = [
            (part.name, 1, sizes.get(part.name, 1)) if part.before is None else (part.name, part.before, part.size or 0)
            for part in parts
        ]
        if other := next((name for name, _, _ in named if name not in sizes), None):
            raise ValueError(f"the mesh has no axis {other[:60]!r}; it has {', '.join(map(repr, sizes)) or 'none'}")
        if len(set(named)) < len(named):
            raise ValueError("an axis of the mesh appears twice")
        extents: list[int] = []
        places: dict[tuple[str, int], int] = {}
        for name, size in self.sizes:
            before = 1
            for _, begin, extent in sorted(part for part in named if part[0] == name):
                if begin * extent < 1 or begin % before or size % (begin * extent):
                    raise ValueError(f"these sub-axes do not divide axis {name!r} of size {size}")
                places[name, begin] = len(extents) + 1
                extents += [begin // before, extent]
                before = begin * extent
            extents.append(size // before)
        inner = [places[name, begin] for name, begin, _ in named]
        outer = [dim for dim in range(len(extents)) if dim not in inner]
        ids = np.arange(self.count) if self.ids is None else np.array(self.ids)
        members = math.prod(extents[dim] for dim in inner)
        return _as_tuples(ids.reshape(extents).transpose(*outer, *inner).reshape(-1, members))


def read_mesh(scanner: Scanner) -> StatedMesh:
    """Read a mesh from the bracket before its axes: `['a'=2,'b'=4], device_ids=([2,4]T(1,0))`.

    A mesh without axes has one device, of any id.
    """
    place = scanner.skip()
    sizes = tuple(scanner.listed(lambda: _read_axis(scanner), "[", "]"))
    if len({name for name, _ in sizes}) < len(sizes):
        scanner.fail("syntax", "a mesh axis appears twice", place=place)
    count = _check_count(scanner, tuple(size for _, size in sizes), place) if sizes else 1
    place = scanner.skip()
    if not (scanner.take(",") and scanner.take_word("device_ids")):
        scanner.place = place
        return StatedMesh(sizes)
    scanner.expect("=")
    place = scanner.skip()
    ids = _read_ids(scanner)
    if sizes and (len(ids) != count or sorted(ids) != [*range(count)]):
        scanner.fail("syntax", f"device_ids must contain each of 0..{count - 1} exactly once", place=place)
    return StatedMesh(sizes, ids)


def _read_axis(scanner: Scanner) -> tuple[str, int]:
    name = read_axis_part(scanner).name
    scanner.expect("=")
    return name, scanner.integer()


def _read_ids(scanner: Scanner) -> Dims:
    if scanner.sees("["):
        return tuple(scanner.listed(scanner.integer, "[", "]"))
    if _LISTED.match(scanner.text, scanner.skip()):
        return tuple(scanner.listed(scanner.integer, "(", ")"))
    scanner.expect("(")
    place = scanner.skip()
    iota = read_iota(scanner)
    _check_count(scanner, iota.dims, place)
    scanner.expect(")")
    return tuple(iota.ids.tolist())


def read_axis_part(scanner: Scanner) -> AxisPart:
    """Read an axis of a mesh, or a part of one: `'a'`, `"b":(2)4`."""
    if not scanner.sees("'") and not scanner.sees('"'):
        scanner.expected("the name of a mesh axis in quotes")
    name = scanner.string()
    part = scanner.scan(_PART)
    return AxisPart(name, int(part[1]), int(part[2])) if part else AxisPart(name)


def axis_parts_in(text: str) -> Iterator[AxisPart]:
    """The axes and sub-axes in Shardy's text, ignoring everything between them.

    >>> [*axis_parts_in('#sdy<manual_axes{"x", "y":(2)4}>')]
    [AxisPart(name='x', before=None, size=None), AxisPart(name='y', before=2, size=4)]
    """
    for name, before, size in AXIS.findall(text):
        yield AxisPart(name, int(before), int(size)) if size else AxisPart(name)


def read_shardy_mesh(scanner: Scanner) -> StatedMesh:
    """Read a mesh of Shardy's text: `#sdy.mesh<["x"=2, "y"=4], device_ids=[...]>`, with or without the word."""
    scanner.scan(_SHARDY)
    scanner.expect("<")
    found = read_mesh(scanner)
    scanner.expect(">")
    return found


def read_shardy_meshes(scanner: Scanner) -> dict[str, StatedMesh]:
    """Read the meshes that the header of a module names: `{mesh = #sdy.mesh<["x"=2]>}`."""
    return dict(scanner.listed(lambda: _read_named_mesh(scanner)))


def _read_named_mesh(scanner: Scanner) -> tuple[str, StatedMesh]:
    name = scanner.string() if scanner.sees('"') else scanner.word()
    scanner.expect("=")
    return name, read_shardy_mesh(scanner)


# ----------------------------------------------------------------------------
# Replica groups: a list `{{0,1},{2,3}}`, an iota `[2,2]<=[4]`, or axes of a mesh


@frozen
class SpelledGroups:
    """Groups with their original text, which is printed unless the groups change."""

    groups: ReplicaGroups
    text: str


def groups_text(writer: NameWriter, instruction: Instruction) -> str:
    """The text of an instruction's groups: the original text, or a list."""
    groups = instruction.attributes.replica_groups
    spelled = instruction.annotations.get("replica_groups")
    if isinstance(spelled, SpelledGroups) and spelled.groups == groups:
        return spelled.text
    rows = ("{" + ",".join(map(str, group)) + "}" for group in groups)
    return "{" + ",".join(rows) + "}"


def read_groups(scanner: Scanner) -> SpelledGroups:
    """Read groups: a list `{{0,1},{2,3}}`, an iota `[2,2]<=[4]`, or a mesh `mesh['a'=2,'b'=2] {'b'}`."""
    begin = scanner.skip()
    if scanner.sees("{"):
        groups = tuple(scanner.listed(lambda: tuple(scanner.listed(scanner.integer))))
    elif scanner.sees("["):
        groups = _iota_groups(scanner)
    elif scanner.take_word("mesh"):
        groups = _mesh_groups(scanner)
    else:
        scanner.expected("a list of groups, such as {{0,1},{2,3}}, [2,2]<=[4] or mesh['a'=2,'b'=2] {'a'}")
    return SpelledGroups(groups, scanner.text[begin : scanner.place].rstrip())


def _as_tuples(ids: Any) -> ReplicaGroups:
    return tuple(map(tuple, ids.tolist()))


def _iota_groups(scanner: Scanner) -> ReplicaGroups:
    """Read an iota reshaped to groups."""
    place = scanner.skip()
    result = read_sizes(scanner)
    if len(result) != 2:
        scanner.fail("syntax", f"expected two dimensions, groups and members, got [{_sizes_text(result)}]", place=place)
    scanner.expect("<=")
    place = scanner.skip()
    iota = read_iota(scanner)
    count = _check_count(scanner, iota.dims, place)
    if count != math.prod(result):
        message = f"[{_sizes_text(iota.dims)}] has {count} devices, but [{_sizes_text(result)}] has {math.prod(result)}"
        scanner.fail("syntax", message, place=place)
    return _as_tuples(iota.ids.reshape(result))


def _mesh_groups(scanner: Scanner) -> ReplicaGroups:
    """Read the groups along axes of a mesh: one for each position along the other axes."""
    place = scanner.skip()
    mesh = read_mesh(scanner)
    if not mesh.sizes:
        scanner.fail("syntax", "the mesh of replica groups needs at least one axis", place=place)
    place = scanner.skip()
    parts = scanner.listed(lambda: read_axis_part(scanner))
    try:
        return mesh.groups(parts)
    except ValueError as error:
        return scanner.fail("syntax", str(error), place=place)
