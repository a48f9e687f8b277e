"""Improvement of coordinates: blocks of aligned nodes move towards the mean of their neighbours where there is room."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from attrs import define, field

from .alignment import Layered

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
