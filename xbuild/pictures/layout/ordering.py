"""The order of nodes within their layers: sweeps by barycentre, then swaps, for few crossings."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence

from attrs import define, field

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
