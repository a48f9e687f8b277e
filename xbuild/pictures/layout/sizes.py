"""Sizes of words and boxes, computed for a fixed-width font."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import east_asian_width

from attrs import frozen

from ..model.picture import Box

WIDEST = 640.0  # pixels up to which a box grows with the number of its lines
ADVANCE = 0.605  # width of a letter in common fixed-width fonts, in ems
STRIP = 24.0  # pixels at the left of a box for the letter of its kind
PADDING = 9.0
LINE = 14.5
_CURVED = {"slanted": 8.0, "hexagon": 8.0, "flag": 9.0, "pill": 7.0, "funnel": 8.0}


@frozen
class Line:
    """A line of words in a box: `role` is name, op, detail, stub, shape or mark."""

    text: str
    role: str

    @property
    def size(self) -> float:
        return SIZES[self.role]


SIZES = {"name": 12.5, "op": 11.0, "detail": 10.5, "stub": 10.5, "shape": 11.5, "mark": 11.0}
PILL = 7.0  # pixels at both sides of the text of a badge


def width_of(text: str, size: float) -> float:
    """The width of words in a fixed-width font of this size."""
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return (len(text) + wide) * ADVANCE * size


def lines_of(box: Box) -> Iterator[Line]:
    """The lines of text of a box, from the top: name, op (if not in the name), details, shape, stubs, mark."""
    yield Line(f"{box.name}  ◂ ROOT" if box.is_root else box.name, "name")
    if not box.says_its_op and box.title:
        yield Line(box.title, "op")
    yield from (Line(detail, "detail") for detail in box.details)
    if box.shape:
        yield Line(box.shape, "shape")
    yield from (Line(stub, "stub") for stub in box.stubs)
    if box.mark is not None:
        yield Line(box.mark.words, "mark")


def slope(box: Box) -> float:
    """How far the outline of a box cuts into it at the sides."""
    return _CURVED.get(box.kind.outline, 0.0)


def size_of(box: Box, ports: int) -> tuple[float, float]:
    """Width and height of a box with at most `ports` lines at its upper or lower edge."""
    lines = [*lines_of(box)]
    words = max(width_of(line.text, line.size) + PILL * 2 * (line.role == "mark") for line in lines)
    width = STRIP + words + 2 * PADDING + 2 * slope(box)
    return round(max(width, min(14.0 * ports + 12, WIDEST))), round(LINE * len(lines) + 10 + 3 * (box.mark is not None))
