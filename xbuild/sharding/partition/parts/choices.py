"""The choice among assignments: what the result asks and what operands have, by the bytes that are sent."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from attrs import evolve, frozen

from shape_inference import Shape

from ...axis import count
from ...sharding import Sharding
from .assignments import Assignment, Site
from .layouts import bytes_of, distance, local_dims

MOST_SEEDS = 3
"""Up to how many shardings all orders in which they decide are looked at."""


TOO_MUCH = 1 << 60
"""The bytes of an exchange that is not planned."""


@frozen
class Request:
    """What is known before a choice: operands in the shardings that they are at hand in, and what results are to have.

    A wanted sharding is None where any will do. `fetched` gives the bytes of what devices lack of their neighbours.
    Where results of parts `are_gathered`, all devices take those of all.
    """

    site: Site
    shapes: tuple[Shape | None, ...]
    at_hand: tuple[tuple[Sharding, ...], ...]
    results: tuple[Shape | None, ...]
    wanted: tuple[Sharding | None, ...]
    fetched: Callable[[Assignment], int] | None = None
    are_gathered: bool = False

    def chosen(self) -> Assignment:
        """The assignment that costs the fewest bytes, then leaves each device the least to do."""
        return _remembered(self) if self.fetched is None else self.best()

    def best(self) -> Assignment:
        return min(self.candidates(), key=lambda each: (self.bytes(each), self._work(each)))

    def candidates(self) -> dict[Assignment, None]:
        """The assignments that are looked at, in order."""
        return dict.fromkeys(self._candidates())

    def _candidates(self) -> Iterable[Assignment]:
        site, rule = self.site, self.site.rule
        asked = [
            site.read(each, dims) for each, dims in zip(self.wanted, rule.results, strict=True) if each is not None
        ]
        had = [site.read(each, dims) for some, dims in zip(self.at_hand, rule.operands, strict=True) for each in some]
        seeds = [each for each in dict.fromkeys((*asked, *had)) if any(each)]
        for order in _orders(seeds):
            yield site.merged(order)
        for each in seeds:
            yield site.merged([each])
            yield site.merged([self._without_reductions(each)])
        for dims, some in zip(rule.operands, self.at_hand, strict=True):
            for sharding in some:
                yield site.merged([site.moved(sharding, dims)])
        yield site.none

    def _without_reductions(self, assignment: Assignment) -> Assignment:
        pairs = zip(assignment, self.site.rule.factors, strict=True)
        return tuple(() if factor.kind == "reduction" else axes for axes, factor in pairs)

    def bytes(self, assignment: Assignment) -> int:
        """The bytes that a device sends: for the operands, to reduce partial results, and for the results."""
        rule, total = self.site.rule, 0
        for shape, dims, some in zip(self.shapes, rule.operands, self.at_hand, strict=True):
            if shape is not None:
                needed = self.site.sharding(assignment, dims)
                total += min(distance(each, needed, shape) for each in some)
        total += self.fetched(assignment) if self.fetched is not None else 0
        unreduced = self.unreduced(assignment)
        for result, dims, wanted in zip(self.results, rule.results, self.wanted, strict=True):
            if result is not None:
                given = self.site.sharding(assignment, dims)
                if self.are_gathered:
                    total += (count(unreduced) - 1) * bytes_of(result.dtype[local_dims(given, result.dims)])
                start = given if self.are_gathered else evolve(given, unreduced=unreduced)
                total += distance(start, given if wanted is None else wanted, result)
        return total

    def unreduced(self, assignment: Assignment) -> tuple:  # type: ignore[type-arg]
        """The axes along which devices hold partial results."""
        return partial_axes(self.site, assignment)

    def _work(self, assignment: Assignment) -> float:
        pairs = zip(assignment, self.site.rule.factors, strict=True)
        return math.prod(math.ceil(factor.size / count(axes)) for axes, factor in pairs)


@functools.lru_cache(maxsize=1 << 12)
def _remembered(request: Request) -> Assignment:
    """The choice for a request, found once."""
    return request.best()


def partial_axes(site: Site, assignment: Assignment) -> tuple:  # type: ignore[type-arg]
    """The axes of cut reduction factors."""
    pairs = zip(assignment, site.rule.factors, strict=True)
    return tuple(sorted(axis for axes, factor in pairs if factor.kind == "reduction" for axis in axes))


def _orders(seeds: Sequence[Assignment]) -> Iterable[Sequence[Assignment]]:
    if len(seeds) <= MOST_SEEDS:
        return itertools.permutations(seeds)
    return seeds, seeds[::-1]
