"""The text of an open file, with its lines: offsets from an editor's positions and back, and the edits of an editor."""

from __future__ import annotations

import bisect
import re
from functools import cached_property
from typing import Literal, TypeAlias

from attrs import frozen

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
"""The units in which an editor counts the characters of a line."""

_END = re.compile(r"\r\n|\n|\r")


@frozen(order=True)
class Position:
    """A line and a character of an editor, both counted from 0; the character is in units of the text's encoding."""

    line: int
    character: int


@frozen(eq=False, slots=False)
class Text:
    """A text and its lines. It is immutable: an edit makes a new text.

    >>> text = Text("a = f32[2]\\nb = 𝛼", "utf-16")
    >>> text.position(16), text.offset(Position(1, 6))
    (Position(line=1, character=6), 16)
    >>> text.edited(Position(0, 0), Position(1, 0), "").source
    'b = 𝛼'
    """

    source: str
    encoding: Encoding = "utf-16"

    @cached_property
    def begins(self) -> list[int]:
        """The offset of each line."""
        return [0, *(found.end() for found in _END.finditer(self.source))]

    def line_of(self, offset: int) -> int:
        """The line, from 0, that holds an offset."""
        return bisect.bisect_right(self.begins, offset) - 1

    def line_range(self, line: int) -> tuple[int, int]:
        """Where a line begins and ends, without its line break; the end of the text for a line after the last."""
        if not 0 <= line < len(self.begins):
            return len(self.source), len(self.source)
        begin = self.begins[line]
        end = self.begins[line + 1] if line + 1 < len(self.begins) else len(self.source)
        while end > begin and self.source[end - 1] in "\r\n":
            end -= 1
        return begin, end

    def offset(self, position: Position) -> int:
        """The offset of a position; a position behind a line's end is the end of the line."""
        if position.line < 0:
            return 0
        begin, end = self.line_range(position.line)
        line = self.source[begin:end]
        if position.character <= 0:
            return begin
        if self.encoding == "utf-32" or line.isascii():
            return begin + min(position.character, len(line))
        units = 0
        for number, character in enumerate(line):
            if units >= position.character:
                return begin + number
            units += _units(character, self.encoding)
        return end

    def position(self, offset: int) -> Position:
        """The position of an offset; an offset outside the text is moved to its nearest end."""
        offset = max(0, min(offset, len(self.source)))
        line = self.line_of(offset)
        before = self.source[self.begins[line] : offset]
        if self.encoding == "utf-32" or before.isascii():
            return Position(line, len(before))
        return Position(line, sum(_units(character, self.encoding) for character in before))

    def edited(self, begin: Position, end: Position, new: str) -> Text:
        """The text in which `new` replaces what is between two positions, in whichever order they are."""
        first, last = sorted((self.offset(begin), self.offset(end)))
        return Text(f"{self.source[:first]}{new}{self.source[last:]}", self.encoding)


def _units(character: str, encoding: Encoding) -> int:
    if encoding == "utf-16":
        return 1 + (ord(character) > 0xFFFF)
    return 1 + sum(ord(character) > last for last in (0x7F, 0x7FF, 0xFFFF))
