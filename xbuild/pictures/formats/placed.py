"""Dot text of a picture with the position of every box and line, so that graphviz draws and lays out nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..layout import Layout, Rectangle, Route, lay_out
from ..layout.places import Point
from ..model.picture import Cluster, Picture
from .dot import SCALE, Writer, graph_of, size_text

_LARGEST = 4000  # pixels of the longer side of a png


def placed_text(picture: Picture, theme: str = "auto", dpi: int | None = None) -> str:
    """The dot text of a picture with all positions, for the engine nop2."""
    layout = lay_out(picture)
    if dpi:
        dpi = max(12, min(dpi, int(_LARGEST * 72 / (max(layout.width, layout.height) * SCALE))))
    return graph_of(_Placed(picture, theme, dpi, layout).lines())


class _Placed:
    """Writes boxes, frames and lines at the positions of a layout; the y axis of graphviz points upwards."""

    def __init__(self, picture: Picture, theme: str, dpi: int | None, layout: Layout) -> None:
        self.writer, self.layout = Writer(picture, theme, dpi), layout

    def lines(self) -> Iterator[str]:
        yield from self.writer.head()
        yield f'graph [bb="0,0,{self._x(self.layout.width)},{self._x(self.layout.height)}"]'
        for cluster in self.writer.picture.clusters:
            yield from self._cluster(cluster, 0)
        for route in self.layout.routes:
            yield self.writer.edge(route.edge, f' pos="e,{self._way(route)}"')

    def _x(self, x: float) -> str:
        return f"{x * SCALE:.1f}"

    def _point(self, point: Point) -> str:
        return f"{self._x(point[0])},{self._x(self.layout.height - point[1])}"

    def _cluster(self, cluster: Cluster, depth: int) -> Iterator[str]:
        places = {box.id: self._box(self.layout.boxes[box.id]) for box in cluster.boxes}
        yield from self.writer.opened(cluster, depth)
        place = self.layout.clusters[cluster.id]
        low, high = self._point((place.x, place.bottom)), self._point((place.right, place.y))
        title = self._point((place.x + 12 + len(cluster.title) * 4, place.y + 14))
        yield f'graph [bb="{low},{high}" lp="{title}"]'
        for box in cluster.boxes:
            yield self.writer.box(box, places[box.id])
        for inner in cluster.clusters:
            yield from self._cluster(inner, depth + 1)
        yield "}"

    def _box(self, place: Rectangle) -> str:
        return f' pos="{self._point(place.middle)}"{size_text(place.width, place.height)}'

    def _way(self, route: Route) -> str:
        """The positions of a route: first the point of its arrow, then the control points of its cubic curves."""
        points = route.points if route.sideways else _cubic(route.points)
        return f"{self._point(points[-1])} {' '.join(map(self._point, points))}"


def _cubic(points: tuple[Point, ...]) -> list[Point]:
    """The control points of a route: a straight line and a smooth curve by turns."""
    found = [points[0]]
    for number, (after, before) in enumerate(zip(points[1:], points, strict=False)):
        middle = (before[1] + after[1]) / 2
        if number % 2:
            found += [(before[0], middle), (after[0], middle), after]
        elif before != after:
            found += [before, after, after]
    return found
