"""Exchanges as HLO ops: what is sent, and how a device puts together what it holds and what it receives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference.types import s32

from .... import ops
from ....core.attributes import PaddingDimension
from ....core.builder import Value
from ...axis import Axis, count
from ...planning.places import groups_along, index_along
from ...planning.record import constant, dims_of, spread, zero
from ..parts.frame import Frame
from ..reasons import Neighbours, Wish
from .exchange import Exchange, Move, Round
from .lines import Line


@frozen(slots=False)
class Along:
    """A dimension that axes cut, in the program that is recorded."""

    frame: Frame
    axes: tuple[Axis, ...]
    dim: int

    @property
    def count(self) -> int:
        """The number of places."""
        return count(self.axes)

    def number(self, by_place: Sequence[int]) -> Value:
        """An s32[]: for each device the number of its place."""
        places = index_along(self.frame.mesh, self.axes)
        return self.frame.recorder.number([by_place[place] for place in places])

    def is_one_of(self, places: set[int]) -> Value:
        """A pred[]: whether the device stands at one of these places."""
        flag = self.number([int(place in places) for place in range(self.count)])
        return ops.compare(flag, constant(self.frame.builder, np.int32(1)), direction="EQ")

    def cut_out(self, value: Value, starts: Sequence[int], size: int) -> Value:
        """`size` elements from another start at each place, with zeros outside of the value."""
        value, starts = self._with_room(value, starts, size)
        if len({*starts}) == 1:
            return self.slice(value, starts[0], size)
        dims = list(dims_of(value))
        dims[self.dim] = size
        nothing = constant(self.frame.builder, np.int32(0))
        start = self.number(starts)
        several = [start if n == self.dim else nothing for n in range(len(dims))]
        return ops.dynamic_slice(value, several, dynamic_slice_sizes=dims)

    def _with_room(self, value: Value, starts: Sequence[int], size: int) -> tuple[Value, list[int]]:
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

    def stepped(self, value: Value, low: int, size: int, step: int) -> Value:
        """`size` elements in steps, of which `low` is the least; a negative step begins with the greatest."""
        value = self.slice(value, low, (size - 1) * abs(step) + 1, abs(step))
        return ops.reverse(value, dimensions=[self.dim]) if step < 0 and size > 1 else value

    def pad(self, value: Value, filler: Value, low: int, high: int, interior: int = 0) -> Value:
        if not low and not high and not interior:
            return value
        nothing, around = PaddingDimension(0, 0, 0), PaddingDimension(low, high, interior)
        return ops.pad(
            value, filler, padding=[around if n == self.dim else nothing for n in range(len(dims_of(value)))]
        )

    def places(self, dims: Sequence[int]) -> Value:
        return ops.iota(self.frame.builder, shape=s32[tuple(dims)], iota_dimension=self.dim)


def exchanged(along: Along, values: Sequence[Value], wanted: Exchange, wish: Wish, filler: Value) -> Value:
    """What each device wants along a dimension of the values' parts; padding is the filler."""
    key = ("exchange", along.axes, along.dim, tuple(map(_identity, values)), wanted, _identity(filler))
    made = along.frame.builder.made
    if key not in made:
        made[key] = _assembled(along, [_arrival(along, values, each, wish) for each in wanted.rounds], wanted, filler,
                               values[0])  # fmt: skip
    return made[key]


def _identity(value: Value) -> Any:
    """What two values have in common that are the same."""
    given = value.instruction
    if given.opcode == "constant" and not dims_of(value):
        return "constant", given.shape, np.asarray(given.attributes.literal).tobytes()
    return given


@frozen
class _Arrival:
    """What a device holds after a round: at each place from where on it is wanted, and how many elements of it."""

    round: Round
    value: Value
    at: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def extent(self) -> int:
        """With the gaps between elements."""
        return (self.round.size - 1) * self.round.every + 1

    def end(self, place: int) -> int:
        return self.at[place] + (self.counts[place] - 1) * self.round.every + 1 if self.counts[place] else 0


