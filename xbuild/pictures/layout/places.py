"""The result of a layout: a rectangle for each box and frame, a route for each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from ..model.picture import Edge

Point: TypeAlias = tuple[float, float]


@frozen
class Rectangle:
    """`x` and `y` are of the upper left corner."""

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
    """The way of a line: points in pairs, straight between the two of a pair, and a smooth curve from pair to pair.

    `sideways` ways leave and enter at the sides of boxes, others below and above; theirs are the points of cubic
    curves, one after the other.
    """

    edge: Edge
    points: tuple[Point, ...]
    sideways: bool = False

    def moved(self, x: float, y: float) -> Route:
        return evolve(self, points=tuple((px + x, py + y) for px, py in self.points))


@frozen
class Layout:
    """A picture's places, in pixels; `boxes` and `clusters` by id."""

    width: float
    height: float
    boxes: Mapping[str, Rectangle]
    clusters: Mapping[str, Rectangle]
    routes: tuple[Route, ...]
