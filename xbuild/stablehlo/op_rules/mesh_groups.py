"""Groups that are stated by axes of a mesh, as the lists of ids that they stand for."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...text.spelling.groups import MOST_DEVICES
from ..reading.operation import Reading
from ..syntax.attributes import Record, Symbol

_AXIS = re.compile(r'"([^"\\]{1,200})"\s*=\s*(\d{1,9})', re.ASCII)
_NAMED = re.compile(r'name\s*=\s*"([^"\\]{1,200})"\s*,\s*size\s*=\s*(\d{1,9})', re.ASCII)
_PART = re.compile(r'\s*"([^"\\]{1,200})"(?:\s*:\s*\((\d{1,9})\)(\d{1,9}))?\s*', re.ASCII)
_IDS = re.compile(r"device_ids\s*=\s*(?:\[|dense<\[?)([\d,\s]*)\]", re.ASCII)

Part = tuple[str, int | None, int | None]


def lists_of(op: Reading, stated: Record) -> tuple[tuple[int, ...], ...]:
    """The groups of devices that differ along the axes alone, the first axis outermost.

    Each row of the mesh's device ids, with these axes moved to its end, is a group.
    """
    sizes, ids = _mesh(op, stated.fields.get("mesh"))
    parts = [_part(op, each) for each in _axes(op, stated)]
    cut = _cut(op, sizes, parts)
    places = [_place(op, cut, part) for part in parts]
    if len(set(places)) < len(places):
        op.fail("invalid_group", "an axis of the mesh is named twice; each counts once")
    rest = [place for place in range(len(cut)) if place not in places]
    grid = ids.reshape([size for _, _, size in cut]).transpose([*rest, *places])
    size = math.prod(cut[place][2] for place in places)
    return tuple(map(tuple, grid.reshape(-1, size).tolist()))


def _axes(op: Reading, stated: Record) -> tuple[Any, ...]:
    axes = stated.fields.get("axes", ())
    if not isinstance(axes, tuple) or not all(isinstance(each, Record) for each in axes):
        op.fail("invalid_attribute", 'axes are written as [#stablehlo.axis_ref<name = "x">]')
    return axes


def _part(op: Reading, axis: Record) -> Part:
    """The name of an axis and, where it is a part, how many parts stand before it and how many it has."""
    name, part = axis.fields.get("name"), axis.fields.get("sub_axis_info", (None, None))
    written = None if isinstance(name, str) else _PART.fullmatch(axis.text)
    if written:
        return written[1], *(None if each is None else int(each) for each in written.groups()[1:])  # type: ignore[return-value]
    if not isinstance(name, str) or not isinstance(part, tuple) or len(part) != 2:
        op.fail("invalid_attribute", f"{axis.text[:60]!r} is no axis of a mesh")
    return name, *part


def _mesh(op: Reading, given: Any) -> tuple[dict[str, int], Any]:
    """The sizes of the axes by name, and the ids of the devices in row-major order."""
    record = _named_mesh(op, given.name) if isinstance(given, Symbol) else given
    if not isinstance(record, Record):
        op.fail("invalid_attribute", "the mesh of the groups is missing")
    found = _AXIS.findall(record.text) or _NAMED.findall(record.text)
    sizes = {name: int(size) for name, size in found}
    count = math.prod(sizes.values())
    if not 0 < count <= MOST_DEVICES or len(sizes) < len(found):
        op.fail("invalid_attribute", f"a mesh has 1 to {MOST_DEVICES:,} devices, in axes of different names")
    listed = _IDS.search(record.text)
    ids = np.arange(count) if listed is None else np.array([int(each) for each in listed[1].split(",") if each.strip()])
    if sorted(ids.tolist()) != [*range(count)]:
        op.fail("invalid_attribute", f"the device ids of the mesh are no permutation of 0..{count - 1}")
    return sizes, ids


def _named_mesh(op: Reading, name: str) -> Any:
    meshes: Mapping[str, Any] = {
        str(each.attributes.get("sym_name", "")): each.attributes.get("mesh")
        for each in op.scope.reader.tree.regions[0].operations
        if each.name in ("sdy.mesh", "stablehlo.mesh")
    }
    if name not in meshes:
        op.fail("undefined_name", f"there is no mesh @{name[:60]}", *op.scope.reader.near(name, meshes))
    return meshes[name]


def _cut(op: Reading, sizes: Mapping[str, int], parts: list[Part]) -> list[tuple[str, int, int]]:
    """The axes cut at the ends of the parts that are named: the name, the number of parts before it, the size."""
    found = []
    for name, size in sizes.items():
        ends = {1, size}
        for before, count in ((part[1], part[2]) for part in parts if part[0] == name):
            if before is not None and count is not None:
                ends |= {before, before * count}
        ordered = sorted(ends)
        if any(end < 1 or size % end or end % start for start, end in zip([1, *ordered], ordered, strict=False)):
            op.fail("invalid_group", f"axis {name!r} has size {size}, and these parts do not divide it")
        found += [(name, start, end // start) for start, end in itertools.pairwise(ordered)]
        found += [(name, 1, 1)] if size == 1 else []
    return found


def _place(op: Reading, cut: list[tuple[str, int, int]], part: Part) -> int:
    name, before, count = part
    for place, (axis, start, size) in enumerate(cut):
        if axis == name and (before is None or (before, count) == (start, size)):
            return place
    return op.fail("invalid_group", f"the mesh has no axis {name[:60]!r} that could be taken so")
