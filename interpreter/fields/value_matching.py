"""Values that two programs have in common: whole, or as tiles on the devices; and the first one that has no equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Dims
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import PLAIN_CALLS, STRUCTURE
from xbuild.properties.order import needed_by

from ..compiler.lines import Path
from .rules.evaluation import is_float
from .rules.functions import random_words
from .rules.places import mixed


def needed_instructions(entry: Computation) -> set[Instruction]:
    """The instructions on which the results depend, in all computations that are called."""
    return needed_by([entry.root], lambda each: (*each.operands, *(called.root for called in each.called)))


Key: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The ids of the instructions of a call path, and the trips of its loops."""

MOST_BYTES = 1 << 29
"""How many bytes of values are kept of a program; later values are left out."""


@frozen(eq=False)
class ObservedValue:
    """A value that devices have computed at one place of a program."""

    path: Path
    trips: tuple[int, ...]
    values: dict[int, Array] = field(factory=dict)
    digests: dict[int, int] = field(factory=dict)

    def digest(self, device: int) -> int:
        """The number for the array of a device."""
        if device not in self.digests:
            self.digests[device] = digest(self.values[device])
        return self.digests[device]

    @property
    def instruction(self) -> Instruction:
        return self.path[-1].instruction

    @property
    def is_float(self) -> bool:
        return is_float(self.instruction.shape)


_TAKEN = STRUCTURE | {"dynamic_update_slice", "broadcast", "copy"}
"""Ops whose values are those of other instructions for the most part."""


@define(eq=False)
class ValueRecorder:
    """The array values of a run, in the order in which the first device computes them.

    `only_computed` leaves out values that are those of other instructions, or large parts of them.
    """

    kept: dict[Key, ObservedValue] = field(factory=dict)
    bytes: int = 0
    only_computed: bool = False

    def observe(self, device: int, path: Path, trips: tuple[int, ...], value: Any) -> None:
        """Keep a value that is an array."""
        if not isinstance(value, np.ndarray | np.generic) or self.bytes > MOST_BYTES:
            return
        if self.only_computed and path[-1].instruction.opcode in _TAKEN:
            return
        array = _without_the_rest(np.asarray(value))
        self.bytes += array.nbytes
        key = place_key(path, trips)
        if key not in self.kept:
            self.kept[key] = ObservedValue(path, trips)
        self.kept[key].values[device] = array

    def by_name(self) -> dict[str, ObservedValue]:
        """The first value of each name, in order."""
        found: dict[str, ObservedValue] = {}
        for value in self.kept.values():
            found.setdefault(value.instruction.name, value)
        return found


def _without_the_rest(array: Array) -> Array:
    """An array that does not keep a larger one, of which it is a part, in memory."""
    whole = array.base
    return array.copy() if isinstance(whole, np.ndarray) and whole.nbytes > 2 * array.nbytes else array


def path_key(path: Path) -> tuple[int, ...]:
    """The ids of the instructions of a call path."""
    return tuple(id(place.instruction) for place in path)


def place_key(path: Path, trips: tuple[int, ...]) -> Key:
    """The key of the value at a call path, at a trip of the loops around it."""
    return path_key(path), trips


def key_of(kept: ObservedValue, operand: Instruction) -> Key:
    """The key of an operand of a kept value."""
    return (*(id(place.instruction) for place in kept.path[:-1]), id(operand)), kept.trips


@frozen
class Digested:
    """The shape and the digest of an array that is not kept."""

    shape: Dims
    number: int


def digest(value: Array | Digested) -> int:
    """A number for an array, in which each element counts at its place."""
    if isinstance(value, Digested):
        return value.number
    return int(tile_digests(value, value.shape).reshape(-1)[0]) if value.size else 0


def tile_digests(value: Array, tile: Dims) -> Array:
    """The digest of each tile of an array."""
    return _tile_digests(random_words("element", value), tile, tile)


def _tile_digests(words: Array, tile: Dims, shape: Dims) -> Array:
    """The digests of tiles of the words of an array; `shape` may lack dimensions of the tile that have extent 1."""
    grid = [n // t for n, t in zip(words.shape, tile, strict=True)]
    split = words.reshape([extent for pair in zip(grid, tile, strict=True) for extent in pair])
    rank = len(tile)
    rows = split.transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]).reshape(prod(grid), prod(tile))
    at = mixed(np.arange(rows.shape[1], dtype=np.uint64), 13)
    return np.asarray(np.bitwise_xor.reduce(mixed(rows ^ at, 14), 1) ^ np.uint64(hash(shape) % 2**64))


_MOST_RANK = 6
"""Beyond this rank, a tile has all dimensions of its value."""


def _spread(shape: Dims, rank: int) -> Iterator[Dims]:
    """The shapes of this rank that differ from a shape only in dimensions of extent 1; else the shape itself."""
    if len(shape) == rank:
        yield shape
        return
    extents = [extent for extent in shape if extent != 1]
    for places in combinations(range(rank), len(extents)):
        spread = [1] * rank
        for place, extent in zip(places, extents, strict=True):
            spread[place] = extent
        yield tuple(spread)


