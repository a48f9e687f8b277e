"""Where the elements of a dimension come from: segments of other arrays, and padding between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen


@frozen
class Segment:
    """`count` elements of a source: element `first` + n * `step` of it stands at `at` + n * `every`."""

    source: int
    at: int
    first: int
    count: int
    step: int = 1
    every: int = 1

    @property
    def end(self) -> int:
        """The place after the last element."""
        return self.at + (self.count - 1) * self.every + 1

    def between(self, low: int, high: int) -> Iterator[Segment]:
        """The elements that stand at low..high - 1, if any."""
        skipped = max(0, -((self.at - low) // self.every))
        count = min(self.count, -((self.at - high) // self.every)) - skipped
        if count > 0:
            at, first = self.at + skipped * self.every, self.first + skipped * self.step
            yield evolve(self, at=at, first=first, count=count)

    def strided(self, stride: int) -> Iterator[Segment]:
        """The elements that stand at multiples of the stride, which stand next to each other afterwards."""
        common = math.gcd(self.every, stride)
        turn = stride // common
        skipped = next((n for n in range(min(turn, self.count)) if (self.at + n * self.every) % stride == 0), None)
        if skipped is not None:
            at, count = (self.at + skipped * self.every) // stride, -((skipped - self.count) // turn)
            first = self.first + skipped * self.step
            yield Segment(self.source, at, first, count, self.step * turn, self.every // common)

    def within(self, part: int) -> Iterator[tuple[int, Segment]]:
        """The segment in pieces, each of one part of the source, which is cut into parts of `part` elements.

        With each piece the number of the part; the first element is counted from the beginning of the part.
        """
        done = 0
        while done < self.count:
            number, offset = divmod(self.first + done * self.step, part)
            room = (part - 1 - offset) // self.step if self.step > 0 else offset // -self.step
            count = min(room + 1, self.count - done)
            yield number, evolve(self, at=self.at + done * self.every, first=offset, count=count)
            done += count

    def followed_by(self, other: Segment) -> Segment | None:
        """Both as one segment, where the other goes on as this one does."""
        is_next = (self.source, self.step, self.every, self.at + self.count * self.every) == (
            other.source, other.step, other.every, other.at)  # fmt: skip
        if not is_next or self.first + self.count * self.step != other.first:
            return None
        return evolve(self, count=self.count + other.count)


@frozen
class Line:
    """A dimension of `extent` elements: its segments in order; elsewhere it is padding."""

    extent: int
    segments: tuple[Segment, ...]

    @property
    def has_padding(self) -> bool:
        return sum(each.count for each in self.segments) < self.extent

    def is_all_of(self, extent: int) -> bool:
        """Whether it is the whole dimension of one source, in order."""
        return self.extent == extent and self.segments == (Segment(0, 0, 0, extent),)

    def between(self, low: int, size: int) -> Line:
        """`size` elements from `low` on; outside of the line is padding."""
        kept = [part for each in self.segments for part in each.between(low, low + size)]
        return Line(size, tuple(evolve(each, at=each.at - low) for each in kept))

    def sliced(self, start: int, limit: int, stride: int = 1) -> Line:
        """What a slice makes of the dimension."""
        part = self.between(start, limit - start)
        segments = tuple(_plain(found) for each in part.segments for found in each.strided(stride))
        return Line(-(-part.extent // stride), segments)

    def padded(self, low: int, high: int, interior: int = 0) -> Line:
        """What a pad makes of the dimension."""
        every = interior + 1
        extent = (self.extent - 1) * every + 1 if self.extent else 0
        wide = Line(extent, tuple(evolve(s, at=s.at * every, every=s.every * every) for s in self.segments))
        return wide.between(-low, low + extent + high)

    def reversed(self) -> Line:
        """The dimension from its end to its beginning."""
        turned = [
            evolve(s, at=self.extent - s.end, first=s.first + (s.count - 1) * s.step, step=-s.step)
            for s in self.segments
        ]
        return Line(self.extent, tuple(map(_plain, turned[::-1])))

    def of_sources(self, numbers: dict[int, int]) -> Line:
        """The same of sources that are numbered anew."""
        return evolve(self, segments=tuple(evolve(each, source=numbers[each.source]) for each in self.segments))


def _plain(segment: Segment) -> Segment:
    """A single element has no steps."""
    return evolve(segment, step=1, every=1) if segment.count == 1 else segment


def whole_line(extent: int, source: int = 0) -> Line:
    """A dimension as it is in its source."""
    return Line(extent, (Segment(source, 0, 0, extent),) if extent else ())


def joined(lines: Iterable[Line]) -> Line:
    """One dimension after another; segments that go on are made one."""
    found: list[Segment] = []
    extent = 0
    for line in lines:
        for each in line.segments:
            moved = evolve(each, at=each.at + extent)
            one = found[-1].followed_by(moved) if found else None
            found[-1:] = [one] if one is not None else [*found[-1:], moved]
        extent += line.extent
    return Line(extent, tuple(found))
