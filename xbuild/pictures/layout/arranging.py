"""Layered layout of one graph: positions of its nodes and routes of its lines."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence

from attrs import define, field, frozen

from .alignment import Layered, middles
from .layering import Layering, layers
from .ordering import Ordering
from .places import Point, Rectangle
from .pulling import pulled

GAP = 26.0  # pixels between boxes of a layer
_STRAIGHT = 1 << 30, 12, 6, 3, 1  # the most layers that a line crosses straight: limits that are tried in turn
_SLACK = 1.5  # width over the least width of the widest layer, above which a picture is mostly empty
_SLENDER = 0.4  # width over height, up to which a picture is never too wide
_SMALL = 1500.0  # pixels up to which no picture is too wide
_BEND = 6.0  # width of a bend of a line, in pixels
_RISE = 34.0  # least pixels between layers
_PITCH = 95.0  # pixels from one layer of usual height to the next


@frozen
class Line:
    """A line from one node to another; lines of one `port` leave the tail together and branch later."""

    tail: int
    head: int
    port: Hashable = None


@define
class Arrangement:
    """The layered layout of nodes of these sizes and the lines between them; a line that points upwards gets no route.

    A node of `high` may span several layers; no line ends at it.
    """

    widths: list[float]
    heights: list[float]
    lines: Sequence[Line]
    high: frozenset[int] = frozenset()
    places: list[Rectangle] = field(init=False, factory=list)
    ways: list[tuple[Point, ...]] = field(init=False)
    width: float = field(init=False, default=0.0)
    height: float = field(init=False, default=0.0)
    _count: int = field(init=False)
    _layers: list[list[int]] = field(init=False)
    _layer_of: dict[int, int] = field(init=False)
    _up: list[list[int]] = field(init=False)
    _down: list[list[int]] = field(init=False)
    _chains: dict[tuple[int, Hashable, int], int] = field(init=False)
    _pillars: dict[int, list[int]] = field(init=False)
    _x: list[float] = field(init=False)
    _tops: list[float] = field(init=False)
    _bottoms: list[float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._count = len(self.widths)
        self.ways = [() for _ in self.lines]
        if self._count and not self._arrange():
            self.high = frozenset()
            self._arrange()

    def _arrange(self) -> bool:
        """Compute the layout; False where the parts of a high node are not at one x."""
        layering = Layering(self._count, [(line.tail, line.head) for line in self.lines])
        self._layers = layers(layering, self.widths, self._widest())
        self._chains, self._pillars, self._tops, self._bottoms = {}, {}, [], []
        self._add_layers()
        self._layer_of = {node: n for n, layer in enumerate(self._layers) for node in layer}
        kept = [n for n in layering.kept if self._points_down(self.lines[n])]
        self._connect([self.lines[n] for n in kept])
        self._layers = Ordering(self._layers, self._up, self._down, self._sides()).best
        graph = self._layered()
        self._x = _compact(graph)
        if any(abs(self._x[each] - self._x[node]) > 1 for node, under in self._pillars.items() for each in under):
            return False
        self._stack()
        self._route_lines(kept)
        return True

    def _add_layers(self) -> None:
        """Add empty layers at the top where a high node spans more layers than there are above it."""
        lacking = [
            self._span(node) - 1 - n for n, layer in enumerate(self._layers) for node in layer if node in self.high
        ]
        self._layers = [[] for _ in range(max([0, *lacking]))] + self._layers

    def _span(self, node: int) -> int:
        """The number of layers that a high node spans."""
        return max(1, round(self.heights[node] / _PITCH))

    def _widest(self) -> float:
        """The bound on the width of a layer: that of a landscape picture of about the area of all nodes."""
        area = sum((w + GAP) * (h + _RISE) for w, h in zip(self.widths, self.heights, strict=True))
        return max(_SMALL, float((2.2 * area) ** 0.5), *self.widths)

    def _points_down(self, line: Line) -> bool:
        return self._layer_of[line.tail] < self._layer_of[line.head]

    def _connect(self, lines: list[Line]) -> None:
        """Link nodes of neighbouring layers, with a bend in each layer that a line passes."""
        self._up, self._down = [[] for _ in self.widths], [[] for _ in self.widths]
        links = {link for node in sorted(self.high) for link in self._pillar(node)}
        for line in lines:
            *_, last = before = [line.tail, *self._bends(line)]
            links |= {*itertools.pairwise(before), (last, line.head)}
        for tail, head in sorted(links):
            self._down[tail].append(head)
            self._up[head].append(tail)

    def _bends(self, line: Line) -> Iterator[int]:
        for layer in range(self._layer_of[line.tail] + 1, self._layer_of[line.head]):
            key = line.tail, line.port, layer
            if key not in self._chains:
                self._chains[key] = self._new(layer)
            yield self._chains[key]

    def _sides(self) -> dict[int, int]:
        """The side of each high node: left and right by turns, at the ends of layers, where no line crosses it."""
        sides = {node: 1 if n % 2 else -1 for n, node in enumerate(sorted(self._pillars))}
        return sides | {each: sides[node] for node, under in self._pillars.items() for each in under}

    def _pillar(self, node: int) -> list[tuple[int, int]]:
        """Add a node in each layer above its own that a high node spans; the links between these nodes."""
        chain = [node]
        for layer in range(self._layer_of[node] - 1, self._layer_of[node] - self._span(node), -1):
            chain.append(self._new(layer))
        self._pillars[node] = chain[1:]
        return [(above, below) for below, above in itertools.pairwise(chain)]

    def _new(self, layer: int) -> int:
        node = len(self._up)
        self._layers[layer].append(node)
        self._layer_of[node] = layer
        self._up.append([])
        self._down.append([])
        return node

    def _layered(self) -> Layered:
        wide = {each: self.widths[node] for node, under in self._pillars.items() for each in under}
        extra = range(self._count, len(self._up))
        widths = [*self.widths, *(wide.get(each, _BEND) for each in extra)]
        bends = frozenset(extra) - wide.keys()
        return Layered(self._layers, self._up, self._down, widths, bends, frozenset(extra) | self._pillars.keys(), GAP)

    def _stack(self) -> None:
        """Assign y to the layers from top to bottom, with more distance where lines go far to the side."""
        y = 0.0
        places: dict[int, Rectangle] = {}
        for number, layer in enumerate(self._layers):
            nodes = [node for node in layer if node < self._count]
            tall = max((self.heights[node] for node in nodes if node not in self.high), default=0.0)
            self._tops.append(y)
            for node in self.high.intersection(nodes):
                first = self._tops[number - len(self._pillars[node])]
                tall = max(tall, first + self.heights[node] - y)
            for node in nodes:
                w, h = self.widths[node], self.heights[node]
                # Beside a large node, small boxes stand low, near to their users in the next layer.
                drop = tall - h if tall > 160 or node in self.high else (tall - h) / 2
                places[node] = Rectangle(self._x[node] - w / 2, y + drop, w, h)
            self._bottoms.append(y + tall)
            y += tall + (self._rise(layer) if tall else 8.0)
        self.places = [places[node] for node in range(self._count)]
        self.width = max(place.right for place in self.places)
        self.width = max(self.width, *(x + _BEND for x in self._x))
        self.height = self._bottoms[-1]

    def _rise(self, layer: list[int]) -> float:
        far = max((abs(self._x[node] - self._x[other]) for node in layer for other in self._down[node]), default=0.0)
        return _RISE + min(70.0, far * 0.07)

    def _route_lines(self, kept: list[int]) -> None:
        starts, ends = self._starts(kept), self._ends(kept)
        for n in kept:
            line = self.lines[n]
            tail, head = self.places[line.tail], self.places[line.head]
            x, bottom = starts[line.tail, line.port], self._bottoms[self._layer_of[line.tail]]
            points: list[Point] = [(x, tail.bottom), (x, bottom)]
            for bend in self._bends(line):
                layer = self._layer_of[bend]
                points += [(self._x[bend], self._tops[layer]), (self._x[bend], self._bottoms[layer])]
            x, top = ends[n], self._tops[self._layer_of[line.head]]
            self.ways[n] = _straightened([*points, (x, top), (x, head.y)])

    def _starts(self, kept: list[int]) -> dict[tuple[int, Hashable], float]:
        """The x at which the lines of each port leave a node, in the order of the nodes that they lead to."""
        goals: dict[int, dict[Hashable, list[float]]] = {}
        for n in kept:
            line = self.lines[n]
            goals.setdefault(line.tail, {}).setdefault(line.port, []).append(self._x[self._second(line)])
        found: dict[tuple[int, Hashable], float] = {}
        for node, ports in goals.items():
            order = sorted(ports, key=lambda port: sum(ports[port]) / len(ports[port]))
            found |= {(node, port): x for port, x in zip(order, self._spread(node, len(order)), strict=True)}
        return found

    def _second(self, line: Line) -> int:
        return next(self._bends(line), line.head)

    def _ends(self, kept: list[int]) -> dict[int, float]:
        goals: dict[int, list[tuple[float, int]]] = {}
        for n in kept:
            line = self.lines[n]
            *_, last = [line.tail, *self._bends(line)]
            goals.setdefault(line.head, []).append((self._x[last], n))
        found: dict[int, float] = {}
        for node, wanted in goals.items():
            found |= {n: x for (_, n), x in zip(sorted(wanted), self._spread(node, len(wanted)), strict=True)}
        return found

    def _spread(self, node: int, count: int) -> list[float]:
        """The x of `count` equally spaced points along a side of a node."""
        step = min(46.0, (self.widths[node] - 26) / max(count - 1, 1))
        return [self._x[node] + (n - (count - 1) / 2) * step for n in range(count)]


def _compact(graph: Layered) -> list[float]:
    """The middles of nodes with the longest aligned runs that do not make the layout too wide."""
    room = max(_SLACK * max(graph.least_width, _SMALL), _SLENDER * _PITCH * len(graph.layers))
    found = []
    for straight in _STRAIGHT:
        found.append(pulled(graph, middles(graph, straight)))
        if max(found[-1]) - min(found[-1]) <= room:
            break
    return min(found, key=lambda x: max(x) - min(x))


def _straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points of a route, successive pairs of one x joined to one pair."""
    found = [*points[:2]]
    for start, end in zip(points[2::2], points[3::2], strict=True):
        if abs(start[0] - found[-1][0]) < 0.05:
            found[-1] = (found[-1][0], end[1])
        else:
            found += (start, end)
    return tuple(found)
