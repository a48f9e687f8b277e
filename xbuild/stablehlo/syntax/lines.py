"""Fast path of the parser: an operation that differs from an earlier one in the names of values alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

from .trees import Form, Operation, Region

if TYPE_CHECKING:
    from .location_reader import LocationReader

_NAMES = re.compile(r"%([\w$.-]++(?:#\d++)?+)", re.ASCII)
_RESULT = re.compile(r"%([\w$.-]++)(?::(\d{1,6}+))?+ = ", re.ASCII)
_LOCATION = re.compile(r"#[\w$.-]++", re.ASCII)
_FOLLOWING = re.compile(r'\s*+(?=[%}"^]|[a-z_]++\.[a-z]|return\b)', re.ASCII)
_LONGEST = 2000


class Line:
    """A line that looks like a whole operation: its result, its operands, and all that is not a name as its key."""

    __slots__ = ("count", "end", "following", "key", "location", "operands", "place", "result")

    def __init__(self, place: int, end: int, following: int) -> None:
        self.place, self.end, self.following = place, end, following
        self.result, self.count, self.location = "", 0, ""
        self.operands: list[str] = []
        self.key = ""

    def ends(self, text: str, place: int) -> bool:
        """Whether what was read up to this place is all of the line, and nothing of the next."""
        return not text[min(place, self.end) : max(place, self.end)].strip()


def line_at(text: str, place: int) -> Line | None:
    """The line at a place; None where it is long, or where what follows is no other operation."""
    end = text.find("\n", place)
    if end < 0 or end - place > _LONGEST:
        return None
    following = _FOLLOWING.match(text, end)
    if not following:
        return None
    line = Line(place, end, following.end())
    result = _RESULT.match(text, place)
    if result:
        line.result, place = result[1], result.end()
        line.count = 1 if result[2] is None else int(result[2])
    if text.startswith(")", end - 1):
        end = _without_location(text, place, end, line)
    parts = _NAMES.split(text[place:end])
    line.operands = parts[1::2]
    line.key = "\n".join(parts[::2])  # a line has none, and may have a % without a name
    return line


def _without_location(text: str, place: int, end: int, line: Line) -> int:
    """The end of the operation before ` loc(#name)`; other locations are read in full."""
    begin = text.rfind(" loc(", place, end)
    if begin < 0:
        return end
    location = text[begin + 5 : end - 1]
    if not _LOCATION.fullmatch(location):
        return end
    line.location = location
    return begin


@frozen(eq=False)
class Written:
    """What an operation of one line has but for names and location."""

    form: Form
    regions: tuple[Region, ...]

    def operation(self, reader: LocationReader, line: Line) -> Operation | None:
        """The operation of a line; None where it has another number of results, and is to be refused in full."""
        if line.count != len(self.form.result_types) and line.count:
            return None
        if line.count == 1:
            results: tuple[str, ...] = (line.result,)
        else:
            results = tuple([f"{line.result}#{number}" for number in range(line.count)])
        if not line.location:
            return Operation(self.form, tuple(line.operands), results, self.regions, place=line.place)
        location = reader.location_alias(line.location, line.place)
        return Operation(self.form, tuple(line.operands), results, self.regions, place=line.place, location=location)