def tiles_of_devices(whole: Array, locals_: Mapping[int, Array | Digested]) -> dict[int, set[int]]:
    """For each device, the numbers of the tiles of an array, in row-major order, that are equal to its array."""
    digests = tile_digests(whole, next(iter(locals_.values())).shape)
    return {device: {*np.flatnonzero(digests == np.uint64(digest(tile))).tolist()} for device, tile in locals_.items()}


def tile_slices(dims: Dims, tile: Dims, number: int) -> tuple[slice, ...]:
    """Where a tile is in an array with these dimensions."""
    grid = [extent // size for extent, size in zip(dims, tile, strict=True)]
    starts = (int(n) * size for n, size in zip(np.unravel_index(number, grid), tile, strict=True))
    return tuple(slice(start, start + size) for start, size in zip(starts, tile, strict=True))


@define(eq=False)
class ValueMatching:
    """Values of one program found in another: the keys of each value there.

    The other program has a value of a global program in full or in tiles that cover it, and one of each device on the
    same devices. With `ignores_units`, tiles may have more or fewer dimensions of extent 1 than the value.
    """

    one: ValueRecorder
    other: ValueRecorder
    ignores_units: bool = False
    found: dict[Key, list[Key]] = field(factory=dict)
    _devices: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._devices = max((len(each.values) for each in self.other.kept.values()), default=1)
        by_digest, tiles = self._index()
        for key, kept in self.one.kept.items():
            self.found[key] = [*self._places(kept, by_digest, tiles)]

    def _index(self) -> tuple[dict[int, list[Key]], dict[int, set[Dims]]]:
        """The values of the other program by the digest on their first device, and shapes of tiles for each rank."""
        by_digest: dict[int, list[Key]] = defaultdict(list)
        tiles: dict[int, set[Dims]] = defaultdict(set)
        for key, kept in self.other.kept.items():
            first = kept.values[min(kept.values)]
            by_digest[kept.digest(min(kept.values))].append(key)
            for rank in self._ranks(first.shape):
                tiles[rank].add(first.shape)
        return by_digest, tiles

    def _ranks(self, shape: Dims) -> Sequence[int]:
        """The ranks of the values of which an array of this shape may be a tile."""
        if not self.ignores_units:
            return (len(shape),)
        return range(sum(extent != 1 for extent in shape), max(len(shape), _MOST_RANK) + 1)

    def _places(
        self, kept: ObservedValue, by_digest: Mapping[int, list[Key]], tiles: Mapping[int, set[Dims]]
    ) -> Iterator[Key]:
        first = min(kept.values)
        value = kept.values[first]
        if not value.size:
            return
        if len(kept.values) > 1:  # two programs of each device: a value is the same on every one
            yield from (
                key for key in by_digest.get(kept.digest(first), ()) if self._is_same(kept, self.other.kept[key])
            )
            return
        seen, words = set[Key](), random_words("element", value)
        for shape in tiles.get(value.ndim, ()):
            if len(shape) != value.ndim and value.size > prod(shape) * self._devices:
                continue
            for tile in _spread(shape, value.ndim):
                if any(not t or n % t for n, t in zip(value.shape, tile, strict=True)):
                    continue
                digests = _tile_digests(words, tile, shape)
                wanted = set(digests.tolist())
                for each in dict.fromkeys(digests.tolist()):
                    for key in by_digest.get(each, ()):
                        if key not in seen and self._holds(self.other.kept[key], wanted):
                            seen.add(key)
                            yield key

    @staticmethod
    def _is_same(kept: ObservedValue, other: ObservedValue) -> bool:
        """Whether all devices have the same array of two values."""
        return all(device in other.values and kept.digest(device) == other.digest(device) for device in kept.values)

    @staticmethod
    def _holds(kept: ObservedValue, wanted: set[int]) -> bool:
        """Whether all devices have tiles of the value, and all tiles are on devices."""
        return {kept.digest(device) for device in kept.values} == wanted

    def first_unmatched(self, entry: Computation) -> Instruction | None:
        """The first value that the results need and the other program lacks, though it has all its operands."""
        wanted = needed_instructions(entry)
        for key, kept in self.one.kept.items():
            instruction = kept.instruction
            if self.found[key] or instruction.opcode in _PASSING or instruction not in wanted:
                continue
            if instruction.operands and all(self.found.get(key_of(kept, operand)) for operand in instruction.operands):
                return instruction
        return None


_PASSING = STRUCTURE | PLAIN_CALLS | frozenset({"while", "conditional", "copy", "opt_barrier"})
"""Ops whose value is that of another instruction, which is reported instead."""


def first_difference(expected: Sequence[Array], given: Sequence[Array]) -> tuple[int, Dims] | None:
    """The first device, and the place there, at which two lists of arrays differ."""
    for device, (left, right) in enumerate(zip(expected, given, strict=True)):
        differs = np.asarray(left != right)
        if differs.any():
            place = np.unravel_index(int(np.argmax(differs)), differs.shape)
            return device, tuple(map(int, place))
    return None
