"""Assignment of nodes to layers: each below all nodes that it uses and near to them, no layer wider than a bound."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from attrs import define, field

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
