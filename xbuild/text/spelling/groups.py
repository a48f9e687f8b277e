"""Reader and printer of replica groups, which HLO text spells as a list, an iota or a mesh."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from shape_inference import Dims

from ...core.attributes import ReplicaGroups
from ...core.graph import Instruction

if TYPE_CHECKING:
    from .scanner import Scanner
    from .writer import Writer

MOST_DEVICES = 1 << 20

_AXIS = re.compile(r"'[^'\n]*+'|\"[^\"\n]*+\"")
_LISTED = re.compile(r"\(\s*[\d)]", re.ASCII)


@frozen
class SpelledGroups:
    """Groups with their spelling in a text, which is printed while the groups are unchanged."""

    groups: ReplicaGroups
    text: str


def groups_text(writer: Writer, instruction: Instruction) -> str:
    """The text of an instruction's groups: the spelling that was read, or a list."""
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
        groups = _rows(_iota(scanner))
    elif scanner.take_word("mesh"):
        groups = _mesh(scanner)
    else:
        scanner.expected("a list of groups, such as {{0,1},{2,3}}, [2,2]<=[4] or mesh['a'=2,'b'=2] {'a'},")
    return SpelledGroups(groups, scanner.text[begin : scanner.place])


def _rows(ids: Any) -> ReplicaGroups:
    return tuple(tuple(row) for row in ids.tolist())


def _sizes(scanner: Scanner) -> Dims:
    return tuple(scanner.listed(scanner.integer, "[", "]"))


def _iota(scanner: Scanner) -> Any:
    """The device ids of an iota: 0, 1, ... in the shape after `<=`, transposed, then reshaped to groups."""
    place = scanner.skip()
    result = _sizes(scanner)
    if len(result) != 2:
        scanner.fail("syntax", f"[{_joined(result)}] has {len(result)} dimensions; groups have 2", place=place)
    scanner.expect("<=")
    return _counted(scanner, result)


def _counted(scanner: Scanner, result: Dims) -> Any:
    place = scanner.skip()
    sizes = _sizes(scanner)
    order = _order(scanner, sizes)
    count = _count(scanner, sizes, place)
    if count != math.prod(result):
        scanner.fail(
            "syntax", f"[{_joined(sizes)}] has {count} devices, [{_joined(result)}] {math.prod(result)}", place=place
        )
    return np.arange(count).reshape(sizes).transpose(order).reshape(result)


def _count(scanner: Scanner, sizes: Dims, place: int) -> int:
    count = math.prod(sizes)
    if not sizes or len(sizes) > 32 or min(sizes) < 1 or count > MOST_DEVICES:
        scanner.fail("syntax", f"[{_joined(sizes)}] is no list of 1 to {MOST_DEVICES} devices", place=place)
    return count


def _order(scanner: Scanner, sizes: Dims) -> Dims:
    """The permutation after the sizes, such as `T(1,0)`, which several dimensions may have."""
    place = scanner.skip()
    if not scanner.take("T("):
        return tuple(range(len(sizes)))
    scanner.place -= 1
    order = tuple(scanner.listed(scanner.integer, "(", ")"))
    if len(sizes) < 2 or sorted(order) != list(range(len(sizes))):
        scanner.fail("syntax", f"T({_joined(order)}) is no order of several dimensions [{_joined(sizes)}]", place=place)
    return order


def _mesh(scanner: Scanner) -> ReplicaGroups:
    """The groups of a mesh: one for each combination of indices of the axes that are not named."""
    place = scanner.skip()
    axes = scanner.listed(lambda: _axis(scanner), "[", "]")
    if len({name for name, _ in axes}) != len(axes):
        scanner.fail("syntax", "a mesh axis is named twice", place=place)
    sizes = tuple(size for _, size in axes)
    count = _count(scanner, sizes, place)
    ids = _device_ids(scanner, count).reshape(sizes)
    return _grouped(scanner, ids, [name for name, _ in axes])


def _axis(scanner: Scanner) -> tuple[str, int]:
    name = _axis_name(scanner)
    scanner.expect("=")
    return name, scanner.integer()


def _axis_name(scanner: Scanner) -> str:
    match = scanner.scan(_AXIS)
    return match[0][1:-1] if match else scanner.expected("the name of a mesh axis, in quotes,")


def _device_ids(scanner: Scanner, count: int) -> Any:
    """The device ids of a mesh: 0, 1, ..., or the iota or the list after `device_ids=`."""
    if not scanner.take(","):
        return np.arange(count)
    if not scanner.take_word("device_ids"):
        scanner.expected("device_ids=")
    scanner.expect("=")
    place = scanner.skip()
    if _LISTED.match(scanner.text, place):
        return _listed_ids(scanner, count)
    scanner.expect("(")
    place = scanner.skip()
    sizes = _sizes(scanner)
    order = _order(scanner, sizes)
    scanner.expect(")")
    if _count(scanner, sizes, place) != count:
        scanner.fail(
            "syntax", f"device_ids [{_joined(sizes)}] are {math.prod(sizes)}, the mesh has {count}", place=place
        )
    return np.arange(count).reshape(sizes).transpose(order).reshape(-1)


def _listed_ids(scanner: Scanner, count: int) -> Any:
    place = scanner.skip()
    ids = scanner.listed(scanner.integer, "(", ")")
    if sorted(ids) != [*range(count)]:
        scanner.fail("syntax", f"device_ids are the numbers from 0 to {count - 1}, each once", place=place)
    return np.array(ids)


def _grouped(scanner: Scanner, ids: Any, names: list[str]) -> ReplicaGroups:
    """The groups over the named axes: split partly named axes into (before, part, after), move named ones last."""
    place = scanner.skip()
    named = scanner.listed(lambda: _part(scanner))
    cut: list[int] = []
    places: dict[tuple[str, int], int] = {}
    for name, size in zip(names, ids.shape, strict=True):
        parts = [part for part in named if part[0] == name]
        before = 1
        for _, begin, extent in sorted(parts, key=lambda part: part[1] or 0):
            begin, extent = begin or 1, extent or size
            if begin % before or extent < 1 or size % (begin * extent):
                scanner.fail("syntax", f"({begin}){extent} is no part of axis {name!r} of size {size}", place=place)
            places[name, begin] = len(cut) + 1
            cut += [begin // before, extent]
            before = begin * extent
        cut.append(size // before)
    known = [(name, begin or 1) for name, begin, _ in named]
    if any(key not in places for key in known) or len(set(known)) != len(known):
        scanner.fail("syntax", f"the axes are {', '.join(map(repr, names))}, each to be named once", place=place)
    inner = [places[key] for key in known]
    outer = [dim for dim in range(len(cut)) if dim not in inner]
    members = math.prod(cut[dim] for dim in inner)
    return _rows(ids.reshape(cut).transpose(*outer, *inner).reshape(-1, members))


def _part(scanner: Scanner) -> tuple[str, int | None, int | None]:
    """A named axis, or a part of one: `'a':(2)4` is the part of size 4 after a part of size 2."""
    name = _axis_name(scanner)
    if not scanner.take(":"):
        return name, None, None
    scanner.expect("(")
    begin = scanner.integer()
    scanner.expect(")")
    if begin < 1:
        scanner.fail("syntax", f"({begin}) is no size")
    return name, begin, scanner.integer()


def _joined(values: Dims) -> str:
    return ",".join(map(str, values[:20]))
