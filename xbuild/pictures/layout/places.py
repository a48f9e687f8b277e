"""The result of a layout: a rectangle for each box and frame, a route for each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from ..model.picture import Edge

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
class Layout:
    """The layout of a picture, in pixels; `boxes` and `clusters` map ids to rectangles."""

    width: float
    height: float
    boxes: Mapping[str, Rectangle]
    clusters: Mapping[str, Rectangle]
    routes: tuple[Route, ...]
