"""Chooses which axes split each factor of an instruction: the candidates, the choice by bytes, the alternatives.

Sections:

    ChoiceRequest: the choice among assignments, by the bytes that are sent
    SplitOptions: which assignments there are, and the shardings of operands and results that follow
    Alternatives: other ways in which an op could have been split, for explanations
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from shape_inference import Shape

from ...core.report_text import join_words
from ...properties.mesh import Mesh
from ..rules import FactorMap, ShardingRule
from ..sharding import Axis, Sharding, count, merge_parts, shard_dims
from .frame import count_array_bytes, count_resharding_bytes, local_dims
from .reasons import Alternative, Chosen, Others, describe, name_axes, name_of

Axes: TypeAlias = tuple[Axis, ...]
Assignment: TypeAlias = tuple[Axes, ...]
"""For each factor, the axes that split it."""

# ----------------------------------------------------------------------------
# ChoiceRequest: the choice among assignments, by the bytes that are sent

MOST_SEEDS = 3
"""Up to this number of shardings, all orders of merging them are considered."""

TOO_MUCH = 1 << 60
"""The cost of an exchange that is not planned."""


@frozen
class ChoiceRequest:
    """What is known before the choice: the shardings in which operands are available, and those stated for results.

    A stated sharding is None if any will do. `count_fetched` counts the bytes of elements that devices fetch from each
    other. If results of parts `are_gathered`, all devices gather those of all.
    """

    options: SplitOptions
    shapes: tuple[Shape | None, ...]
    available: tuple[tuple[Sharding, ...], ...]
    results: tuple[Shape | None, ...]
    stated: tuple[Sharding | None, ...]
    count_fetched: Callable[[Assignment], int] | None = None
    are_gathered: bool = False

    def choose(self) -> Assignment:
        """The assignment for which a device sends the fewest bytes; among equals, the one with the least work."""
        return _choose_once(self) if self.count_fetched is None else self.choose_anew()

    def choose_anew(self) -> Assignment:
        """The choice, without the memory of earlier ones."""
        return min(
            self.candidates(), key=lambda assignment: (self.count_bytes(assignment), self._count_work(assignment))
        )

    def candidates(self) -> dict[Assignment, None]:
        """The assignments that are considered, in order."""
        return dict.fromkeys(self._candidates())

    def _candidates(self) -> Iterable[Assignment]:
        options, rule = self.options, self.options.rule
        needed = [
            options.read(sharding, dims)
            for sharding, dims in zip(self.stated, rule.results, strict=True)
            if sharding is not None
        ]
        had = [
            options.read(sharding, dims)
            for shardings, dims in zip(self.available, rule.operands, strict=True)
            for sharding in shardings
        ]
        seeds = [seed for seed in dict.fromkeys((*needed, *had)) if any(seed)]
        for order in _orders(seeds):
            yield options.merge(order)
        for seed in seeds:
            yield options.merge([seed])
            yield options.merge([self._without_reductions(seed)])
        for dims, shardings in zip(rule.operands, self.available, strict=True):
            for sharding in shardings:
                yield options.merge([options.move_axes(sharding, dims)])
        yield options.unsplit

    def _without_reductions(self, assignment: Assignment) -> Assignment:
        pairs = zip(assignment, self.options.rule.factors, strict=True)
        return tuple(() if factor.kind == "reduction" else axes for axes, factor in pairs)

    def count_bytes(self, assignment: Assignment) -> int:
        """The bytes that a device sends: to reshard operands, to combine partial results, and to reshard results."""
        rule, total = self.options.rule, 0
        for shape, dims, shardings in zip(self.shapes, rule.operands, self.available, strict=True):
            if shape is not None:
                needed = self.options.sharding(assignment, dims)
                total += min(count_resharding_bytes(sharding, needed, shape) for sharding in shardings)
        total += self.count_fetched(assignment) if self.count_fetched is not None else 0
        unreduced = self.unreduced(assignment)
        for result, dims, stated in zip(self.results, rule.results, self.stated, strict=True):
            if result is not None:
                made = self.options.sharding(assignment, dims)
                if self.are_gathered:
                    total += (count(unreduced) - 1) * count_array_bytes(result.dtype[local_dims(made, result.dims)])
                start = made if self.are_gathered else evolve(made, unreduced=unreduced)
                total += count_resharding_bytes(start, made if stated is None else stated, result)
        return total

    def unreduced(self, assignment: Assignment) -> tuple:  # type: ignore[type-arg]
        """The axes along which devices hold partial results."""
        return partial_axes(self.options, assignment)

    def _count_work(self, assignment: Assignment) -> float:
        """The elements of all factors that a device goes through."""
        pairs = zip(assignment, self.options.rule.factors, strict=True)
        return math.prod(math.ceil(factor.size / count(axes)) for axes, factor in pairs)


@functools.lru_cache(maxsize=1 << 12)
def _choose_once(request: ChoiceRequest) -> Assignment:
    """The choice for a request, made once."""
    return request.choose_anew()


def partial_axes(options: SplitOptions, assignment: Assignment) -> tuple:  # type: ignore[type-arg]
    """The axes that split reduction factors."""
    pairs = zip(assignment, options.rule.factors, strict=True)
    return tuple(sorted(axis for axes, factor in pairs if factor.kind == "reduction" for axis in axes))


def _orders(seeds: Sequence[Assignment]) -> Iterable[Sequence[Assignment]]:
    if len(seeds) <= MOST_SEEDS:
        return itertools.permutations(seeds)
    return seeds, seeds[::-1]


# ----------------------------------------------------------------------------
# SplitOptions: which assignments there are, and the shardings of operands and results that follow


@frozen
class SplitOptions:
    """How an instruction may be split: by which factors of its rule, and whether only into equal parts."""

    mesh: Mesh
    rule: ShardingRule
    allowed: frozenset[int]
    is_even: bool = False

    @property
    def unsplit(self) -> Assignment:
        """The assignment that splits nothing."""
        return ((),) * len(self.rule.factors)

    def read(self, sharding: Sharding, dims: FactorMap) -> Assignment:
        """How a sharding of an array splits the factors of its dimensions, as far as that is allowed."""
        found = list(self.unsplit)
        for number, factors in enumerate(dims):
            for factor, axes in self._share_out(sharding.dim(number).axes, factors):
                found[factor] = axes
        return tuple(found)

    def _share_out(self, axes: Axes, factors: Sequence[int]) -> Iterator[tuple[int, Axes]]:
        """The axes of a dimension, distributed over its factors from the outermost."""
        wide = [factor for factor in factors if self.rule.factors[factor].size > 1] or list(factors)
        if len(wide) == 1:
            yield wide[0], axes if wide[0] in self.allowed else ()
            return
        rest = list(axes)
        for factor in wide:
            taken, rest = _take(rest, self.rule.factors[factor].size)
            if factor not in self.allowed:
                return
            yield factor, taken
            if count(taken) < self.rule.factors[factor].size:
                return

    def move_axes(self, sharding: Sharding, dims: FactorMap) -> Assignment:
        """The axes of dimensions that must not be split, moved to the factor of the array with the most room."""
        found = list(self.read(sharding, dims))
        for number, factors in enumerate(dims):
            if not any(factor in self.allowed for factor in factors):
                for axis in sharding.dim(number).axes:
                    rooms = [(self._room(found, factor, axis), factor) for each in dims for factor in each]
                    room, best = max(rooms, default=(0, 0))
                    if room:
                        found[best] = (*found[best], axis)
        return tuple(found)

    def _room(self, found: Sequence[Axes], factor: int, axis: Axis) -> int:
        """The size of a factor's parts if an axis can split them equally, else 0."""
        parts = count(found[factor])
        size = self.rule.factors[factor].size
        is_free = factor in self.allowed and size % (parts * axis.size) == 0
        return size // parts if is_free and self.rule.factors[factor].kind == "pass_through" else 0

    def sharding(self, assignment: Assignment, dims: FactorMap) -> Sharding:
        """The sharding of an array by the axes of its factors."""
        return shard_dims(
            self.mesh, [merge_parts(axis for factor in each for axis in assignment[factor]) for each in dims]
        )

    def merge(self, parts: Iterable[Assignment]) -> Assignment:
        """One assignment of several: earlier ones decide, later ones split further factors by axes that are free."""
        found = list(self.unsplit)
        for part in parts:
            for factor, axes in enumerate(part):
                if axes and not found[factor] and (free := _free_axes(axes, found)):
                    found[factor] = free
        return self.make_valid(tuple(found))

    def make_valid(self, assignment: Assignment) -> Assignment:
        """The assignment without what no sharding of an operand or result can express."""
        found = list(assignment)
        if self.is_even:
            found = [axes if self.rule.factors[n].size % count(axes) == 0 else () for n, axes in enumerate(found)]
        maps = [each for dims in (*self.rule.operands, *self.rule.results) for each in dims if len(each) > 1]
        is_changed = True
        while is_changed:
            is_changed = sum(self._clear(found, factors) for factors in maps) > 0
        return tuple(found)

    def _clear(self, found: list[Axes], factors: Sequence[int]) -> bool:
        """Clear the factors of a dimension inside one that is not split into single elements; whether any were."""
        wide = [factor for factor in factors if self.rule.factors[factor].size > 1]
        if len(wide) < 2:
            return False
        is_changed, is_open = False, True
        for factor in wide:
            size, parts = self.rule.factors[factor].size, count(found[factor])
            if parts > 1 and (not is_open or size % parts):
                found[factor], is_changed, parts = (), True, 1
            is_open = is_open and parts == size
        return is_changed


