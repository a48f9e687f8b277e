"""Coordinates of nodes along their layers: long lines are kept straight, and neighbours as close as widths allow.

The method is that of Brandes and Köpf, Fast and Simple Horizontal Coordinate Assignment (2001): nodes are aligned with
a median neighbour in four ways, from above and below, from the left and right, and stand at the mean of the middle two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from attrs import define, field, frozen

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
