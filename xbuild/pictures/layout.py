"""The layout of a picture: layers of boxes in each frame, frames within frames, and the routes of lines.

Sections, from one graph to the whole picture:

    Layers of nodes
    Order within layers
    Coordinates along layers
    Improvement of coordinates
    Layout of one graph
    Layout of a picture
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from attrs import define, field, frozen

from .geometry import PictureLayout, Point, Rectangle, Route, size_of, width_of
from .picture import Box, Cluster, Edge, Picture

# ----------------------------------------------------------------------------
# Layers of nodes
#
# Each node is below all nodes that it uses and near to them; no layer is wider than a bound.

Pair = tuple[int, int]


@define
class Layering:
    """The layers of nodes 0 to n-1; `kept` are the edges that point down (of a cycle, one is left out)."""

    count: int
    edges: Sequence[Pair]
    layer: list[int] = field(init=False)
    kept: list[int] = field(init=False)
    _before: list[list[int]] = field(init=False)
    _after: list[list[int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        order = self._order()
        place = {node: n for n, node in enumerate(order)}
        self.kept = [n for n, (tail, head) in enumerate(self.edges) if place[tail] < place[head]]
        self._before = [[] for _ in range(self.count)]
        self._after = [[] for _ in range(self.count)]
        for n in self.kept:
            tail, head = self.edges[n]
            self._before[head].append(tail)
            self._after[tail].append(head)
        self._longest_paths(order)
        for _ in range(2):
            self._tighten(order)

    def _order(self) -> list[int]:
        """A topological order; where only cycles are left, the first node left comes next."""
        after: list[list[int]] = [[] for _ in range(self.count)]
        missing = [0] * self.count
        for tail, head in self.edges:
            after[tail].append(head)
            missing[head] += 1
        ready = [node for node in range(self.count) if not missing[node]]
        heapify(ready)
        order: dict[int, None] = {}
        unseen = iter(range(self.count))
        while len(order) < self.count:
            node = heappop(ready) if ready else next(n for n in unseen if n not in order)
            if node in order:
                continue
            order[node] = None
            for head in after[node]:
                missing[head] -= 1
                if not missing[head] and head not in order:
                    heappush(ready, head)
        return [*order]

    def _longest_paths(self, order: Sequence[int]) -> None:
        self.layer = [0] * self.count
        for node in order:
            self.layer[node] = max((self.layer[each] + 1 for each in self._before[node]), default=0)

    def _tighten(self, order: Sequence[int]) -> None:
        """Move nodes with more successors than predecessors down as far as possible, and those with fewer, up."""
        for node in reversed(order):
            if self._after[node] and len(self._after[node]) > len(self._before[node]):
                self.layer[node] = min(self.layer[each] for each in self._after[node]) - 1
        for node in order:
            if self._before[node] and len(self._before[node]) > len(self._after[node]):
                self.layer[node] = max(self.layer[each] for each in self._before[node]) + 1


def layers(layering: Layering, widths: Sequence[float], widest: float) -> list[list[int]]:
    """The nodes layer by layer; a layer that is wider than `widest` becomes several."""
    found: dict[int, list[int]] = {}
    for node, layer in enumerate(layering.layer):
        found.setdefault(layer, []).append(node)
    return [part for layer in sorted(found) for part in _parts(found[layer], widths, widest)]


def _parts(nodes: list[int], widths: Sequence[float], widest: float) -> list[list[int]]:
    total = sum(widths[node] for node in nodes)
    count = max(1, min(len(nodes), round(total / widest + 0.4)))
    size = -(-len(nodes) // count)
    return [nodes[start : start + size] for start in range(0, len(nodes), size)]


# ----------------------------------------------------------------------------
# Order within layers
#
# Sweeps by barycentre, then swaps, for few crossings.

_SWEEPS = 10


@define
class Ordering:
    """Layers of nodes with lines only between neighbours; `best` is the order with the fewest crossings seen.

    `sides` has the nodes that stand at the left end (-1) or the right end (1) of their layers.
    """

    layers: list[list[int]]
    up: Sequence[Sequence[int]]
    down: Sequence[Sequence[int]]
    sides: Mapping[int, int]
    best: list[list[int]] = field(init=False)
    crossings: int = field(init=False)
    _place: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._place = [0] * len(self.up)
        for layer in self.layers:
            layer.sort(key=lambda node: self.sides.get(node, 0))
        self._number()
        self.best, self.crossings = [[*layer] for layer in self.layers], self._count()
        for sweep in range(_SWEEPS):
            if not self.crossings:
                break
            self._sweep(downwards=sweep % 2 == 0)
            self._swap()
            count = self._count()
            if count < self.crossings:
                self.best, self.crossings = [[*layer] for layer in self.layers], count

    def _number(self) -> None:
        for layer in self.layers:
            for place, node in enumerate(layer):
                self._place[node] = place

    def _sweep(self, *, downwards: bool) -> None:
        near = self.up if downwards else self.down
        for layer in self.layers if downwards else reversed(self.layers):
            weights = {node: (self.sides.get(node, 0), self._centre(node, near[node])) for node in layer}
            layer.sort(key=weights.__getitem__)
            for place, node in enumerate(layer):
                self._place[node] = place

    def _centre(self, node: int, near: Sequence[int]) -> float:
        return sum(self._place[each] for each in near) / len(near) if near else self._place[node]

    def _swap(self) -> None:
        """Swap neighbours of a layer where that leaves fewer crossings."""
        for layer in self.layers:
            for place in range(len(layer) - 1):
                left, right = layer[place], layer[place + 1]
                if self.sides.get(left, 0) == self.sides.get(right, 0) and self._gain(left, right) > 0:
                    layer[place], layer[place + 1] = right, left
                    self._place[left], self._place[right] = place + 1, place

    def _gain(self, left: int, right: int) -> int:
        gain = 0
        for near in (self.up, self.down):
            a, b = sorted(self._place[n] for n in near[left]), sorted(self._place[n] for n in near[right])
            if a and b and a[-1] > b[0]:
                before = sum(len(a) - bisect_right(a, each) for each in b)
                gain += before - sum(len(b) - bisect_right(b, each) for each in a)
        return gain

    def _count(self) -> int:
        """The number of crossings between all successive layers."""
        total = 0
        for layer in self.layers:
            seen: list[int] = []
            for node in layer:
                ends = sorted(self._place[each] for each in self.down[node])
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total


# ----------------------------------------------------------------------------
# Coordinates along layers
#
# Long lines stay straight, and neighbours are as close as their widths allow.
#
# The method is that of Brandes and Köpf, Fast and Simple Horizontal Coordinate Assignment (2001): nodes are aligned
# with a median neighbour in four ways, from above and below, from the left and right, and stand at the mean of the
# middle two.

_CROWD = 40  # lines through one layer, above which their distances are smaller
Neighbours = Sequence[Sequence[int]]


@frozen
class Layered:
    """Ordered layers with lines only between neighbours.

    `bends` are nodes that only a line goes through, `stiff` those whose lines to each other stay straight.
    """

    layers: list[list[int]]
    up: Neighbours
    down: Neighbours
    widths: Sequence[float]
    bends: frozenset[int]
    stiff: frozenset[int]
    gap: float
    bend_gap: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        crowd = max((sum(node in self.bends for node in layer) for layer in self.layers), default=0)
        object.__setattr__(self, "bend_gap", self.gap * (0.6 if crowd <= _CROWD else 0.2))

    @property
    def least_width(self) -> float:
        """The least width that the widest layer takes."""
        taken = (sum(itertools.starmap(self.apart, itertools.pairwise(layer))) for layer in self.layers)
        return max(taken, default=0.0)

    def apart(self, left: int, right: int) -> float:
        """The least distance between the middles of two neighbours."""
        gap = self.gap if left not in self.bends and right not in self.bends else self.bend_gap
        return (self.widths[left] + self.widths[right]) / 2 + gap


def middles(graph: Layered, straight: int) -> list[float]:
    """The middle of each node along its layer, the least left side at 0; a run spans at most `straight` layers."""
    crossed = _crossed(graph)
    found = []
    for upwards in (False, True):
        layers = graph.layers[::-1] if upwards else graph.layers
        near = graph.down if upwards else graph.up
        for mirrored in (False, True):
            flipped = [layer[::-1] for layer in layers] if mirrored else layers
            places = _Alignment(graph, flipped, near, crossed, mirrored, straight).places()
            found.append([-x for x in places] if mirrored else places)
    return _balanced(found, graph.widths)


def _balanced(found: list[list[float]], widths: Sequence[float]) -> list[float]:
    """The mean of the middle two of each node's four places, after all four assignments are moved to the narrowest."""
    spans = [(min(places), max(places)) for places in found]
    low, high = min(spans, key=lambda span: span[1] - span[0])
    moved = [
        [x + (high - span[1] if n % 2 else low - span[0]) for x in places]
        for n, (places, span) in enumerate(zip(found, spans, strict=True))
    ]
    middle = [sum(sorted(each)[1:3]) / 2 for each in zip(*moved, strict=True)]
    left = min(x - width / 2 for x, width in zip(middle, widths, strict=True))
    return [x - left for x in middle]


