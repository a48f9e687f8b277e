"""The text of a plan: lines of Python, each with the instruction that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import Factory, define, frozen

from xbuild.graph import Instruction

_NAME = re.compile(r"\bv\d+\b")


@frozen
class Place:
    """An instruction on the way from the entry to where a device stands, and the variable that counts its trips."""

    instruction: Instruction
    trip: str | None = None
    branch: int | None = None


Path = tuple[Place, ...]


@define
class Line:
    indent: int
    text: str
    path: Path


@define
class Lines:
    """Lines under construction; arrays of `least` bytes and more, `large`, are freed after their last use."""

    lines: list[Line] = Factory(list)
    large: set[str] = Factory(set)
    indent: int = 0
    least: int = 0

    def add(self, text: str, path: Path) -> None:
        self.lines.append(Line(self.indent, text, path))

    @contextmanager
    def block(self) -> Iterator[None]:
        """The lines inside stand one level deeper."""
        self.indent += 1
        yield
        self.indent -= 1

    def freed(self) -> list[Line]:
        """The lines, with a `v3 = None` after the last use of each large variable, no deeper than where it began."""
        if not self.large:
            return self.lines
        level, last = self._extents()
        after: dict[int, list[str]] = {}
        for name, place in last.items():
            after.setdefault(self._end_of_block(place, level[name]), []).append(name)
        return list(self._with_frees(level, after))

    def _extents(self) -> tuple[dict[str, int], dict[str, int]]:
        """For each large variable the least indent that it stands at, and the last line that names it."""
        level: dict[str, int] = {}
        last: dict[str, int] = {}
        for place, line in enumerate(self.lines):
            for name in self.large.intersection(_NAME.findall(line.text)):
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
        for place, line in enumerate(self.lines):
            yield line
            if not line.text.startswith(("return", "break")):
                for name in sorted(after.get(place, ()), key=lambda name: (-level[name], name)):  # inner blocks first
                    yield Line(level[name], f"{name} = None", line.path)
