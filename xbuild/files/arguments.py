"""Reader of arguments (`[d<device>_]arg<i>`) and infeed items (`[d<device>_]infeed<i>`) from npz files."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import PRIMITIVES, AnyShape, Dims, PrimitiveType, Shape, TokenShape, TupleShape

from ..core.attributes import Array
from .npz import ArchiveError, Member, members
from .results import check_size, count_leaves, from_bits


def read_arguments(
    path: str | os.PathLike[str], parameters: Sequence[Sequence[AnyShape]], most: int | None = None
) -> list[list[Any]]:
    """The arguments of each device, in the structure of its parameters; ArchiveError names a missing or wrong array.

    An array whose extents differ from the parameter's is not loaded: an array of its type and extents that takes no
    memory replaces it, which the run refuses. `most` limits the total number of bytes.
    """
    with members(path) as found:
        stored = Stored(_named(found, parameters, os.fspath(path)), most)
        return [_device(stored, device, shapes) for device, shapes in enumerate(parameters)]


_NAME = re.compile(r"(?:d(?P<device>\d{1,9})_)?(?:(?P<out>out)|arg)(?P<number>\d{1,9})(?::\w+)?", re.ASCII)


def _named(found: Mapping[str, Member], parameters: Sequence[Sequence[AnyShape]], path: str) -> dict[str, Member]:
    """The arrays by name without element type; results, d<device>_out<i>, are permitted beside arguments."""
    counts = [count_leaves(shapes) for shapes in parameters]
    named: dict[str, Member] = {}
    for name, member in found.items():
        match = _NAME.fullmatch(name)
        if match is None:
            told = f"{path!r} holds {name[:60]!r}, which is no argument"
            raise ArchiveError(f"{told}: d<device>_arg<i> or arg<i> is wanted")
        key, number = name.partition(":")[0], int(match["number"])
        device = None if match["device"] is None else int(match["device"])
        if device is not None and device >= len(counts):
            raise ArchiveError(f"{key} is for device {device}, and the program has {len(counts)}")
        wanted = max(counts, default=0) if device is None else counts[device]
        if not match["out"] and number >= wanted:
            raise ArchiveError(
                f"{key} is given, and the program takes {wanted or 'no'} argument{'s' * (wanted != 1)}: {_KEYS}"
            )
        if key in named:
            raise ArchiveError(f"{path!r} holds {key} in two types")
        named[key] = member
    return named


_KEYS = "arg0, arg1 and so on"


class Stored:
    """Arrays of a file, each loaded once, on first access."""

    def __init__(self, found: Mapping[str, Member], most: int | None) -> None:
        self.found, self.most, self.taken = found, most, 0
        self.loaded: dict[str, Array] = {}

    def array(self, name: str, shape: Shape) -> Array:
        member = self.found[name]
        if not _fits(member.dims, shape):
            return unloaded(member)
        if name not in self.loaded:
            self.taken += member.bytes
            check_size(self.taken, self.most, f"the arguments up to {name}")
            self.loaded[name] = member.load()
        return from_bits(self.loaded[name], shape.dtype)


def _fits(dims: Dims, shape: Shape) -> bool:
    bounds = shape.dynamic or (False,) * shape.rank
    return len(dims) == shape.rank and all(
        size <= extent if is_bound else size == extent
        for size, extent, is_bound in zip(dims, shape.dims, bounds, strict=True)
    )


def unloaded(member: Member) -> Array:
    """An array of zeros with the type and extents of a member, which takes no memory."""
    try:
        return np.broadcast_to(np.zeros((), member.dtype), member.dims)
    except ValueError:
        raise ArchiveError(f"{member.name!r} is {member}, and no array is as large") from None


def _device(stored: Stored, device: int, shapes: Sequence[AnyShape]) -> list[Any]:
    counter = iter(range(2**31))
    return [_filled(stored, device, shape, counter) for shape in shapes]


def _filled(stored: Stored, device: int, shape: AnyShape, counter: Iterator[int]) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_filled(stored, device, element, counter) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    number = next(counter)
    for key in (f"d{device}_arg{number}", f"arg{number}"):
        if key in stored.found:
            return stored.array(key, shape)
    have = sorted(stored.found)
    raise ArchiveError(
        f"argument {number} of device {device}, {shape}, is missing: neither d{device}_arg{number} nor arg{number} is "
        f"among {', '.join(have[:_SHOWN]) or 'no arrays'}{f' and {len(have) - _SHOWN:,} more' * (len(have) > _SHOWN)}"
    )


_SHOWN = 20


_ITEM = re.compile(
    r"(?:d(?P<device>\d{1,9})_)?infeed(?P<item>\d{1,9})(?P<path>(?:_\d{1,9})*)(?::(?P<type>\w+))?", re.ASCII
)
_DEEPEST = 40

LeafPath: TypeAlias = tuple[int, ...]


@frozen
class Item:
    """An array of an infeed item that is not loaded, and the element type in its name, if any."""

    member: Member
    dtype: PrimitiveType | None

    def load(self) -> Array:
        found = self.member.load()
        return found if self.dtype is None else from_bits(found, self.dtype)


Parts: TypeAlias = Mapping[LeafPath, Item]


def read_infeed(path: str | os.PathLike[str], devices: int, most: int | None = None) -> list[list[Any]]:
    """The infeed items of each device: `d<device>_infeed<i>`, or `infeed<i>` where a device has none of its own.

    Element k of an item that is a tuple is `infeed<i>_<k>`; nested elements have further numbers. Items are numbered
    from 0. `most` limits the total number of bytes. All names are checked before an array is loaded.
    """
    with members(path) as stored:
        check_size(sum(each.bytes for each in stored.values()), most, "the items of the infeed")
        found = _items(stored, devices)
        common = found.get(None, {})
        items = [_counted(common | found.get(device, {}), device) for device in range(devices)]
        load = functools.cache(Item.load)
        return [[_loaded(item, load) for item in each] for each in items]


def _loaded(item: Any, load: Callable[[Item], Array]) -> Any:
    return tuple(_loaded(each, load) for each in item) if isinstance(item, tuple) else load(item)


def _items(stored: Mapping[str, Member], devices: int) -> dict[int | None, dict[int, dict[LeafPath, Item]]]:
    """The parts of each infeed item, by device, item number and tuple index."""
    found: dict[int | None, dict[int, dict[LeafPath, Item]]] = {}
    for key, member in stored.items():
        device, item, place, dtype = _item_of(key)
        if device is not None and device >= devices:
            raise ArchiveError(f"{key} is for device {device}, and the program has {devices}")
        parts = found.setdefault(device, {}).setdefault(item, {})
        if place in parts:
            raise ArchiveError(f"{key.partition(':')[0]} is there in two types")
        parts[place] = Item(member, dtype)
    return found


def _item_of(key: str) -> tuple[int | None, int, LeafPath, PrimitiveType | None]:
    """The device of a name (None for all devices), the item number, the tuple index and the element type."""
    match = _ITEM.fullmatch(key)
    if match is None or (match["type"] and match["type"] not in PRIMITIVES):
        raise ArchiveError(f"{key[:60]!r} is no item of an infeed: d<device>_infeed<i> or infeed<i> is wanted")
    place = tuple(map(int, match["path"].split("_")[1:]))
    if len(place) > _DEEPEST:
        raise ArchiveError(f"{key[:60]!r} stands in {len(place)} tuples, and {_DEEPEST} are the most")
    device = None if match["device"] is None else int(match["device"])
    return device, int(match["item"]), place, PRIMITIVES[match["type"]] if match["type"] else None


def _counted(items: Mapping[int, Parts], device: int) -> list[Any]:
    for number in range(len(items)):
        if number not in items:
            raise ArchiveError(f"infeed item {number} of device {device} is missing, and {max(items)} is there")
    return [_joined(items[number], f"infeed{number}") for number in range(len(items))]


def _joined(parts: Parts, name: str) -> Any:
    """An infeed item: an array, or the tuple of its elements 0, 1, ..."""
    if () in parts:
        if len(parts) > 1:
            raise ArchiveError(f"{name} is an array, and is a tuple, too")
        return parts[()]
    inside: dict[int, dict[LeafPath, Item]] = {}
    for place, part in parts.items():
        inside.setdefault(place[0], {})[place[1:]] = part
    for number in range(len(inside)):
        if number not in inside:
            raise ArchiveError(f"element {number} of {name} is missing, and {max(inside)} is there")
    return tuple(_joined(inside[number], f"{name}_{number}") for number in range(len(inside)))