def _arrival(along: Along, values: Sequence[Value], given: Round, wish: Wish) -> _Arrival:
    value = _given(along, values, given) if given.is_local else _received(along, values, given, wish)
    taken = {move.place: move.segment for move in given.moves}
    usual = given.moves[0].segment.at
    at = tuple(taken[place].at if place in taken else usual for place in range(along.count))
    return _Arrival(given, value, at, tuple(taken[n].count if n in taken else 0 for n in range(along.count)))


def _received(along: Along, values: Sequence[Value], given: Round, wish: Wish) -> Value:
    """What a permute brings, or what an earlier one of the same values has brought already."""
    made = along.frame.builder.received.setdefault((along.axes, along.dim, *map(_identity, values)), [])
    for earlier, value in made:
        offsets = _offsets(earlier, given)
        if offsets is not None:
            usual = next(iter(offsets.values()))
            return along.cut_out(value, [offsets.get(place, usual) for place in range(along.count)], given.size)
    value = _sent(along, _given(along, values, given), given, wish)
    made.append((given, value))
    return value


def _offsets(earlier: Round, given: Round) -> dict[int, int] | None:
    """For each place where in an earlier round its elements begin; None where they are not all in it."""
    found: dict[int, int] = {}
    moves = {move.place: move for move in earlier.moves}
    if {*moves} != {move.place for move in given.moves}:
        return None
    for move in given.moves:
        other, wanted = moves[move.place], move.segment
        offset, rest = divmod(wanted.first - other.segment.first, other.segment.step)
        is_same = (move.part, move.kind) == (other.part, other.kind) and not rest
        if not is_same or offset < 0 or offset + wanted.count > other.segment.count:
            return None
        found[move.place] = offset
    return found


def _given(along: Along, values: Sequence[Value], given: Round) -> Value:
    """What each device cuts out of its part for the round."""
    found: Value | None = None
    for kind in dict.fromkeys(move.kind for move in given.moves):
        moves = {move.part: move for move in given.moves if move.kind == kind}
        value = _of_kind(along, values[kind[0]], kind[1], moves, given)
        found = value if found is None else _either(along, {*moves}, value, found)
    assert found is not None
    return found


def _of_kind(along: Along, value: Value, step: int, moves: dict[int, Move], given: Round) -> Value:
    span = (given.size - 1) * abs(step) + 1
    back = span - 1 if step < 0 else 0
    usual = next(iter(moves.values())).segment.first
    starts = [(moves[part].segment.first if part in moves else usual) - back for part in range(along.count)]
    return along.stepped(along.cut_out(value, starts, span), 0, given.size, step)


def _either(along: Along, places: set[int], one: Value, other: Value) -> Value:
    return ops.select(spread(along.is_one_of(places), dims_of(one)), one, other)


