"""The strategy of MLIR's shard dialect: each op once in each direction, with one list of axes for each of its loops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from attrs import define, field

from .flow import Flow
from .nodes import Node
from .prefixes import Axes
from .tensors import Step, Tensor, Turn

Lists: TypeAlias = tuple[Axes, ...]
"""The axes of each dimension of an array."""

Option: TypeAlias = tuple[Axes, ...]
"""The axes of each loop of an op, which are the factors of its rule."""

_INTERFACES = frozenset({"broadcast", "dot", "reduce", "transpose"})
"""Ops that have loops in the dialect, beside elementwise ones."""


@define(eq=False)
class Annotations:
    """What values are annotated with: at their definitions, at uses by a node, and as any use wants them."""

    defined: dict[Tensor, Lists] = field(factory=dict)
    used: dict[tuple[Node, int], Lists] = field(factory=dict)
    wanted: dict[Tensor, Lists] = field(factory=dict)


@define
class Place:
    """An annotated operand or result: its number among the arrays of a node, and whether the node has to obey."""

    number: int
    lists: Lists
    is_must: bool


class Dialect:
    """Propagation backward, then forward; an op whose annotations clash is left as it is.

    Source: MLIR, shard dialect, ShardingInterface and the pass sharding-propagation.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow, self._count = flow, 0
        self._found = Annotations()

    def run(self) -> None:
        tensors = [*self._flow.tensors(), *self._flow.results]
        for tensor in tensors:
            if tensor.stated is not None and not tensor.is_fixed:
                self._found.defined[tensor] = tuple(dim.axes for dim in tensor.stated.dims)
        for level, nodes in enumerate((self._flow.nodes[::-1], self._flow.nodes)):
            for node in nodes:
                if _has_loops(node) and not any(tensor.is_fixed for tensor in node.tensors):
                    self._visit(node, Turn(0, level, "dialect"))
        for tensor in tensors:
            found = self._found.defined.get(tensor) or self._found.wanted.get(tensor)
            tensor.axes = list(found) if found is not None else tensor.axes

    def _visit(self, node: Node, turn: Turn) -> None:
        places = list(self._places(node))
        best = _best(node, places)
        if best is None:
            return
        sources = {factor: place.number for place in reversed(places)
                   for (factor,), axes in zip(node.maps[place.number], place.lists, strict=True) if axes}  # fmt: skip
        for number, tensor in enumerate(node.tensors):
            lists = _implied(node, number, best)
            if tensor not in self._found.defined and tensor not in self._found.wanted:
                self._note(node, number, lists, sources, turn)
            if number >= node.num_operands:
                self._found.defined.setdefault(tensor, lists)
            else:
                self._found.used[node, number] = lists
                self._found.wanted.setdefault(tensor, lists)

    def _places(self, node: Node) -> Iterator[Place]:
        """The annotations that a node sees, results first."""
        found = self._found
        for number in range(node.num_operands, len(node.tensors)):
            tensor = node.tensors[number]
            if tensor in found.defined:
                yield Place(number, found.defined[tensor], True)
            elif tensor in found.wanted:
                yield Place(number, found.wanted[tensor], False)
        for number, tensor in enumerate(node.tensors[: node.num_operands]):
            if (node, number) in found.used:
                yield Place(number, found.used[node, number], True)
            elif tensor in found.defined:
                yield Place(number, found.defined[tensor], False)

    def _note(self, node: Node, number: int, lists: Lists, sources: dict[int, int], turn: Turn) -> None:
        """Note for each dimension of an array that is cut now where this came from."""
        for dim, ((factor,), axes) in enumerate(zip(node.maps[number], lists, strict=True)):
            if axes and factor in sources:
                source = sources[factor]
                place = next(n for n, numbers in enumerate(node.maps[source]) if factor in numbers)
                self._count += 1
                tensor = node.tensors[number]
                tensor.steps.append(Step(dim, (), axes, node, node.tensors[source], place, turn, self._count))


def _has_loops(node: Node) -> bool:
    """Whether the dialect's interface covers an op: each dimension is one loop."""
    is_covered = node.is_elementwise or node.what in _INTERFACES
    return is_covered and all(len(numbers) == 1 for dims in node.maps for numbers in dims)


def _best(node: Node, places: Sequence[Place]) -> Option | None:
    """The option that reshards nothing, else only what was not annotated for this op, else the first there is.

    Annotations that were not made for this op are tried with and without: those of results first, then of operands.
    """
    best: tuple[int, Option] | None = None
    for with_results, with_operands in itertools.product((True, False), repeat=2):
        chosen = [
            place
            for place in places
            if place.is_must or (with_operands if place.number < node.num_operands else with_results)
        ]
        option = _option(node, chosen) if chosen else None
        if option is None:
            continue
        moved = [place for place in places if _implied(node, place.number, option) != place.lists]
        rank = 3 if any(place.is_must for place in moved) else 2 if moved else 1
        if best is None or rank < best[0]:
            best = (rank, option)
    return best[1] if best is not None else None


def _option(node: Node, places: Sequence[Place]) -> Option | None:
    """The lists of the loops by these annotations, results first; None where they clash."""
    loops: list[Axes] = [()] * len(node.rule.factors)
    for place in sorted(places, key=lambda each: each.number < node.num_operands):
        for (factor,), axes in zip(node.maps[place.number], place.lists, strict=True):
            others = [axis for other, own in enumerate(loops) if other != factor for axis in own]
            if (loops[factor] and loops[factor] != axes) or any(a.overlaps(b) for a in axes for b in others):
                return None
            loops[factor] = axes
    return tuple(loops)


def _implied(node: Node, number: int, option: Option) -> Lists:
    """The sharding of an array by the lists of the loops."""
    return tuple(option[factor] for (factor,) in node.maps[number])
