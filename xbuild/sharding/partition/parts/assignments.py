"""Assignments: which axes cut each factor of an instruction, and the shardings of operands and results that follow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import frozen

from ....properties.mesh import Mesh
from ...axis import Axis, count, merged
from ...factors import FactorMap, ShardingRule
from ...sharding import Sharding, cut

Axes: TypeAlias = tuple[Axis, ...]
Assignment: TypeAlias = tuple[Axes, ...]
"""For each factor the axes that cut it."""


@frozen
class Site:
    """A rule, the factors that may be cut, the mesh, and whether factors are cut into equal parts alone."""

    mesh: Mesh
    rule: ShardingRule
    allowed: frozenset[int]
    is_even: bool = False

    @property
    def none(self) -> Assignment:
        """Nothing is cut."""
        return ((),) * len(self.rule.factors)

    def read(self, sharding: Sharding, dims: FactorMap) -> Assignment:
        """How a sharding of an array cuts the factors of its dimensions, as far as they can be cut so."""
        found = list(self.none)
        for number, factors in enumerate(dims):
            for factor, axes in self._split(sharding.dim(number).axes, factors):
                found[factor] = axes
        return tuple(found)

    def _split(self, axes: Axes, factors: Sequence[int]) -> Iterator[tuple[int, Axes]]:
        """The axes of a dimension, shared out over its factors from the outermost."""
        wide = [factor for factor in factors if self.rule.factors[factor].size > 1] or list(factors)
        if len(wide) == 1:
            yield wide[0], axes if wide[0] in self.allowed else ()
            return
        rest = list(axes)
        for factor in wide:
            taken, rest = _taken(rest, self.rule.factors[factor].size)
            if factor not in self.allowed:
                return
            yield factor, taken
            if count(taken) < self.rule.factors[factor].size:
                return

    def moved(self, sharding: Sharding, dims: FactorMap) -> Assignment:
        """The axes of dimensions that must be whole, moved to the factor of the array with the most room for them."""
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
        """The size of the parts of a factor where an axis can cut them into equal ones; 0 where it cannot."""
        parts = count(found[factor])
        size = self.rule.factors[factor].size
        is_free = factor in self.allowed and size % (parts * axis.size) == 0
        return size // parts if is_free and self.rule.factors[factor].kind == "pass_through" else 0

    def sharding(self, assignment: Assignment, dims: FactorMap) -> Sharding:
        """The sharding of an array by the axes of its factors."""
        return cut(self.mesh, [merged(axis for factor in each for axis in assignment[factor]) for each in dims])

    def merged(self, parts: Iterable[Assignment]) -> Assignment:
        """An assignment of all: earlier ones decide, later ones add factors that are not cut, by axes that are free."""
        found = list(self.none)
        for part in parts:
            for factor, axes in enumerate(part):
                if axes and not found[factor] and (free := _free(axes, found)):
                    found[factor] = free
        return self.valid(tuple(found))

    def valid(self, assignment: Assignment) -> Assignment:
        """The assignment without what no sharding of an operand or result can say."""
        found = list(assignment)
        if self.is_even:
            found = [axes if self.rule.factors[n].size % count(axes) == 0 else () for n, axes in enumerate(found)]
        maps = [each for dims in (*self.rule.operands, *self.rule.results) for each in dims if len(each) > 1]
        is_changed = True
        while is_changed:
            is_changed = sum(self._cleared(found, factors) for factors in maps) > 0
        return tuple(found)

    def _cleared(self, found: list[Axes], factors: Sequence[int]) -> bool:
        """Clear the factors of a dimension that lie inside one that is not cut into single elements."""
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


def _taken(axes: Sequence[Axis], size: int) -> tuple[Axes, list[Axis]]:
    """The outermost axes that divide a size together, the last perhaps in part; and the rest."""
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


def _free(axes: Axes, found: Sequence[Axes]) -> Axes:
    """The outermost axes that no factor has."""
    used = [axis for each in found for axis in each]
    kept: list[Axis] = []
    for axis in axes:
        if any(axis.overlaps(other) or not axis.fits(other) for other in used):
            break
        kept.append(axis)
    return tuple(kept)
