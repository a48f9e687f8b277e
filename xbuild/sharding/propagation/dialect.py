"""The propagation strategy of MLIR's shard dialect: each op once in each direction, with axes for each of its loops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from attrs import define, field

from .flow import Flow, FlowNode
from .tensors import Axes, ShardingStep, Tensor, Turn

Lists: TypeAlias = tuple[Axes, ...]
"""The axes of each dimension of an array."""

Option: TypeAlias = tuple[Axes, ...]
"""The axes of each loop of an op, which are the factors of its rule."""

_INTERFACES = frozenset({"broadcast", "dot", "reduce", "transpose"})
"""Ops with loops in the dialect, besides elementwise ones."""


@define(eq=False)
class Annotations:
    """The annotations of values: at their definitions, at their uses by a node, and as any use needs them."""

    defined: dict[Tensor, Lists] = field(factory=dict)
    used: dict[tuple[FlowNode, int], Lists] = field(factory=dict)
    needed: dict[Tensor, Lists] = field(factory=dict)


@define
class AnnotatedArray:
    """An annotated operand or result: its number among a node's arrays, and whether the annotation is binding."""

    number: int
    lists: Lists
    is_binding: bool


class Dialect:
    """Propagates backward, then forward; an op whose annotations conflict is left as it is.

    Source: MLIR, shard dialect, ShardingInterface and the pass sharding-propagation.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow, self._count = flow, 0
        self._annotations = Annotations()

    def run(self) -> None:
        tensors = [*self._flow.tensors(), *self._flow.results]
        for tensor in tensors:
            if tensor.stated is not None and not tensor.is_fixed:
                self._annotations.defined[tensor] = tuple(dim.axes for dim in tensor.stated.dims)
        for level, nodes in enumerate((self._flow.nodes[::-1], self._flow.nodes)):
            for node in nodes:
                if _has_loops(node) and not any(tensor.is_fixed for tensor in node.tensors):
                    self._visit(node, Turn(0, level, "dialect"))
        for tensor in tensors:
            found = self._annotations.defined.get(tensor) or self._annotations.needed.get(tensor)
            tensor.axes = list(found) if found is not None else tensor.axes

    def _visit(self, node: FlowNode, turn: Turn) -> None:
        places = list(self._annotated_arrays(node))
        best = _choose_option(node, places)
        if best is None:
            return
        sources = {factor: place.number for place in reversed(places)
                   for (factor,), axes in zip(node.maps[place.number], place.lists, strict=True) if axes}  # fmt: skip
        for number, tensor in enumerate(node.tensors):
            lists = _lists_by_option(node, number, best)
            if tensor not in self._annotations.defined and tensor not in self._annotations.needed:
                self._record_steps(node, number, lists, sources, turn)
            if number >= node.num_operands:
                self._annotations.defined.setdefault(tensor, lists)
            else:
                self._annotations.used[node, number] = lists
                self._annotations.needed.setdefault(tensor, lists)

    def _annotated_arrays(self, node: FlowNode) -> Iterator[AnnotatedArray]:
        """The annotations of a node's arrays, results first."""
        annotations = self._annotations
        for number in range(node.num_operands, len(node.tensors)):
            tensor = node.tensors[number]
            if tensor in annotations.defined:
                yield AnnotatedArray(number, annotations.defined[tensor], True)
            elif tensor in annotations.needed:
                yield AnnotatedArray(number, annotations.needed[tensor], False)
        for number, tensor in enumerate(node.tensors[: node.num_operands]):
            if (node, number) in annotations.used:
                yield AnnotatedArray(number, annotations.used[node, number], True)
            elif tensor in annotations.defined:
                yield AnnotatedArray(number, annotations.defined[tensor], False)

    def _record_steps(self, node: FlowNode, number: int, lists: Lists, sources: dict[int, int], turn: Turn) -> None:
        """Record where the axes of each newly sharded dimension of an array came from."""
        for dim, ((factor,), axes) in enumerate(zip(node.maps[number], lists, strict=True)):
            if axes and factor in sources:
                source = sources[factor]
                place = next(n for n, numbers in enumerate(node.maps[source]) if factor in numbers)
                self._count += 1
                tensor = node.tensors[number]
                tensor.steps.append(ShardingStep(dim, (), axes, node, node.tensors[source], place, turn, self._count))


def _has_loops(node: FlowNode) -> bool:
    """Whether the dialect's interface covers an op: each dimension is one loop."""
    is_covered = node.is_elementwise or node.what in _INTERFACES
    return is_covered and all(len(numbers) == 1 for dims in node.maps for numbers in dims)


def _choose_option(node: FlowNode, places: Sequence[AnnotatedArray]) -> Option | None:
    """The option that reshards nothing, else only annotations that are not binding, else the first one.

    Annotations that are not binding are tried with and without: those of results first, then those of operands.
    """
    best: tuple[int, Option] | None = None
    for with_results, with_operands in itertools.product((True, False), repeat=2):
        chosen = [
            place
            for place in places
            if place.is_binding or (with_operands if place.number < node.num_operands else with_results)
        ]
        option = _make_option(node, chosen) if chosen else None
        if option is None:
            continue
        moved = [place for place in places if _lists_by_option(node, place.number, option) != place.lists]
        rank = 3 if any(place.is_binding for place in moved) else 2 if moved else 1
        if best is None or rank < best[0]:
            best = (rank, option)
    return best[1] if best is not None else None


def _make_option(node: FlowNode, places: Sequence[AnnotatedArray]) -> Option | None:
    """The axes of the loops by these annotations, results first; None if they conflict."""
    loops: list[Axes] = [()] * len(node.rule.factors)
    for place in sorted(places, key=lambda each: each.number < node.num_operands):
        for (factor,), axes in zip(node.maps[place.number], place.lists, strict=True):
            others = [axis for other, own in enumerate(loops) if other != factor for axis in own]
            if (loops[factor] and loops[factor] != axes) or any(a.overlaps(b) for a in axes for b in others):
                return None
            loops[factor] = axes
    return tuple(loops)


def _lists_by_option(node: FlowNode, number: int, option: Option) -> Lists:
    """The axes of an array's dimensions by those of the loops."""
    return tuple(option[factor] for (factor,) in node.maps[number])
