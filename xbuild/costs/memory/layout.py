"""The positions of a program: the frames of its computations, each laid out where it is called first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from .ranges import Frame
from .values import Role, calls_of

Key: TypeAlias = tuple[Computation, Role]
Frames: TypeAlias = Mapping[Key, Frame]


@frozen
class Opened:
    """A frame in its place: what is alive outside of it, and the position in the frame around it that calls it."""

    frame: Frame
    outside: int
    parent: Opened | None
    position: int


@define
class Layout:
    """All positions of a program in order: what each takes, and in which frame it stands."""

    frames: Frames
    bytes: list[int] = field(factory=list)
    places: list[tuple[Opened, int]] = field(factory=list)
    _seen: set[Key] = field(factory=set)

    def lay_out(self, entry: Key) -> None:
        """Lay out a frame, with the frames that it opens after the instruction that opens them."""
        stack = [self._open(Opened(self.frames[entry], 0, None, 0))]
        while stack:
            opened, positions = stack[-1]
            for position in positions:
                if inner := self._step(opened, position):
                    stack.extend(reversed(inner))
                    break
            else:
                stack.pop()

    def _open(self, opened: Opened) -> tuple[Opened, Iterator[int]]:
        return opened, iter(range(len(opened.frame.order)))

    def _step(self, opened: Opened, position: int) -> list[tuple[Opened, Iterator[int]]]:
        """Note a position, and open the frames that are called there for the first time."""
        frame = opened.frame
        here = opened.outside + frame.levels[position]
        self.places.append((opened, position))
        if not (calls := calls_of(frame.order[position])):
            self.bytes.append(here)
            return []
        new = [key for key in dict.fromkeys(calls) if key not in self._seen]
        known = (self.frames[key].summary.peak for key in calls if key not in new)
        self.bytes.append(here + max(known, default=0))
        self._seen.update(new)
        return [self._open(Opened(self.frames[key], here, opened, position)) for key in new]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(opened.frame.order[position] for opened, position in self.places)

    def around(self, place: int) -> Iterator[tuple[Frame, int]]:
        """The frames that are open at a place, each with its position, and those inside that are laid out elsewhere."""
        opened, position = self.places[place]
        inside, missing = (opened.frame, position), self.bytes[place] - opened.outside - opened.frame.levels[position]
        current: tuple[Opened, int] | None = opened, position
        while current is not None:
            yield current[0].frame, current[1]
            parent = current[0].parent
            current = (parent, current[0].position) if parent is not None else None
        while missing:
            frame = next(f for f in self._called(*inside) if f.summary.peak == missing)
            totals = [level + extra for level, extra in zip(frame.levels, frame.extra, strict=True)]
            inside = frame, totals.index(missing)
            missing = frame.extra[inside[1]]
            yield inside

    def _called(self, frame: Frame, position: int) -> Iterator[Frame]:
        return (self.frames[key] for key in calls_of(frame.order[position]))
