"""Texts that are no programs of xbuild: they are reduced by computations, lines and attributes, without shape rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

from attrs import evolve, frozen

Line: TypeAlias = tuple[int, str]
"""A line with its number in the given text."""

_ATTRIBUTE = re.compile(r",\s*[a-z_]+=(?:\{(?:[^{}]|\{[^{}]*\})*\}|\"(?:[^\"\\]|\\.)*\"|[^,{}\s()]+)")
_PARAMETER = re.compile(r" parameter\((\d+)\)")
_SIGNATURE = re.compile(r" \(.*\) -> .*(?= \{\s*$)")
_COMMENT = re.compile(r"/\*.*?\*/|//.*")


@frozen(eq=False)
class TextState:
    """The lines that are left of a text."""

    lines: tuple[Line, ...]

    @classmethod
    def of(cls, text: str) -> TextState:
        return cls(tuple(enumerate(text.splitlines())))

    @property
    def texts(self) -> tuple[str, ...]:
        return ("\n".join(line for _, line in self.lines) + "\n",)

    @property
    def size(self) -> Any:
        text = self.texts[0]
        return sum(map(_is_instruction, text.splitlines())), len(self.lines), len(text), text

    def is_smaller(self, other: TextState) -> bool:
        """Whether this has fewer instructions or, with as many, fewer lines, or a shorter text."""
        return bool(self.size < other.size)

    @property
    def count(self) -> int:
        """The number of lines that state instructions."""
        return int(self.size[0])


def _is_instruction(line: str) -> bool:
    return " = " in line and not line.lstrip().startswith("HloModule")


def blocks(state: TextState) -> list[int]:
    """The computations but the entry, by the number of their first line."""
    begins = dict(state.lines)
    return [first for first, _ in _blocks(state) if not begins[first].lstrip().startswith("ENTRY")]


def _blocks(state: TextState) -> Iterator[tuple[int, set[int]]]:
    first: int | None = None
    members: set[int] = set()
    for number, line in state.lines:
        if first is None and line.rstrip().endswith("{"):
            first, members = number, set()
        members.add(number)
        if first is not None and _ends_block(line):
            yield first, members
            first = None


def _ends_block(line: str) -> bool:
    """Whether a line closes a computation; a comment may follow."""
    return line.strip().startswith("}") and not line.strip(" }").partition("//")[0].strip()


def without_blocks(state: TextState, gone: Collection[int]) -> Iterator[TextState]:
    """The text without these computations."""
    numbers = {number for first, members in _blocks(state) if first in gone for number in members}
    yield without_lines_of(state, numbers)


def lines(state: TextState) -> list[int]:
    """The lines within computations, and those that are blank."""
    return [number for number, line in state.lines if _is_inner(line)]


def lines_of_entry(state: TextState) -> list[int]:
    """The lines within the entry."""
    begins = dict(state.lines)
    entry = [members for first, members in _blocks(state) if begins[first].lstrip().startswith("ENTRY")]
    return [number for number, line in state.lines if _is_inner(line) and any(number in each for each in entry)]


def _is_inner(line: str) -> bool:
    return not _ends_block(line) and not line.rstrip().endswith("{") and not line.startswith("HloModule")


def without_lines(state: TextState, gone: Collection[int]) -> Iterator[TextState]:
    """The text without these lines."""
    yield without_lines_of(state, gone)


def without_lines_of(state: TextState, gone: Collection[int]) -> TextState:
    """The text without these lines; the parameters that are left in a computation are numbered without gaps."""
    left = evolve(state, lines=tuple([each for each in state.lines if each[0] not in gone]))
    numbers: dict[int, str] = {}
    lines = dict(left.lines)
    for _, members in _blocks(left):
        found = {number: int(match[1]) for number in members if (match := _PARAMETER.search(lines[number]))}
        for new, number in enumerate(sorted(found, key=lambda each: found[each])):
            if found[number] != new:
                numbers[number] = _PARAMETER.sub(f" parameter({new})", lines[number], count=1)
    return evolve(left, lines=tuple([(n, numbers.get(n, line)) for n, line in left.lines])) if numbers else left


Note: TypeAlias = tuple[int, str]


def attributes(state: TextState) -> list[Note]:
    """The attributes and comments of the lines, and the signatures of the computations."""
    return [
        (number, match[0])
        for number, line in state.lines
        for pattern in (_COMMENT, _SIGNATURE, _ATTRIBUTE)
        for match in pattern.finditer(line)
    ]


def without_attributes(state: TextState, gone: Collection[Note]) -> Iterator[TextState]:
    """The text without these attributes, comments and signatures."""
    chosen: dict[int, list[str]] = {}
    for number, text in gone:
        chosen.setdefault(number, []).append(text)
    yield evolve(state, lines=tuple([(n, _without(line, chosen.get(n, ()))) for n, line in state.lines]))


def _without(line: str, parts: Collection[str]) -> str:
    for part in parts:
        line = line.replace(part, "", 1)
    return line