def _crossed(graph: Layered) -> set[tuple[int, int]]:
    """The lines that cross a line between stiff nodes."""
    found = set()
    place = {node: n for layer in graph.layers for n, node in enumerate(layer)}
    for layer in graph.layers:
        inner = [(place[u], place[v]) for v in layer if v in graph.stiff for u in graph.up[v] if u in graph.stiff]
        if inner:
            for v in layer:
                for u in graph.up[v]:
                    if not (v in graph.stiff and u in graph.stiff) and any(
                        (place[u] - a) * (place[v] - b) < 0 for a, b in inner
                    ):
                        found.add((u, v))
    return found


@define
class _Alignment:
    """One of the four assignments: nodes are aligned in vertical blocks, and the blocks are compacted."""

    graph: Layered
    layers: list[list[int]]
    near: Neighbours
    crossed: set[tuple[int, int]]
    mirrored: bool
    straight: int
    _root: list[int] = field(init=False)

    def places(self) -> list[float]:
        self._align()
        return self._compact()

    def _align(self) -> None:
        count = len(self.graph.widths)
        self._root, aligned = [*range(count)], [*range(count)]
        place = {node: n for layer in self.layers for n, node in enumerate(layer)}
        for number, layer in enumerate(self.layers):
            if not number % self.straight:
                continue
            last = -1
            for node in layer:
                near = sorted(self.near[node], key=place.__getitem__)
                for middle in dict.fromkeys(((len(near) - 1) // 2, len(near) // 2)) if near else ():
                    other = near[middle]
                    if aligned[node] == node and last < place[other] and not self._is_crossed(other, node):
                        aligned[other], self._root[node] = node, self._root[other]
                        aligned[node] = self._root[node]
                        last = place[other]

    def _is_crossed(self, a: int, b: int) -> bool:
        return (a, b) in self.crossed or (b, a) in self.crossed

    def _compact(self) -> list[float]:
        """Coordinates with each block as far left as possible, then as near to its right neighbours as possible."""
        right, left = self._neighbours()
        order = self._order(right, left)
        at = dict.fromkeys(order, 0.0)
        for block in order:
            at[block] = max((at[other] + gap for other, gap in left.get(block, {}).items()), default=0.0)
        for block in reversed(order):
            nearest = min((at[other] - gap for other, gap in right.get(block, {}).items()), default=at[block])
            at[block] = max(at[block], nearest)
        return [at[self._root[node]] for node in range(len(self._root))]

    def _neighbours(self) -> tuple[dict[int, dict[int, float]], dict[int, dict[int, float]]]:
        """For each block the blocks next to it on the right and on the left, with the least distances."""
        right: dict[int, dict[int, float]] = {}
        left: dict[int, dict[int, float]] = {}
        for layer in self.layers:
            for a, b in itertools.pairwise(layer):
                one, two = self._root[a], self._root[b]
                gap = max(self.graph.apart(a, b), right.get(one, {}).get(two, 0.0))
                right.setdefault(one, {})[two] = left.setdefault(two, {})[one] = gap
        return right, left

    def _order(self, right: dict[int, dict[int, float]], left: dict[int, dict[int, float]]) -> list[int]:
        blocks = dict.fromkeys(self._root)
        missing = {block: len(left.get(block, ())) for block in blocks}
        order = [block for block, count in missing.items() if not count]
        for block in order:
            for other in right.get(block, ()):
                missing[other] -= 1
                if not missing[other]:
                    order.append(other)
        return order


# ----------------------------------------------------------------------------
# Improvement of coordinates
#
# Blocks of aligned nodes move towards the mean of their neighbours where there is room.

_ROUNDS = 6


def pulled(graph: Layered, x: Sequence[float]) -> list[float]:
    """The middles of nodes after a few rounds; the least left side is at 0."""
    pull = _Pull(graph, [*x])
    for turn in range(_ROUNDS):
        for run in pull.runs if turn % 2 else pull.runs[::-1]:
            pull.move(run)
    left = min(x - width / 2 for x, width in zip(pull.x, graph.widths, strict=True))
    return [x - left for x in pull.x]


@define
class _Pull:
    graph: Layered
    x: list[float]
    runs: list[list[int]] = field(init=False)
    _left: dict[int, int] = field(init=False)
    _right: dict[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        pairs = [pair for layer in self.graph.layers for pair in itertools.pairwise(layer)]
        self._right, self._left = dict(pairs), {right: left for left, right in pairs}
        run_of: dict[int, list[int]] = {}
        for layer in self.graph.layers:
            for node in layer:
                above = next((u for u in self.graph.up[node] if self._is_straight(u, node)), None)
                run = [] if above is None else run_of[above]
                run.append(node)
                run_of[node] = run
        self.runs = [run for node, run in run_of.items() if run[0] == node]

    def _is_straight(self, above: int, below: int) -> bool:
        return abs(self.x[above] - self.x[below]) < 0.05

    def move(self, run: list[int]) -> None:
        """Move a run to the mean of its neighbours above and below, or as near to it as the least distances allow."""
        inside = set(run)
        ends = [
            self.x[each] for node in run for near in (self.graph.up, self.graph.down) for each in near[node]
            if each not in inside
        ]  # fmt: skip
        if not ends:
            return
        low = max((self._least(node) for node in run), default=float("-inf"))
        high = min((self._most(node) for node in run), default=float("inf"))
        wanted = sum(ends) / len(ends)
        for node in run:
            self.x[node] = min(max(wanted, low), high)

    def _least(self, node: int) -> float:
        left = self._left.get(node)
        return float("-inf") if left is None else self.x[left] + self.graph.apart(left, node)

    def _most(self, node: int) -> float:
        right = self._right.get(node)
        return float("inf") if right is None else self.x[right] - self.graph.apart(node, right)


# ----------------------------------------------------------------------------
# Layout of one graph
#
# Positions of its nodes and routes of its lines.

GAP = 26.0  # pixels between boxes of a layer
_STRAIGHT = 1 << 30, 12, 6, 3, 1  # the most layers that a line crosses straight: limits that are tried in turn
_SLACK = 1.5  # width over the least width of the widest layer, above which a picture is mostly empty
_SLENDER = 0.4  # width over height, up to which a picture is never too wide
_SMALL = 1500.0  # pixels up to which no picture is too wide
_BEND = 6.0  # width of a bend of a line, in pixels
_RISE = 34.0  # least pixels between layers
_PITCH = 95.0  # pixels from one layer of usual height to the next


@frozen
class LayoutEdge:
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
    lines: Sequence[LayoutEdge]
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

    def _points_down(self, line: LayoutEdge) -> bool:
        return self._layer_of[line.tail] < self._layer_of[line.head]

    def _connect(self, lines: list[LayoutEdge]) -> None:
        """Link nodes of neighbouring layers, with a bend in each layer that a line passes."""
        self._up, self._down = [[] for _ in self.widths], [[] for _ in self.widths]
        links = {link for node in sorted(self.high) for link in self._pillar(node)}
        for line in lines:
            *_, last = before = [line.tail, *self._bends(line)]
            links |= {*itertools.pairwise(before), (last, line.head)}
        for tail, head in sorted(links):
            self._down[tail].append(head)
            self._up[head].append(tail)

    def _bends(self, line: LayoutEdge) -> Iterator[int]:
        for layer in range(self._layer_of[line.tail] + 1, self._layer_of[line.head]):
            key = line.tail, line.port, layer
            if key not in self._chains:
                self._chains[key] = self._new(layer)
            yield self._chains[key]

    def _sides(self) -> dict[int, int]:
        """The side of each high node: left and right alternate, at the ends of layers, where no line crosses it."""
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

    def _second(self, line: LayoutEdge) -> int:
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


# ----------------------------------------------------------------------------
# Layout of a picture
#
# Each frame is laid out by itself and placed in its parent; then the lines between frames are routed.


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


def lay_out(picture: Picture) -> PictureLayout:
    """The layout of a picture; the same picture has the same layout."""
    nest = _Nest(picture)
    whole = _rows([nest.frame(cluster) for cluster in picture.clusters], 2.2)
    drawn = {id(route.edge) for route in whole.routes}
    loose = [_beside(whole.boxes, edge) for edge in picture.edges if id(edge) not in drawn]
    return PictureLayout(whole.width, whole.height, whole.boxes, whole.clusters, (*whole.routes, *loose))


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

    def _lines(self, cluster: Cluster, edges: list[Edge]) -> Iterator[LayoutEdge]:
        number = {box.id: n for n, box in enumerate(cluster.boxes)}
        inner = {each.id: len(number) + n for n, each in enumerate(cluster.clusters)}
        depth = len(self._homes[cluster.boxes[0].id]) if cluster.boxes else 0
        for edge in edges:
            home = self._homes[edge.tail]
            tail = number[edge.tail] if len(home) == depth else inner[home[depth]]
            yield LayoutEdge(tail, number[edge.head], (edge.at_tail, edge.what))


def _framed(cluster: Cluster, inside: _Frame) -> _Frame:
    """The layout of a frame around its content, with a margin and the title above."""
    title = width_of(cluster.title, TITLE_SIZE) + 2 * MARGIN
    frame = _Frame(max(inside.width + 2 * MARGIN, title), inside.height + 2 * MARGIN + TITLE)
    frame.take(inside, (frame.width - inside.width) / 2, MARGIN + TITLE)
    frame.clusters[cluster.id] = Rectangle(0.0, 0.0, frame.width, frame.height)
    return frame
