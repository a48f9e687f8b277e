"""Sizes of words and boxes, and the places that a layout gives to boxes, frames and lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias
from unicodedata import east_asian_width

from attrs import evolve, frozen

from .picture import Box, Edge

# ----------------------------------------------------------------------------
# The result of a layout: a rectangle for each box and frame, a route for each line.

Point: TypeAlias = tuple[float, float]


@frozen
class Rectangle:
    """A rectangle; `x` and `y` are those of its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def moved(self, x: float, y: float) -> Rectangle:
        return Rectangle(self.x + x, self.y + y, self.width, self.height)


@frozen
class Route:
    """The route of a line: points in pairs, with a straight line within each pair and a smooth curve from pair to pair.

    A `sideways` route leaves and enters boxes at their sides, any other at the lower and upper edge; the points of a
    sideways route are the control points of successive cubic curves.
    """

    edge: Edge
    points: tuple[Point, ...]
    sideways: bool = False

    def moved(self, x: float, y: float) -> Route:
        return evolve(self, points=tuple((px + x, py + y) for px, py in self.points))


@frozen
class PictureLayout:
    """The layout of a picture, in pixels; `boxes` and `clusters` map ids to rectangles."""

    width: float
    height: float
    boxes: Mapping[str, Rectangle]
    clusters: Mapping[str, Rectangle]
    routes: tuple[Route, ...]


# ----------------------------------------------------------------------------
# Sizes of words and boxes, computed for a fixed-width font.

WIDEST = 640.0  # pixels up to which a box grows with the number of its lines
ADVANCE = 0.605  # width of a letter in common fixed-width fonts, in ems
STRIP = 24.0  # pixels at the left of a box for the letter of its kind
PADDING = 9.0
LINE_HEIGHT = 14.5
_CURVED = {"slanted": 8.0, "hexagon": 8.0, "flag": 9.0, "pill": 7.0, "funnel": 8.0}


@frozen
class TextLine:
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


def lines_of(box: Box) -> Iterator[TextLine]:
    """The lines of text of a box, from the top: name, op (if not in the name), details, shape, stubs, mark."""
    yield TextLine(f"{box.name}  ◂ ROOT" if box.is_root else box.name, "name")
    if not box.says_its_op and box.title:
        yield TextLine(box.title, "op")
    yield from (TextLine(detail, "detail") for detail in box.details)
    if box.shape:
        yield TextLine(box.shape, "shape")
    yield from (TextLine(stub, "stub") for stub in box.stubs)
    if box.mark is not None:
        yield TextLine(box.mark.words, "mark")


def slope(box: Box) -> float:
    """How far the outline of a box cuts into it at the sides."""
    return _CURVED.get(box.kind.outline, 0.0)


def size_of(box: Box, ports: int) -> tuple[float, float]:
    """Width and height of a box with at most `ports` lines at its upper or lower edge."""
    lines = [*lines_of(box)]
    words = max(width_of(line.text, line.size) + PILL * 2 * (line.role == "mark") for line in lines)
    width = STRIP + words + 2 * PADDING + 2 * slope(box)
    return round(max(width, min(14.0 * ports + 12, WIDEST))), round(
        LINE_HEIGHT * len(lines) + 10 + 3 * (box.mark is not None)
    )
