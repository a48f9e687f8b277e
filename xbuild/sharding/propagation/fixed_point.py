"""The fixed point: every node propagates until none changes an array, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...process import deadline
from .flow import Flow, identity
from .nodes import Direction, Node
from .prefixes import Axes, is_beginning
from .stating import begin, priorities
from .strategies import Strategy, aggressive, basic
from .tensors import Step, Tensor, Turn, View, dims_of, view
from .values import of_one

STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "aggressive": (aggressive,),
    "basic": (basic,),
    "basic_then_aggressive": (basic, aggressive),
}
LEVELS = range(5)


class FixedPoint:
    """Propagation over the nodes of a flow, by an order of turns: priorities of the user, levels, strategies."""

    def __init__(self, flow: Flow, strategy: str = "aggressive", levels: Iterable[int] = LEVELS) -> None:
        self._flow, self._strategies, self._levels = flow, STRATEGIES[strategy], tuple(levels)
        self._nodes = flow.nodes
        self._results = [_result_node(flow, number) for number in range(len(flow.results))]
        self._making: dict[Tensor, list[Node]] = {}
        self._taking: dict[Tensor, list[Node]] = {}
        for node in self._nodes:
            for place, tensor in enumerate(node.tensors):
                table = self._taking if place < node.num_operands else self._making
                table.setdefault(tensor, []).append(node)
        self._turn, self._count = Turn(0, 0, ""), 0

    def run(self) -> None:
        """Propagate at all levels for each priority of the user."""
        tensors = [*self._flow.tensors(), *self._flow.results]
        for priority in priorities(tensors):
            for tensor in tensors:
                begin(tensor, priority)
            for level in self._levels:
                for strategy in self._strategies:
                    self._turn = Turn(priority, level, strategy.__name__)
                    self._level(strategy, level)

    def _level(self, strategy: Strategy, level: int) -> None:
        directions = [node.directions(level) for node in self._nodes]
        self._at_results(strategy)
        waiting = [node for node in reversed(self._nodes) if any(each != "none" for each in directions[node.number])]
        listed = [False] * len(self._nodes)
        for node in waiting:
            listed[node.number] = True
        while waiting:
            deadline.ask()
            node = waiting.pop()
            listed[node.number] = False
            for tensor in self._propagate(node, strategy, directions[node.number]):
                is_twice = node.tensors.count(tensor) > 1  # cut along one factor, it gives another factor axes
                for other in self._around(tensor):
                    if (other is not node or is_twice) and not listed[other.number]:
                        listed[other.number] = True
                        waiting.append(other)
        self._at_results(strategy)

    def _at_results(self, strategy: Strategy) -> None:
        for node in self._results:
            self._propagate(node, strategy, node.directions(4))

    def _around(self, tensor: Tensor) -> list[Node]:
        """The nodes of an array: those that make it, then those that take it, the last one first."""
        return self._making.get(tensor, []) + self._taking.get(tensor, [])[::-1]

    def _propagate(self, node: Node, strategy: Strategy, directions: Sequence[Direction]) -> list[Tensor]:
        """Propagate along one node; the arrays that are cut otherwise than before."""
        tensors = node.tensors
        if not any(tensor.is_cut for tensor in tensors):
            return []
        seen = (strategy, directions, *[tensor.version for tensor in tensors])
        if seen == node.seen:
            return []
        views = self._views(node)
        strategy(node, views, directions)
        changed = []
        for number, (tensor, own, dims) in enumerate(zip(tensors, views, node.maps, strict=True)):
            axes = dims_of(own, dims, node.rule.factors)
            if axes != tensor.axes and not tensor.is_fixed:
                changed.append((number, tensor, axes))
        self._apply(node, changed)
        node.seen = (strategy, directions, *[tensor.version for tensor in tensors])
        if any(tensors.count(tensor) > 1 for _, tensor, _ in changed):
            node.seen = ()
        return [tensor for _, tensor, _ in changed]

    @staticmethod
    def _views(node: Node) -> list[View]:
        factors = node.rule.factors
        return [view(tensor, dims, factors) for tensor, dims in zip(node.tensors, node.maps, strict=True)]

    def _apply(self, node: Node, changed: Sequence[tuple[int, Tensor, list[Axes]]]) -> None:
        """Cut arrays anew, and note where each step came from."""
        before = self._views(node) if changed else []
        for number, tensor, axes in changed:
            for dim, (old, new) in enumerate(zip(tensor.axes, axes, strict=True)):
                if old != new:
                    source, source_dim = _source(node, before, number, dim)
                    self._count += 1
                    tensor.steps.append(Step(dim, old, new, node, source, source_dim, self._turn, self._count))
        for _, tensor, axes in changed:
            tensor.axes = axes
            tensor.version += 1


def _source(node: Node, views: Sequence[View], number: int, dim: int) -> tuple[Tensor, int]:
    """The array, and its dimension, that gave a dimension of another its axes: one cut more along a factor of it."""
    best: tuple[int, int, Tensor, int] | None = None
    for factor in node.maps[number][dim]:
        own = views[number][factor].axes
        for other, tensor in enumerate(node.tensors):
            axes = views[other][factor].axes if factor in views[other] and other != number else ()
            if len(axes) and axes != own and is_beginning(own, axes):
                place = next(n for n, numbers in enumerate(node.maps[other]) if factor in numbers)
                size = sum(len(each) for each in tensor.axes)
                if best is None or (len(axes), size) > best[:2]:
                    best = (len(axes), size, tensor, place)
    return (best[2], best[3]) if best is not None else (node.tensors[number], dim)


def _result_node(flow: Flow, number: int) -> Node:
    """The edge from a leaf of the entry's root to the result whose sharding the program states."""
    root, result = flow.module.entry.root, flow.results[number]
    value = of_one(flow.leaves[root][number].found().tensor)
    return Node(identity(result.dims, 1), (value, result), 1, "alike", root, "result")
