"""A window of a cut dimension for each device: what it lacks comes from the devices that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference.types import s32

from .... import ops
from ....core.attributes import PaddingDimension
from ....core.builder import Value
from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis, count
from ...planning.places import groups_along, index_along
from ...planning.record import constant, dims_of, spread
from ..reasons import Neighbours
from .frame import Frame

Pairs: TypeAlias = "tuple[tuple[int, int], ...]"


@frozen(slots=False)
class Reach:
    """Of a dimension that axes cut into parts of `part` elements each place wants `size` elements from its start on.

    Elements outside of the first `extent` are of no array.
    """

    mesh: Mesh
    axes: tuple[Axis, ...]
    extent: int
    part: int
    starts: tuple[int, ...]
    size: int

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The number of the part in which the window of each place begins."""
        return tuple(start // self.part for start in self.starts)

    @cached_property
    def rounds(self) -> int:
        """How many parts the window of a place touches, at most."""
        ends = ((start + self.size - 1) // self.part for start in self.starts)
        return max(end - begin for begin, end in zip(self.first, ends, strict=True)) + 1

    @cached_property
    def low(self) -> int:
        """Elements at the beginning of the first part that no window wants."""
        return min(start - begin * self.part for start, begin in zip(self.starts, self.first, strict=True))

    @cached_property
    def high(self) -> int:
        """Where the last part ends for all windows."""
        last = self.rounds - 1
        ends = (s + self.size - (f + last) * self.part for s, f in zip(self.starts, self.first, strict=True))
        return max(1, *ends)

    def span(self, number: int) -> tuple[int, int]:
        """The elements of the part of a round that are wanted."""
        low = self.low if number == 0 else 0
        return low, max(self.high, low + 1) if number == self.rounds - 1 else self.part

    def sources(self, number: int) -> list[int | None]:
        """For each place the part that it gets in a round; None where there is none, or nothing of it is wanted."""
        return [
            part if 0 <= (part := begin + number) < len(self.starts) and part * self.part < start + self.size else None
            for begin, start in zip(self.first, self.starts, strict=True)
        ]

    def matchings(self, number: int) -> Iterator[list[tuple[int, int]]]:
        """The (part, place) of a round, in lists in which each part is given once."""
        rest = [(part, place) for place, part in enumerate(self.sources(number)) if part is not None]
        while rest:
            taken = dict(reversed(rest))
            yield list(taken.items())
            rest = [pair for pair in rest if taken[pair[0]] != pair[1]]

    def bytes(self, row: int) -> int:
        """The bytes that a device sends, where an element of the dimension has `row` bytes."""
        total = 0
        for number in range(self.rounds):
            low, high = self.span(number)
            moved = (pairs for pairs in self.matchings(number) if any(part != place for part, place in pairs))
            total += sum(1 for _ in moved) * (high - low) * row
        return total


def reach(mesh: Mesh, axes: Sequence[Axis], extent: int, first: int, step: int, size: int) -> Reach:
    """The windows that begin at `first`, a `step` after each other from place to place."""
    parts = count(axes)
    starts = tuple(first + step * place for place in range(parts))
    return Reach(mesh, tuple(axes), extent, -(-extent // parts), starts, size)


def windowed(frame: Frame, value: Value, dim: int, wanted: Reach, origin: Instruction, filler: Any) -> Value:
    """The window of a device along a dimension; what is of no array is the filler, a number or a value."""
    pieces = [_round(frame, value, dim, wanted, number, origin) for number in range(wanted.rounds)]
    whole = ops.concatenate(tuple(pieces), dimension=dim) if len(pieces) > 1 else pieces[0]
    offsets = [s - f * wanted.part - wanted.low for s, f in zip(wanted.starts, wanted.first, strict=True)]
    found = _cut_out(frame, whole, dim, wanted, offsets)
    is_inside = [s >= 0 and s + wanted.size <= wanted.extent for s in wanted.starts]
    return found if all(is_inside) else _filled(frame, found, dim, wanted, filler)


def _cut_out(frame: Frame, whole: Value, dim: int, wanted: Reach, offsets: list[int]) -> Value:
    dims = list(dims_of(whole))
    missing = max(offsets) + wanted.size - dims[dim]
    if missing > 0:
        around = [PaddingDimension(0, missing if n == dim else 0, 0) for n in range(len(dims))]
        whole = ops.pad(whole, _zero(frame, whole), padding=around)
    dims[dim] = wanted.size
    nothing = constant(frame.builder, np.int32(0))
    places = index_along(wanted.mesh, wanted.axes)
    start = frame.recorder.number([offsets[place] for place in places])
    starts = [start if n == dim else nothing for n in range(len(dims))]
    return ops.dynamic_slice(whole, starts, dynamic_slice_sizes=dims)


def _zero(frame: Frame, value: Value) -> Value:
    return constant(frame.builder, np.zeros((), value.shape.dtype.dtype))  # type: ignore[union-attr]


def _round(frame: Frame, value: Value, dim: int, wanted: Reach, number: int, origin: Instruction) -> Value:
    """What each device gets in a round: the wanted elements of one part."""
    low, high = wanted.span(number)
    dims = dims_of(value)
    given = value
    if (low, high) != (0, dims[dim]):
        starts = tuple(low if n == dim else 0 for n in range(len(dims)))
        limits = tuple(high if n == dim else extent for n, extent in enumerate(dims))
        given = ops.slice(value, start_indices=starts, limit_indices=limits, strides=(1,) * len(dims))
    found: Value | None = None
    for pairs in wanted.matchings(number):
        got = given
        if any(part != place for part, place in pairs):
            got = _sent(frame, given, wanted, pairs, Neighbours(origin, dim, wanted, (low, high), tuple(pairs)))
        found = got if found is None else _either(frame, wanted, pairs, got, found)
    return given if found is None else found


def _sent(frame: Frame, given: Value, wanted: Reach, pairs: list[tuple[int, int]], reason: Neighbours) -> Value:
    groups = groups_along(wanted.mesh, wanted.axes)
    devices = sorted((group[part], group[place]) for group in groups for part, place in pairs)
    value = ops.collective_permute([given], source_target_pairs=devices, channel_id=frame.recorder.channel())
    shape = given.shape
    size = shape.size * max(1, shape.dtype.bits // 8)  # type: ignore[union-attr]
    frame.note(value, wanted.axes, size, reason.user, reason)
    return value


def _either(frame: Frame, wanted: Reach, pairs: list[tuple[int, int]], one: Value, other: Value) -> Value:
    """The first value at the places of the pairs, the other elsewhere."""
    takes = {place for _, place in pairs}
    flags = [int(place in takes) for place in index_along(wanted.mesh, wanted.axes).tolist()]
    is_taken = ops.compare(frame.recorder.number(flags), constant(frame.builder, np.int32(1)), direction="EQ")
    return ops.select(spread(is_taken, dims_of(one)), one, other)


def _filled(frame: Frame, value: Value, dim: int, wanted: Reach, filler: Any) -> Value:
    """The value with the filler where elements are of no array."""
    dims = dims_of(value)
    starts = frame.recorder.number([wanted.starts[place] for place in index_along(wanted.mesh, wanted.axes)])
    place = ops.add(ops.iota(frame.builder, shape=s32[dims], iota_dimension=dim), spread(starts, dims))
    low = ops.compare(place, spread(constant(frame.builder, np.int32(0)), dims), direction="GE")
    high = ops.compare(place, spread(constant(frame.builder, np.int32(wanted.extent)), dims), direction="LT")
    number = filler if isinstance(filler, Value) else constant(frame.builder, filler)
    return ops.select(ops.and_(low, high), value, spread(number, dims))
