"""Lines of a plan's Python source, each with the call path of the instruction that it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from attrs import Factory, define, frozen

from xbuild.core.graph import Instruction

_NAME = re.compile(r"\bv\d+\b")


@frozen
class Place:
    """An instruction on a call path, with the plan's variable that counts its trips and the branch taken."""

    instruction: Instruction
    trip: str | None = None
    branch: int | None = None


Path = tuple[Place, ...]


PATHS = "paths"
"""The name of the global of a strict plan that has the call path of each line."""


@define
class Line:
    """A line of a plan; `begun` are the marks of the enclosing stretch and the number of marks done before the line."""

    indent: int
    text: str
    path: Path
    begun: tuple[Sequence[Path], int] | None = None


@define
class Lines:
    """The lines of a plan under construction; `arrays` are freed after their last use so that memory is reused."""

    lines: list[Line] = Factory(list)
    arrays: set[str] = Factory(set)
    indent: int = 0

    def add(self, text: str, path: Path) -> None:
        self.lines.append(Line(self.indent, text, path))

    @contextmanager
    def block(self) -> Iterator[None]:
        """Lines added inside the block are indented one level deeper."""
        self.indent += 1
        yield
        self.indent -= 1

    def freed(self) -> list[Line]:
        """The lines, with a `v3 = None` after the last use of each array, no deeper than where it began."""
        if not self.arrays:
            return self.lines
        level, last = self._extents()
        after: dict[int, list[str]] = {}
        for name, place in last.items():
            after.setdefault(self._end_of_block(place, level[name]), []).append(name)
        return list(self._with_frees(level, after))

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

    def _belongs(self, line: Line, level: int) -> bool:
        return line.indent > level or (line.indent == level and line.text.startswith(("elif ", "else:")))

    def _with_frees(self, level: dict[str, int], after: dict[int, list[str]]) -> Iterator[Line]:
        """The lines with assignments of None added; none are needed before a return, which frees all variables."""
        for place, line in enumerate(self.lines):
            yield line
            names = after.get(place)
            if names and not line.text.startswith(("return", "break")) and not self._returns(place + 1):
                names.sort(key=lambda name: (-level[name], name))  # inner blocks first
                for indent, some in groupby(names, level.__getitem__):
                    yield Line(indent, f"{' = '.join(some)} = None", line.path)

    def _returns(self, place: int) -> bool:
        return place < len(self.lines) and self.lines[place].text.startswith("return")
