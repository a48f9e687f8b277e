"""Exchanges: which elements devices send each other where a dimension's elements move, and the permutes for it.

Sections:

    plan_result_parts, plan_windows and plan_own_elements: what each device needs
    Exchange: rounds of permutes that give each position its line
    Segment and Line: where the elements of a dimension come from
    Along: a split dimension in the program that is recorded
    record_exchange: records the elements that each device needs along a dimension
    lay_out: records a line of values that every device holds in full

A position is the place of a device along the axes that split the dimension.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference.types import s32

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ..resharding_ops import constant, dims_of, spread, zero
from ..sharding import Axis, count, groups_along, index_along
from .frame import Frame
from .reasons import Neighbours, Wish

# ----------------------------------------------------------------------------
# plan_result_parts, plan_windows and plan_own_elements: what each device needs


def plan_result_parts(line: Line, extents: Sequence[int], count: int) -> Exchange | None:
    """Each of `count` positions needs its part of a line; `extents` are those of the sources, split as often."""
    size = -(-line.extent // count)
    lines = tuple(line.between(place * size, size) for place in range(count))
    used = tuple(min(size, max(0, line.extent - place * size)) for place in range(count))
    return plan_exchange(_part_extents(extents, count), lines, used)


def plan_windows(line: Line, extent: int, first: int, step: int, size: int, used: Sequence[int]) -> Exchange | None:
    """Position n needs `size` elements of one source's line from `first` + n * `step` on; the first used[n] matter."""
    lines = (line.between(first + place * step, count) for place, count in enumerate(used))
    return plan_exchange(
        _part_extents([extent], len(used)), tuple(evolve(each, extent=size) for each in lines), tuple(used)
    )


def plan_own_elements(line: Line, extents: Sequence[int], count: int) -> Exchange | None:
    """Each position needs those elements of a line that it holds."""
    parts = _part_extents(extents, count)
    own: list[list[Segment]] = [[] for _ in range(count)]
    for segment in line.segments:
        part = parts[segment.source]
        for number, each in segment.within(part):
            own[number].append(evolve(each, first=each.first + number * part))
    return plan_exchange(parts, tuple(Line(line.extent, tuple(each)) for each in own), (line.extent,) * count)


