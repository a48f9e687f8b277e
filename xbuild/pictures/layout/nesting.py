"""Layout of a whole picture: each frame by itself, set into the frame around it, then the lines between frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field

from ..model.picture import Box, Cluster, Edge, Picture
from .arranging import GAP, Arrangement, Line
from .places import Layout, Point, Rectangle, Route
from .sizes import size_of, width_of

MARGIN = 14.0
TITLE = 24.0
TITLE_SIZE = 12.5
_BETWEEN = 56.0  # pixels between frames side by side
_ROW = 40.0  # pixels by which the middles of boxes of one row may differ in height
_CLEAR = 18.0  # pixels between a line and the boxes that it goes around


@define
class _Frame:
    """The layout of a frame, with coordinates relative to its own upper left corner."""

    width: float
    height: float
    boxes: dict[str, Rectangle] = field(factory=dict)
    clusters: dict[str, Rectangle] = field(factory=dict)
    routes: list[Route] = field(factory=list)

    def take(self, inner: _Frame, x: float, y: float) -> None:
        self.boxes |= {each: place.moved(x, y) for each, place in inner.boxes.items()}
        self.clusters |= {each: place.moved(x, y) for each, place in inner.clusters.items()}
        self.routes += [route.moved(x, y) for route in inner.routes]


def lay_out(picture: Picture) -> Layout:
    """The layout of a picture; the same picture has the same layout."""
    nest = _Nest(picture)
    whole = _rows([nest.frame(cluster) for cluster in picture.clusters], 2.2)
    drawn = {id(route.edge) for route in whole.routes}
    loose = [_beside(whole.boxes, edge) for edge in picture.edges if id(edge) not in drawn]
    return Layout(whole.width, whole.height, whole.boxes, whole.clusters, (*whole.routes, *loose))


def _rows(frames: Sequence[_Frame], aspect: float) -> _Frame:
    """Frames side by side, in rows that give the whole about this ratio of width to height."""
    area = sum((frame.width + _BETWEEN) * (frame.height + _BETWEEN) for frame in frames)
    widest = max([(area * aspect) ** 0.5, *(frame.width for frame in frames)])
    if len(frames) <= 4:
        widest = float("inf")
    whole, x, y, low = _Frame(0.0, 0.0), 0.0, 0.0, 0.0
    for frame in frames:
        if x and x + frame.width > widest:
            x, y = 0.0, low + _BETWEEN
        whole.take(frame, x, y)
        whole.width, low = max(whole.width, x + frame.width), max(low, y + frame.height)
        x += frame.width + _BETWEEN
    whole.height = low
    return whole


def _beside(boxes: dict[str, Rectangle], edge: Edge) -> Route:
    """The route of a line between frames: from side to side, around the boxes between its ends in one row."""
    tail, head = boxes[edge.tail], boxes[edge.head]
    if head.x >= tail.right:
        start, end, out, back = tail.right, head.x, 1, -1
    elif head.right <= tail.x:
        start, end, out, back = tail.x, head.right, -1, 1
    else:
        start, end, out, back = tail.right, head.right, 1, 1
    row = _between(boxes.values(), tail, head) if out * back < 0 else []
    if row:
        return Route(edge, _round(row, (start, tail.middle[1]), (end, head.middle[1])), sideways=True)
    bow = max(46.0, abs(end - start) * 0.45)
    y, to = tail.middle[1], head.middle[1]
    return Route(edge, ((start, y), (start + out * bow, y), (end + back * bow, to), (end, to)), sideways=True)


def _between(boxes: Iterable[Rectangle], tail: Rectangle, head: Rectangle) -> list[Rectangle]:
    """The boxes between two boxes of a row; none where the two are not in one row."""
    low, high = sorted((tail.middle[1], head.middle[1]))
    left, right = min(tail.right, head.right), max(tail.x, head.x)
    if high - low > _ROW:
        return []
    return [box for box in boxes if left < box.right and box.x < right and box.y < high + 2 and low - 2 < box.bottom]


def _round(row: Sequence[Rectangle], start: Point, end: Point) -> tuple[Point, ...]:
    """The points of a route around boxes: above if it goes to the right, else below, so that two routes do not meet."""
    out = 1 if end[0] > start[0] else -1
    level = min(box.y for box in row) - _CLEAR if out > 0 else max(box.bottom for box in row) + _CLEAR
    (x, y), (to, down) = start, end
    half, whole = out * GAP / 2, out * GAP
    up = ((x + half, y), (x + half, level), (x + whole, level))
    along = ((x + whole, level), (to - whole, level), (to - whole, level))
    return (start, *up, *along, (to - half, level), (to - half, down), end)


@define
class _Nest:
    """Computes the layout of the frames of a picture, each with the lines inside it."""

    picture: Picture
    _homes: dict[str, tuple[str, ...]] = field(init=False, factory=dict)
    _edges: dict[str, list[Edge]] = field(init=False, factory=dict)
    _ports: dict[str, tuple[set[object], set[object]]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for cluster in self.picture.clusters:
            self._enter(cluster, ())
        for edge in self.picture.edges:
            home = self._home(edge)
            if home:
                self._edges.setdefault(home, []).append(edge)
                self._ports.setdefault(edge.tail, (set(), set()))[1].add((edge.at_tail, edge.what))
                self._ports.setdefault(edge.head, (set(), set()))[0].add(id(edge))

    def _enter(self, cluster: Cluster, path: tuple[str, ...]) -> None:
        path = (*path, cluster.id)
        self._homes |= {box.id: path for box in cluster.boxes}
        for inner in cluster.clusters:
            self._enter(inner, path)

    def _home(self, edge: Edge) -> str:
        """The frame that contains a line: the frame of its head where its tail is inside it, too; else empty."""
        tail, head = self._homes[edge.tail], self._homes[edge.head]
        return head[-1] if edge.what != "channel" and tail[: len(head)] == head else ""

    def frame(self, cluster: Cluster) -> _Frame:
        inner = [self.frame(each) for each in cluster.clusters]
        if inner and not cluster.boxes:
            return _framed(cluster, _rows(inner, 1.7))
        return _framed(cluster, self._arranged(cluster, inner))

    def _arranged(self, cluster: Cluster, inner: list[_Frame]) -> _Frame:
        sizes = [self._size(box) for box in cluster.boxes]
        sizes += [(frame.width, frame.height) for frame in inner]
        edges = self._edges.get(cluster.id, [])
        lines = [*self._lines(cluster, edges)]
        count = len(cluster.boxes)
        used = {line.head for line in lines}
        high = frozenset(n for n in range(count, len(sizes)) if n not in used)
        graph = Arrangement([w for w, _ in sizes], [h for _, h in sizes], lines, high)
        whole = _Frame(graph.width, graph.height)
        whole.boxes = {box.id: place for box, place in zip(cluster.boxes, graph.places[:count], strict=True)}
        for frame, place in zip(inner, graph.places[count:], strict=True):
            whole.take(frame, place.x, place.y)
        whole.routes += [Route(edge, way) for edge, way in zip(edges, graph.ways, strict=True) if way]
        return whole

    def _size(self, box: Box) -> tuple[float, float]:
        above, below = self._ports.get(box.id, ((), ()))
        return size_of(box, max(len(above), len(below)))

    def _lines(self, cluster: Cluster, edges: list[Edge]) -> Iterator[Line]:
        number = {box.id: n for n, box in enumerate(cluster.boxes)}
        inner = {each.id: len(number) + n for n, each in enumerate(cluster.clusters)}
        depth = len(self._homes[cluster.boxes[0].id]) if cluster.boxes else 0
        for edge in edges:
            home = self._homes[edge.tail]
            tail = number[edge.tail] if len(home) == depth else inner[home[depth]]
            yield Line(tail, number[edge.head], (edge.at_tail, edge.what))


def _framed(cluster: Cluster, inside: _Frame) -> _Frame:
    """The layout of a frame around its content, with a margin and the title above."""
    title = width_of(cluster.title, TITLE_SIZE) + 2 * MARGIN
    frame = _Frame(max(inside.width + 2 * MARGIN, title), inside.height + 2 * MARGIN + TITLE)
    frame.take(inside, (frame.width - inside.width) / 2, MARGIN + TITLE)
    frame.clusters[cluster.id] = Rectangle(0.0, 0.0, frame.width, frame.height)
    return frame
