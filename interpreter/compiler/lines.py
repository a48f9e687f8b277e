"""Lines of a plan's Python source, each with the call path of the instruction that it computes.

Sections:

    Call paths, and the position of a device
    Lines, and the release of arrays after their last use
    Marks: reports of executed instructions
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TypeAlias

from attrs import Factory, define, evolve, frozen

from xbuild.core.graph import Instruction
from xbuild.properties.effects import branch_name

# ----------------------------------------------------------------------------
# Call paths, and the position of a device.


@frozen
class PlanPlace:
    """An instruction on a call path, with the plan's variable that counts its trips and the branch taken."""

    instruction: Instruction
    trip: str | None = None
    branch: int | None = None


Path = tuple[PlanPlace, ...]


@frozen
class Standing:
    """The position of a device: the call path of its current instruction, and the trip number of each loop."""

    path: Path
    trips: tuple[int | None, ...]

    @property
    def instruction(self) -> Instruction:
        return self.path[-1].instruction

    def __str__(self) -> str:
        """The position as text, for example `all-reduce.2 in while.1, trip 3`."""
        outer = [_place_text(place, trip) for place, trip in zip(self.path, self.trips, strict=True)]
        inner = [self.instruction.name] if self.path[-1].trip is None else []
        around = outer if self.path[-1].trip is not None else outer[:-1]
        return " in ".join([*inner, *reversed(around)])


def _place_text(place: PlanPlace, trip: int | None) -> str:
    counted = "" if trip is None else f", trip {trip}"
    branch = "" if place.branch is None else f", {branch_name(place.instruction, place.branch)}"
    return f"{place.instruction.name}{branch}{counted}"


# ----------------------------------------------------------------------------
# Lines, and the release of arrays after their last use.

_NAME = re.compile(r"\bv\d+\b")

PATHS = "_paths_of_strict_plan"
"""The global of a strict plan that has the call path of each line; no module of a user has a global of this name."""


@define
class PlanLine:
    """A line of a plan; `begun` are the marks of the enclosing stretch and the number of marks done before the line."""

    indent: int
    text: str
    path: Path
    begun: tuple[Sequence[Path], int] | None = None


@define
class Lines:
    """The lines of a plan under construction; `arrays` are freed after their last use so that memory is reused."""

    lines: list[PlanLine] = Factory(list)
    arrays: set[str] = Factory(set)
    indent: int = 0

    def add(self, text: str, path: Path) -> None:
        self.lines.append(PlanLine(self.indent, text, path))

    @contextmanager
    def block(self) -> Iterator[None]:
        """Lines added inside the block are indented one level deeper."""
        self.indent += 1
        yield
        self.indent -= 1

    def with_releases(self) -> list[PlanLine]:
        """The lines, with a `v3 = None` after the last use of each array, no deeper than where it began."""
        if not self.arrays:
            return self.lines
        level, last = self._extents()
        after: dict[int, list[str]] = {}
        for name, place in last.items():
            after.setdefault(self._end_of_block(place, level[name]), []).append(name)
        return list(self._add_releases(level, after))

    def _extents(self) -> tuple[dict[str, int], dict[str, int]]:
        """The least indent at which each array is used, and the last line that uses the array."""
        level: dict[str, int] = {}
        last: dict[str, int] = {}
        for place, line in enumerate(self.lines):
            for name in self.arrays.intersection(_NAME.findall(line.text)):
                level[name] = min(level.get(name, line.indent), line.indent)
                last[name] = place
        return level, last

    def _end_of_block(self, place: int, level: int) -> int:
        following = place + 1
        while following < len(self.lines) and self._belongs(self.lines[following], level):
            following += 1
        return following - 1

    def _belongs(self, line: PlanLine, level: int) -> bool:
        return line.indent > level or (line.indent == level and line.text.startswith(("elif ", "else:")))

    def _add_releases(self, level: dict[str, int], after: dict[int, list[str]]) -> Iterator[PlanLine]:
        """The lines with assignments of None added; none are needed before a return, which frees all variables."""
        for place, line in enumerate(self.lines):
            yield line
            names = after.get(place)
            if names and not line.text.startswith(("return", "break")) and not self._returns(place + 1):
                names.sort(key=lambda name: (-level[name], name))  # inner blocks first
                for indent, group in groupby(names, level.__getitem__):
                    yield PlanLine(indent, f"{' = '.join(group)} = None", line.path)

    def _returns(self, place: int) -> bool:
        return place < len(self.lines) and self.lines[place].text.startswith("return")


# ----------------------------------------------------------------------------
# Marks: a plan that is observed without values reports each stretch of executed instructions by one call.

Stretch: TypeAlias = tuple[Path, ...]
"""Call paths of instructions that a device executes one after the other, without a request or a branch between."""

MARK = "mark"
"""The text of a placeholder line, which states that the instruction at the line's path is executed."""

SET_UP = "mark, me = device.mark, device.number"

_STRETCH_END = re.compile(r"(?:for|if|elif|else|return|break|def)\b|.*\b(?:yield\b|f\d+_\()")
"""Lines at which a stretch ends: a request, a branch, a loop or a call of another function of the plan."""


def merge_marks(lines: Iterable[PlanLine], bind: Callable[[str, Stretch], str]) -> Iterator[PlanLine]:
    """Merge the marks of each stretch into one call at its end; `begun` of a line in between has the marks so far."""
    seen: list[Path] = []
    indent = 0
    for line in lines:
        if seen and (line.indent != indent or (line.text is not MARK and _STRETCH_END.match(line.text))):
            yield PlanLine(indent, f"mark((me, {bind('m', tuple(seen))}))", seen[-1])
            seen = []
        if line.text is MARK:
            seen.append(line.path)
            indent = line.indent
        else:
            yield evolve(line, begun=(seen, len(seen))) if seen else line