def _sent(along: Along, value: Value, given: Round, wish: Wish) -> Value:
    frame = along.frame
    groups = groups_along(frame.mesh, along.axes)
    devices = sorted((group[move.part], group[move.place]) for group in groups for move in given.moves)
    found = ops.collective_permute([value], source_target_pairs=devices, channel_id=frame.recorder.channel())
    size = value.shape.size * max(1, value.shape.dtype.bits // 8)  # type: ignore[union-attr]
    reason = Neighbours(wish.user, wish.sources, frame.mesh, along.axes, along.dim, wish.wanted, given)
    frame.note(found, along.axes, size, wish.user, reason)
    return found


def _assembled(along: Along, arrivals: list[_Arrival], wanted: Exchange, filler: Value, like: Value) -> Value:
    dims = list(dims_of(like))
    dims[along.dim] = wanted.size
    in_a_row = _in_a_row(arrivals, wanted)
    if in_a_row is None:
        return _laid_over(along, arrivals, wanted, filler, dims)
    value = in_a_row[0].value
    if len(in_a_row) > 1:
        value = ops.concatenate(tuple(each.value for each in in_a_row), dimension=along.dim)
    return _masked(along, value, in_a_row, wanted, filler)


def _in_a_row(arrivals: list[_Arrival], wanted: Exchange) -> list[_Arrival] | None:
    """The arrivals in order, where they stand next to each other at the same places on all devices, without gaps."""
    place, found = 0, sorted(arrivals, key=lambda each: each.at[0])
    for each in found:
        if {*each.at} != {place} or (each.round.every > 1 and each.round.size > 1):
            return None
        place += each.round.size
    return found if found and place == wanted.size else None


def _masked(along: Along, value: Value, arrivals: list[_Arrival], wanted: Exchange, filler: Value) -> Value:
    """The value with the filler where nothing came; a device to which nothing is sent has zeros already."""
    if _is_zero(filler) and all(_is_all_or_zero(each, wanted) for each in arrivals):
        return value
    for each in arrivals:
        if not _is_covered(each, wanted):
            value = ops.select(
                _inside(along, each, dims_of(value), is_inverse=True), spread(filler, dims_of(value)), value
            )
    return value


def _is_zero(filler: Value) -> bool:
    given = filler.instruction
    return given.opcode == "constant" and not any(np.asarray(given.attributes.literal).tobytes())


def _needed(each: _Arrival, wanted: Exchange, place: int) -> int:
    """How many elements of an arrival stand where they matter."""
    return min(each.extent, max(0, wanted.used[place] - each.at[place]))


def _is_covered(each: _Arrival, wanted: Exchange) -> bool:
    return all(_needed(each, wanted, place) <= count for place, count in enumerate(each.counts))


def _is_all_or_zero(each: _Arrival, wanted: Exchange) -> bool:
    """Whether each device gets all that matters, or zeros because nothing is sent to it."""
    if each.round.is_local:
        return _is_covered(each, wanted)
    return all(not count or _needed(each, wanted, place) <= count for place, count in enumerate(each.counts))


def _inside(along: Along, each: _Arrival, dims: Sequence[int], *, is_inverse: bool = False) -> Value:
    """pred of these extents: where the arrival's elements stand; inverse: where they are missing in its stretch."""
    place = along.places(dims)
    ends = [each.end(n) if count else each.at[n] for n, count in enumerate(each.counts)]
    low, high = (spread(along.number(n), dims) for n in (each.at, ends))
    if not is_inverse:
        return ops.and_(ops.compare(place, low, direction="GE"), ops.compare(place, high, direction="LT"))
    stretch = spread(along.number([at + each.extent for at in each.at]), dims)
    return ops.and_(ops.compare(place, high, direction="GE"), ops.compare(place, stretch, direction="LT"))


def _laid_over(along: Along, arrivals: list[_Arrival], wanted: Exchange, filler: Value, dims: Sequence[int]) -> Value:
    """Arrivals at other places on each device, laid over the filler."""
    found = spread(filler, dims)
    for each in arrivals:
        placed = _placed(along, each, wanted.size, filler)
        is_all = {*each.at} == {0} and _is_covered(each, wanted) and each.extent >= max(wanted.used)
        found = placed if is_all else ops.select(_inside(along, each, dims), placed, found)
    return found


def _placed(along: Along, each: _Arrival, size: int, filler: Value) -> Value:
    """The arrival where it stands, in a dimension of `size` elements."""
    value = along.pad(each.value, filler, 0, 0, each.round.every - 1) if each.round.size > 1 else each.value
    low, high = max(each.at), size - min(each.at) - each.extent
    value = along.pad(value, filler, low, high)
    return along.cut_out(value, [low - at for at in each.at], size)


def laid_out(along: Along, values: Sequence[Value], line: Line, filler: Value) -> Value:
    """A line of values that the device holds whole along the dimension."""
    pieces: list[Value] = []
    place = 0
    for number, each in enumerate(line.segments):
        low = each.first if each.step > 0 else each.first + (each.count - 1) * each.step
        value = along.stepped(values[each.source], low, each.count, each.step)
        high = line.extent - each.end if number == len(line.segments) - 1 else 0
        interior = each.every - 1 if each.count > 1 else 0
        pieces.append(along.pad(value, filler, each.at - place, high, interior))
        place = each.end
    if not pieces:
        dims = list(dims_of(values[0]))
        dims[along.dim] = line.extent
        return spread(filler, dims)
    return ops.concatenate(tuple(pieces), dimension=along.dim) if len(pieces) > 1 else pieces[0]
