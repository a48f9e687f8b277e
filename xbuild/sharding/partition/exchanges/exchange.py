"""Which elements each device lacks of a dimension, and in which collective-permutes they are sent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from .lines import Line, Segment

MOST_MOVES, MOST_OF_A_PLACE = 4096, 8
"""Above both, this number of runs that places want of each other and that many for each place, nothing is planned."""


@frozen
class Move:
    """Elements of one part that one place wants: the part, the place, and the segment inside of the part."""

    part: int
    place: int
    segment: Segment

    @property
    def kind(self) -> tuple[int, int]:
        """The source and the step between elements, which decide how a device cuts them out."""
        return self.segment.source, self.segment.step


@frozen
class Round:
    """Moves of which each part gives one and each place takes one: all stay where they are, or one permute has them."""

    moves: tuple[Move, ...]

    @property
    def size(self) -> int:
        """How many elements each of the moves has, at most."""
        return max(move.segment.count for move in self.moves)

    @property
    def every(self) -> int:
        """How far apart the elements stand where they are wanted."""
        return self.moves[0].segment.every

    @property
    def is_local(self) -> bool:
        return all(move.part == move.place for move in self.moves)


@frozen
class Exchange:
    """For each place along axes what it wants of a dimension, `size` elements, in rounds.

    `parts` are the extents of a part of each source; of the elements of place n the first `used[n]` matter.
    """

    parts: tuple[int, ...]
    lines: tuple[Line, ...]
    used: tuple[int, ...]
    rounds: tuple[Round, ...]

    @property
    def size(self) -> int:
        return self.lines[0].extent

    def bytes(self, row: int) -> int:
        """The bytes that a device sends, where an element of the dimension has `row` bytes."""
        return row * sum(each.size for each in self.rounds if not each.is_local)


Order: TypeAlias = "Callable[[Move], int]"


@functools.lru_cache(maxsize=1 << 12)
def exchange(parts: tuple[int, ...], lines: tuple[Line, ...], used: tuple[int, ...]) -> Exchange | None:
    """The exchange that gives each place its line, of sources that are cut into parts; None for very many moves."""
    moves: list[Move] = []
    for place, line in enumerate(lines):
        for segment in line.segments:
            moves += (Move(part, place, each) for part, each in segment.within(parts[segment.source]))
            if len(moves) > max(MOST_MOVES, MOST_OF_A_PLACE * len(lines)):
                return None
    kept = [move for move in moves if move.part == move.place]
    sent = [move for move in moves if move.part != move.place]
    return Exchange(parts, lines, used, (*_rounds(kept, lambda move: 0), *_fewest(sent, len(lines))))


def _fewest(moves: Sequence[Move], count: int) -> tuple[Round, ...]:
    """Rounds that send the fewest elements, of a few orders in which moves are put into them."""
    orders: tuple[Order, ...] = (
        lambda move: (move.place - move.part) % count,
        lambda move: (move.place + move.part) % count,
        lambda move: move.segment.at,
    )
    return min((_rounds(moves, order) for order in orders), key=_sent)


def _sent(rounds: Iterable[Round]) -> int:
    return sum(each.size for each in rounds)


@define
class _Open:
    """A round that takes more moves."""

    moves: list[Move] = field(factory=list)
    parts: set[int] = field(factory=set)
    places: set[int] = field(factory=set)

    def takes(self, move: Move) -> bool:
        is_free = move.part not in self.parts and move.place not in self.places
        is_taken = is_free and (not self.moves or self.moves[0].segment.every == move.segment.every)
        if is_taken:
            self.moves.append(move)
            self.parts.add(move.part)
            self.places.add(move.place)
        return is_taken


def _rounds(moves: Iterable[Move], order: Order) -> tuple[Round, ...]:
    """Each move in the first round that takes it, the largest moves first."""
    found: list[_Open] = []
    for move in sorted(moves, key=lambda each: (-each.segment.count, order(each), each.segment.at)):
        if not any(each.takes(move) for each in found):
            found.append(_Open())
            found[-1].takes(move)
    return tuple(Round(tuple(each.moves)) for each in found)


def of_result(line: Line, extents: Sequence[int], count: int) -> Exchange | None:
    """Each of `count` places wants its part of a line; `extents` are those of the sources, cut in as many parts."""
    size = -(-line.extent // count)
    lines = tuple(line.between(place * size, size) for place in range(count))
    used = tuple(min(size, max(0, line.extent - place * size)) for place in range(count))
    return exchange(_parts(extents, count), lines, used)


def of_windows(line: Line, extent: int, first: int, step: int, size: int, used: Sequence[int]) -> Exchange | None:
    """Place n wants `size` elements of a line of one source from `first` + n * `step` on, of which used[n] matter."""
    lines = (line.between(first + place * step, count) for place, count in enumerate(used))
    return exchange(_parts([extent], len(used)), tuple(evolve(each, extent=size) for each in lines), tuple(used))


def of_own(line: Line, extents: Sequence[int], count: int) -> Exchange | None:
    """Each place takes of the whole line what it holds."""
    parts = _parts(extents, count)
    own: list[list[Segment]] = [[] for _ in range(count)]
    for segment in line.segments:
        part = parts[segment.source]
        for number, each in segment.within(part):
            own[number].append(evolve(each, first=each.first + number * part))
    return exchange(parts, tuple(Line(line.extent, tuple(each)) for each in own), (line.extent,) * count)


def _parts(extents: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(-(-extent // count) for extent in extents)