def _take(axes: Sequence[Axis], size: int) -> tuple[Axes, list[Axis]]:
    """The outermost axes whose product divides a size, the last one perhaps in part; and the other axes."""
    found: list[Axis] = []
    rest = list(axes)
    while rest and size > 1:
        common = math.gcd(size, rest[0].size)
        if common == 1:
            return tuple(found), []
        head, size = rest.pop(0), size // common
        found.append(Axis(head.name, common, head.pre_size))
        if common < head.size:
            rest.insert(0, Axis(head.name, head.size // common, head.pre_size * common))
            if size > 1:
                return tuple(found), []
    return tuple(found), rest


def _free_axes(axes: Axes, found: Sequence[Axes]) -> Axes:
    """The outermost axes that no factor has."""
    used = [axis for factor in found for axis in factor]
    free: list[Axis] = []
    for axis in axes:
        if any(axis.overlaps(other) or not axis.fits(other) for other in used):
            break
        free.append(axis)
    return tuple(free)


# ----------------------------------------------------------------------------
# Alternatives: other ways in which an op could have been split, for explanations


def alternatives_of(request: ChoiceRequest) -> Others:
    """A function that finds the cheapest other way to take an operand, or to produce a result, in a sharding."""

    def find(chosen: Chosen, dims: FactorMap, sharding: Sharding, is_made: bool) -> Alternative | None:
        def has_sharding(assignment: Assignment) -> bool:
            is_equal = request.options.sharding(assignment, dims) == sharding
            return is_equal and not (is_made and request.unreduced(assignment))

        return _find_best(request, chosen, has_sharding)

    return find


def _find_best(request: ChoiceRequest, chosen: Chosen, fits: Callable[[Assignment], bool]) -> Alternative | None:
    others = [each for each in request.candidates() if each != chosen.assignment and fits(each)]
    if not others:
        return None
    best = min(others, key=request.count_bytes)
    if request.count_bytes(best) >= TOO_MUCH:
        return None
    sent, sent_now = request.count_bytes(best), request.count_bytes(chosen.assignment)
    return Alternative(_describe_way(request, chosen, best), sent, sent_now)


def _describe_way(request: ChoiceRequest, chosen: Chosen, other: Assignment) -> str:
    """What another way moves, as the subject of a sentence."""
    acts = [*_describe_operands(request, chosen, other), *_describe_result(request, chosen, other)]
    if not acts and request.count_fetched is not None and request.count_fetched(other):
        acts = ["fetching elements from neighbours"]
    return join_words(acts) or "moving no elements"


def _describe_operands(request: ChoiceRequest, chosen: Chosen, other: Assignment) -> Iterator[str]:
    operands = zip(chosen.op.operands, request.shapes, request.options.rule.operands, request.available, strict=True)
    for operand, shape, dims, shardings in operands:
        needed = request.options.sharding(other, dims)
        if shape is not None and min(count_resharding_bytes(sharding, needed, shape) for sharding in shardings):
            yield f"taking {name_of(operand)} {describe(needed)}"


def _describe_result(request: ChoiceRequest, chosen: Chosen, other: Assignment) -> Iterator[str]:
    """How the result is combined, or produced if it has to be resharded."""
    if axes := request.unreduced(other):
        yield f"combining partial results of {name_of(chosen.op)} along {name_axes(axes, request.options.mesh)}"
        return
    for result, dims, stated in zip(request.results, request.options.rule.results, request.stated, strict=True):
        made = request.options.sharding(other, dims)
        if isinstance(result, Shape) and stated is not None and count_resharding_bytes(made, stated, result):
            yield f"producing {name_of(chosen.op)} {describe(made)}"
            return