def _part_extents(extents: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(-(-extent // count) for extent in extents)


# ----------------------------------------------------------------------------
# Exchange: rounds of permutes that give each position its line

MOST_MOVES, MOST_PER_POSITION = 4096, 8
"""No exchange is planned that has more moves than the first number and more for each position than the second."""


@frozen
class PartMove:
    """Elements of one part that one position needs: the part, the position, and the segment inside the part."""

    part: int
    place: int
    segment: Segment

    @property
    def kind(self) -> tuple[int, int]:
        """The source and the step between elements, by which a device slices them."""
        return self.segment.source, self.segment.step


@frozen
class Round:
    """Moves by one permute, or within devices: each part sends, and each position receives, at most one."""

    moves: tuple[PartMove, ...]

    @property
    def size(self) -> int:
        """The largest number of elements of a move."""
        return max(move.segment.count for move in self.moves)

    @property
    def every(self) -> int:
        """The distance between neighbouring elements at their destination."""
        return self.moves[0].segment.every

    @property
    def is_local(self) -> bool:
        return all(move.part == move.place for move in self.moves)


@frozen
class Exchange:
    """The `size` elements of a dimension that each position along axes needs, in rounds.

    `parts` are the extents of a part of each source; of the elements of position n, the first `used[n]` matter.
    """

    parts: tuple[int, ...]
    lines: tuple[Line, ...]
    used: tuple[int, ...]
    rounds: tuple[Round, ...]

    @property
    def size(self) -> int:
        return self.lines[0].extent

    def bytes(self, row: int) -> int:
        """The bytes that a device sends if an element of the dimension has `row` bytes."""
        return row * sum(each.size for each in self.rounds if not each.is_local)


Order: TypeAlias = "Callable[[PartMove], int]"


@functools.lru_cache(maxsize=1 << 12)
def plan_exchange(parts: tuple[int, ...], lines: tuple[Line, ...], used: tuple[int, ...]) -> Exchange | None:
    """The exchange that gives each position its line from parts of the sources; None if it has too many moves."""
    moves: list[PartMove] = []
    for place, line in enumerate(lines):
        for segment in line.segments:
            moves += (PartMove(part, place, each) for part, each in segment.within(parts[segment.source]))
            if len(moves) > max(MOST_MOVES, MOST_PER_POSITION * len(lines)):
                return None
    local = [move for move in moves if move.part == move.place]
    sent = [move for move in moves if move.part != move.place]
    return Exchange(parts, lines, used, (*_group_in_rounds(local, lambda move: 0), *_choose_rounds(sent, len(lines))))


def _choose_rounds(moves: Sequence[PartMove], count: int) -> tuple[Round, ...]:
    """The rounds that send the fewest elements, among a few orders of assigning moves to them."""
    orders: tuple[Order, ...] = (
        lambda move: (move.place - move.part) % count,
        lambda move: (move.place + move.part) % count,
        lambda move: move.segment.at,
    )
    return min((_group_in_rounds(moves, order) for order in orders), key=_count_sent)


def _count_sent(rounds: Iterable[Round]) -> int:
    return sum(each.size for each in rounds)


@define
class _OpenRound:
    """A round to which moves can be added."""

    moves: list[PartMove] = field(factory=list)
    parts: set[int] = field(factory=set)
    places: set[int] = field(factory=set)

    def try_add(self, move: PartMove) -> bool:
        """Add a move if its part and its position are free; whether it was added."""
        is_free = move.part not in self.parts and move.place not in self.places
        fits = is_free and (not self.moves or self.moves[0].segment.every == move.segment.every)
        if fits:
            self.moves.append(move)
            self.parts.add(move.part)
            self.places.add(move.place)
        return fits


def _group_in_rounds(moves: Iterable[PartMove], order: Order) -> tuple[Round, ...]:
    """Rounds with each move in the first one that it fits into, the largest moves first."""
    rounds: list[_OpenRound] = []
    for move in sorted(moves, key=lambda move: (-move.segment.count, order(move), move.segment.at)):
        if not any(each.try_add(move) for each in rounds):
            rounds.append(_OpenRound())
            rounds[-1].try_add(move)
    return tuple(Round(tuple(each.moves)) for each in rounds)


# ----------------------------------------------------------------------------
# Segment and Line: where the elements of a dimension come from
#
# They are runs of elements of other arrays, with padding between them.


@frozen
class Segment:
    """`count` elements of a source: its element `first` + n * `step` is at `at` + n * `every`."""

    source: int
    at: int
    first: int
    count: int
    step: int = 1
    every: int = 1

    @property
    def end(self) -> int:
        """The position after the last element."""
        return self.at + (self.count - 1) * self.every + 1

    def between(self, low: int, high: int) -> Iterator[Segment]:
        """The elements at low..high - 1, if any."""
        skipped = max(0, -((self.at - low) // self.every))
        count = min(self.count, -((self.at - high) // self.every)) - skipped
        if count > 0:
            at, first = self.at + skipped * self.every, self.first + skipped * self.step
            yield evolve(self, at=at, first=first, count=count)

    def take_every(self, stride: int) -> Iterator[Segment]:
        """The elements at multiples of the stride, which become adjacent."""
        common = math.gcd(self.every, stride)
        turn = stride // common
        skipped = next((n for n in range(min(turn, self.count)) if (self.at + n * self.every) % stride == 0), None)
        if skipped is not None:
            at, count = (self.at + skipped * self.every) // stride, -((skipped - self.count) // turn)
            first = self.first + skipped * self.step
            yield Segment(self.source, at, first, count, self.step * turn, self.every // common)

    def within(self, part: int) -> Iterator[tuple[int, Segment]]:
        """The pieces of the segment in each part of the source, which is split into parts of `part` elements.

        Each piece comes with the number of its part, from whose beginning its first element is counted.
        """
        done = 0
        while done < self.count:
            number, offset = divmod(self.first + done * self.step, part)
            room = (part - 1 - offset) // self.step if self.step > 0 else offset // -self.step
            count = min(room + 1, self.count - done)
            yield number, evolve(self, at=self.at + done * self.every, first=offset, count=count)
            done += count

    def join(self, other: Segment) -> Segment | None:
        """Both segments as one, if the other continues this one; else None."""
        is_next = (self.source, self.step, self.every, self.at + self.count * self.every) == (
            other.source, other.step, other.every, other.at)  # fmt: skip
        if not is_next or self.first + self.count * self.step != other.first:
            return None
        return evolve(self, count=self.count + other.count)


@frozen
class Line:
    """A dimension of `extent` elements: its segments in order, and padding elsewhere."""

    extent: int
    segments: tuple[Segment, ...]

    @property
    def has_padding(self) -> bool:
        return sum(each.count for each in self.segments) < self.extent

    def is_all_of(self, extent: int) -> bool:
        """Whether it is all of one source's dimension, in order."""
        return self.extent == extent and self.segments == (Segment(0, 0, 0, extent),)

    def between(self, low: int, size: int) -> Line:
        """`size` elements from `low` on, with padding outside the line."""
        inside = [part for each in self.segments for part in each.between(low, low + size)]
        return Line(size, tuple(evolve(each, at=each.at - low) for each in inside))

    def slice(self, start: int, limit: int, stride: int = 1) -> Line:
        """The dimension after a slice."""
        part = self.between(start, limit - start)
        segments = tuple(_normalize(strided) for each in part.segments for strided in each.take_every(stride))
        return Line(-(-part.extent // stride), segments)

    def pad(self, low: int, high: int, interior: int = 0) -> Line:
        """The dimension after a pad."""
        every = interior + 1
        extent = (self.extent - 1) * every + 1 if self.extent else 0
        wide = Line(extent, tuple(evolve(s, at=s.at * every, every=s.every * every) for s in self.segments))
        return wide.between(-low, low + extent + high)

    def reverse(self) -> Line:
        """The dimension in reverse order."""
        reversed_segments = [
            evolve(s, at=self.extent - s.end, first=s.first + (s.count - 1) * s.step, step=-s.step)
            for s in self.segments
        ]
        return Line(self.extent, tuple(map(_normalize, reversed_segments[::-1])))

    def renumber(self, numbers: dict[int, int]) -> Line:
        """The same line with its sources renumbered."""
        return evolve(self, segments=tuple(evolve(each, source=numbers[each.source]) for each in self.segments))


def _normalize(segment: Segment) -> Segment:
    """The segment, with steps of 1 if it is a single element."""
    return evolve(segment, step=1, every=1) if segment.count == 1 else segment


def full_line(extent: int, source: int = 0) -> Line:
    """All of a source's dimension."""
    return Line(extent, (Segment(source, 0, 0, extent),) if extent else ())


def join_lines(lines: Iterable[Line]) -> Line:
    """The concatenation of dimensions, in which segments that continue each other are one."""
    segments: list[Segment] = []
    extent = 0
    for line in lines:
        for each in line.segments:
            moved = evolve(each, at=each.at + extent)
            joined = segments[-1].join(moved) if segments else None
            segments[-1:] = [joined] if joined is not None else [*segments[-1:], moved]
        extent += line.extent
    return Line(extent, tuple(segments))


# ----------------------------------------------------------------------------
# Along: a split dimension in the program that is recorded


@frozen(slots=False)
class Along:
    """A dimension that axes split, in the program that is recorded."""

    frame: Frame
    axes: tuple[Axis, ...]
    dim: int

    @property
    def count(self) -> int:
        """The number of positions."""
        return count(self.axes)

    def record_number(self, by_place: Sequence[int]) -> Value:
        """An s32[]: on each device, the number for its position."""
        places = index_along(self.frame.mesh, self.axes)
        return self.frame.recorder.number([by_place[place] for place in places])

    def is_one_of(self, places: set[int]) -> Value:
        """A pred[]: whether the device's position is one of these."""
        flag = self.record_number([int(place in places) for place in range(self.count)])
        return ops.compare(flag, constant(self.frame.builder, np.int32(1)), direction="EQ")

    def slice_at(self, value: Value, starts: Sequence[int], size: int) -> Value:
        """`size` elements from a start that differs by position, with zeros outside the value."""
        value, starts = self._pad_for(value, starts, size)
        if len({*starts}) == 1:
            return self.slice(value, starts[0], size)
        dims = list(dims_of(value))
        dims[self.dim] = size
        zero_index = constant(self.frame.builder, np.int32(0))
        start = self.record_number(starts)
        indices = [start if n == self.dim else zero_index for n in range(len(dims))]
        return ops.dynamic_slice(value, indices, dynamic_slice_sizes=dims)

    def _pad_for(self, value: Value, starts: Sequence[int], size: int) -> tuple[Value, list[int]]:
        low = max(0, -min(starts))
        high = max(0, max(starts) + size - dims_of(value)[self.dim])
        return self.pad(value, zero(value), low, high), [start + low for start in starts]

    def slice(self, value: Value, start: int, size: int, stride: int = 1) -> Value:
        dims = dims_of(value)
        if (start, size, stride) == (0, dims[self.dim], 1):
            return value
        starts, limits, strides = [0] * len(dims), list(dims), [1] * len(dims)
        starts[self.dim], limits[self.dim], strides[self.dim] = start, start + size, stride
        return ops.slice(value, start_indices=starts, limit_indices=limits, strides=strides)

    def take_steps(self, value: Value, low: int, size: int, step: int) -> Value:
        """`size` elements in steps, the lowest of which is `low`; a negative step begins with the highest."""
        value = self.slice(value, low, (size - 1) * abs(step) + 1, abs(step))
        return ops.reverse(value, dimensions=[self.dim]) if step < 0 and size > 1 else value

    def pad(self, value: Value, filler: Value, low: int, high: int, interior: int = 0) -> Value:
        if not low and not high and not interior:
            return value
        none, padding = PaddingDimension(0, 0, 0), PaddingDimension(low, high, interior)
        return ops.pad(value, filler, padding=[padding if n == self.dim else none for n in range(len(dims_of(value)))])

    def indices(self, dims: Sequence[int]) -> Value:
        return ops.iota(self.frame.builder, shape=s32[tuple(dims)], iota_dimension=self.dim)


# ----------------------------------------------------------------------------
# record_exchange: records the elements that each device needs along a dimension


def record_exchange(along: Along, values: Sequence[Value], exchange: Exchange, wish: Wish, filler: Value) -> Value:
    """The elements that each device needs along a dimension, from the parts of the values; padding is the filler."""
    key = ("exchange", along.axes, along.dim, tuple(map(_identity, values)), exchange, _identity(filler))
    made = along.frame.builder.made
    if key not in made:
        arrivals = [_record_round(along, values, each, wish) for each in exchange.rounds]
        made[key] = _assemble(along, arrivals, exchange, filler, values[0])
    return made[key]


def _identity(value: Value) -> Any:
    """A key that equal values share."""
    instruction = value.instruction
    if instruction.opcode == "constant" and not dims_of(value):
        return "constant", instruction.shape, np.asarray(instruction.attributes.literal).tobytes()
    return instruction


@frozen
class _Arrival:
    """What devices hold after a round: for each position, where its elements go and how many there are."""

    round: Round
    value: Value
    at: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The extent with the gaps between elements."""
        return (self.round.size - 1) * self.round.every + 1

    def end(self, place: int) -> int:
        return self.at[place] + (self.counts[place] - 1) * self.round.every + 1 if self.counts[place] else 0


def _record_round(along: Along, values: Sequence[Value], round: Round, wish: Wish) -> _Arrival:
    value = _slice_round(along, values, round) if round.is_local else _receive(along, values, round, wish)
    segments = {move.place: move.segment for move in round.moves}
    default = round.moves[0].segment.at
    at = tuple(segments[place].at if place in segments else default for place in range(along.count))
    return _Arrival(round, value, at, tuple(segments[n].count if n in segments else 0 for n in range(along.count)))


def _receive(along: Along, values: Sequence[Value], round: Round, wish: Wish) -> Value:
    """The elements that a permute sends, or that an earlier one of the same values has already sent."""
    received = along.frame.builder.received.setdefault((along.axes, along.dim, *map(_identity, values)), [])
    for earlier, value in received:
        offsets = _find_offsets(earlier, round)
        if offsets is not None:
            default = next(iter(offsets.values()))
            return along.slice_at(value, [offsets.get(place, default) for place in range(along.count)], round.size)
    value = _record_send(along, _slice_round(along, values, round), round, wish)
    received.append((round, value))
    return value


def _find_offsets(earlier: Round, round: Round) -> dict[int, int] | None:
    """For each position, where its elements begin in an earlier round; None if that does not have all of them."""
    offsets: dict[int, int] = {}
    moves = {move.place: move for move in earlier.moves}
    if {*moves} != {move.place for move in round.moves}:
        return None
    for move in round.moves:
        other, segment = moves[move.place], move.segment
        offset, rest = divmod(segment.first - other.segment.first, other.segment.step)
        is_same = (move.part, move.kind) == (other.part, other.kind) and not rest
        if not is_same or offset < 0 or offset + segment.count > other.segment.count:
            return None
        offsets[move.place] = offset
    return offsets


def _slice_round(along: Along, values: Sequence[Value], round: Round) -> Value:
    """The elements of its part that each device sends, or keeps, in the round."""
    sliced: Value | None = None
    for kind in dict.fromkeys(move.kind for move in round.moves):
        moves = {move.part: move for move in round.moves if move.kind == kind}
        value = _slice_kind(along, values[kind[0]], kind[1], moves, round)
        sliced = value if sliced is None else _select_at(along, {*moves}, value, sliced)
    assert sliced is not None
    return sliced


def _slice_kind(along: Along, value: Value, step: int, moves: dict[int, PartMove], round: Round) -> Value:
    span = (round.size - 1) * abs(step) + 1
    back = span - 1 if step < 0 else 0
    default = next(iter(moves.values())).segment.first
    starts = [(moves[part].segment.first if part in moves else default) - back for part in range(along.count)]
    return along.take_steps(along.slice_at(value, starts, span), 0, round.size, step)


def _select_at(along: Along, places: set[int], one: Value, other: Value) -> Value:
    return ops.select(spread(along.is_one_of(places), dims_of(one)), one, other)


def _record_send(along: Along, value: Value, round: Round, wish: Wish) -> Value:
    frame = along.frame
    groups = groups_along(frame.mesh, along.axes)
    devices = sorted((group[move.part], group[move.place]) for group in groups for move in round.moves)
    received = ops.collective_permute([value], source_target_pairs=devices, channel_id=frame.recorder.channel())
    size = value.shape.size * max(1, value.shape.dtype.bits // 8)  # type: ignore[union-attr]
    reason = Neighbours(wish, frame.mesh, along.axes, along.dim, round)
    frame.note_collective(received, along.axes, size, wish.user, reason)
    return received


def _assemble(along: Along, arrivals: list[_Arrival], exchange: Exchange, filler: Value, like: Value) -> Value:
    dims = list(dims_of(like))
    dims[along.dim] = exchange.size
    adjacent = _order_adjacent(arrivals, exchange)
    if adjacent is None:
        return _overlay(along, arrivals, exchange, filler, dims)
    value = adjacent[0].value
    if len(adjacent) > 1:
        value = ops.concatenate(tuple(arrival.value for arrival in adjacent), dimension=along.dim)
    return _fill_gaps(along, value, adjacent, exchange, filler)


def _order_adjacent(arrivals: list[_Arrival], exchange: Exchange) -> list[_Arrival] | None:
    """The arrivals in order, if they are adjacent, without gaps, at the same positions on all devices; else None."""
    end, ordered = 0, sorted(arrivals, key=lambda arrival: arrival.at[0])
    for arrival in ordered:
        if {*arrival.at} != {end} or (arrival.round.every > 1 and arrival.round.size > 1):
            return None
        end += arrival.round.size
    return ordered if ordered and end == exchange.size else None


def _fill_gaps(along: Along, value: Value, arrivals: list[_Arrival], exchange: Exchange, filler: Value) -> Value:
    """The value with the filler where nothing arrived; a device to which nothing is sent already has zeros."""
    if _is_zero(filler) and all(_is_complete_or_zero(each, exchange) for each in arrivals):
        return value
    for each in arrivals:
        if not _is_covered(each, exchange):
            value = ops.select(
                _is_inside(along, each, dims_of(value), is_inverse=True), spread(filler, dims_of(value)), value
            )
    return value


def _is_zero(filler: Value) -> bool:
    instruction = filler.instruction
    return instruction.opcode == "constant" and not any(np.asarray(instruction.attributes.literal).tobytes())


def _count_needed(each: _Arrival, exchange: Exchange, place: int) -> int:
    """The number of an arrival's elements that matter at a position."""
    return min(each.extent, max(0, exchange.used[place] - each.at[place]))


def _is_covered(each: _Arrival, exchange: Exchange) -> bool:
    return all(_count_needed(each, exchange, place) <= count for place, count in enumerate(each.counts))


def _is_complete_or_zero(each: _Arrival, exchange: Exchange) -> bool:
    """Whether each device gets all elements that matter, or zeros because nothing is sent to it."""
    if each.round.is_local:
        return _is_covered(each, exchange)
    return all(not count or _count_needed(each, exchange, place) <= count for place, count in enumerate(each.counts))


def _is_inside(along: Along, each: _Arrival, dims: Sequence[int], *, is_inverse: bool = False) -> Value:
    """A pred[] of these extents: where the arrival's elements are, or with `is_inverse` where its range lacks them."""
    place = along.indices(dims)
    ends = [each.end(n) if count else each.at[n] for n, count in enumerate(each.counts)]
    low, high = (spread(along.record_number(n), dims) for n in (each.at, ends))
    if not is_inverse:
        return ops.and_(ops.compare(place, low, direction="GE"), ops.compare(place, high, direction="LT"))
    range_end = spread(along.record_number([at + each.extent for at in each.at]), dims)
    return ops.and_(ops.compare(place, high, direction="GE"), ops.compare(place, range_end, direction="LT"))


def _overlay(along: Along, arrivals: list[_Arrival], exchange: Exchange, filler: Value, dims: Sequence[int]) -> Value:
    """Arrivals at different positions on each device, laid over the filler."""
    value = spread(filler, dims)
    for arrival in arrivals:
        shifted = _shift_into_place(along, arrival, exchange.size, filler)
        is_all = {*arrival.at} == {0} and _is_covered(arrival, exchange) and arrival.extent >= max(exchange.used)
        value = shifted if is_all else ops.select(_is_inside(along, arrival, dims), shifted, value)
    return value


def _shift_into_place(along: Along, each: _Arrival, size: int, filler: Value) -> Value:
    """The arrival at its position in a dimension of `size` elements."""
    value = along.pad(each.value, filler, 0, 0, each.round.every - 1) if each.round.size > 1 else each.value
    low, high = max(each.at), size - min(each.at) - each.extent
    value = along.pad(value, filler, low, high)
    return along.slice_at(value, [low - at for at in each.at], size)


# ----------------------------------------------------------------------------
# lay_out: records a line of values that every device holds in full


def lay_out(along: Along, values: Sequence[Value], line: Line, filler: Value) -> Value:
    """A line of values that every device holds in full along the dimension."""
    pieces: list[Value] = []
    place = 0
    for number, each in enumerate(line.segments):
        low = each.first if each.step > 0 else each.first + (each.count - 1) * each.step
        value = along.take_steps(values[each.source], low, each.count, each.step)
        high = line.extent - each.end if number == len(line.segments) - 1 else 0
        interior = each.every - 1 if each.count > 1 else 0
        pieces.append(along.pad(value, filler, each.at - place, high, interior))
        place = each.end
    if not pieces:
        dims = list(dims_of(values[0]))
        dims[along.dim] = line.extent
        return spread(filler, dims)
    return ops.concatenate(tuple(pieces), dimension=along.dim) if len(pieces) > 1 else pieces[0]
