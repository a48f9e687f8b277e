"""How views are cut: by the bytes of exchanges, of moving whole dimensions, and of sums of what devices hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from attrs import evolve, frozen

from shape_inference import Shape

from ...axis import count
from ...factors import Factor, FactorKind, ShardingRule
from ...sharding import Sharding
from ..parts.assignments import Assignment, Site
from ..parts.choices import TOO_MUCH, Request, partial_axes
from ..parts.frame import Frame
from ..parts.layouts import local_dims
from ..parts.masks import neutral
from .exchange import Exchange, of_own, of_result
from .views import View, dims_of


@frozen(eq=False)
class Way:
    """A way to cut a view: the dimensions of which devices give sums of what they hold, and the axes of all."""

    view: View
    site: Site
    summed: frozenset[int]
    assignment: Assignment

    def exchange(self, dim: int) -> Exchange | None:
        """What devices want of each other along a dimension; none for one that is not cut, or not planned."""
        axes = self.base(0).dim(dim).axes
        if not axes or not self.view.moves(dim):
            return None
        bases = self.view.bases if dim == self.view.joint else self.view.bases[:1]
        made = of_own if dim in self.summed else of_result
        return made(self.view.lines[dim], tuple(dims_of(each)[dim] for each in bases), count(axes))

    def base(self, number: int) -> Sharding:
        """The sharding in which a base is taken."""
        return self.site.sharding(self.assignment, self.site.rule.operands[number])

    @property
    def result(self) -> Sharding:
        """The sharding in which the view is made; along unreduced axes as parts of a sum."""
        given = self.site.sharding(self.assignment, self.site.rule.results[0])
        return evolve(given, unreduced=partial_axes(self.site, self.assignment))

    def is_moved(self, dim: int) -> bool:
        """Whether a dimension is cut whose elements move."""
        return bool(self.base(0).dim(dim).axes) and self.view.moves(dim)

    def order(self) -> list[int]:
        """The moved dimensions: those that become smaller, then those that are cut, then those that grow."""
        moved = [dim for dim in range(len(self.view.lines)) if self.view.moves(dim)]
        return sorted(moved, key=lambda dim: (not self._shrinks(dim), not self.is_moved(dim), dim))

    def _shrinks(self, dim: int) -> bool:
        return not self.is_moved(dim) and self.view.lines[dim].extent < dims_of(self.view.bases[0])[dim]

    def fetched(self) -> int:
        """The bytes that a device sends of elements that others want."""
        several = [list(local_dims(self.base(n), dims_of(base))) for n, base in enumerate(self.view.bases)]
        total = 0
        for dim in self.order():
            size = self.view.lines[dim].extent
            if self.is_moved(dim):
                wanted = self.exchange(dim)
                if wanted is None:
                    return TOO_MUCH
                rows = sum(_row(dims, dim) for dims in several[: 1 if dim == self.view.joint else None])
                total, size = total + wanted.bytes(rows * self._width), wanted.size
            several = several[:1] if dim == self.view.joint else several
            for dims in several:
                dims[dim] = size
        return total

    @property
    def _width(self) -> int:
        shape = self.view.bases[0].shape
        assert isinstance(shape, Shape)
        return max(1, shape.dtype.bits // 8)


def _row(dims: list[int], dim: int) -> int:
    return math.prod(extent for n, extent in enumerate(dims) if n != dim)


@frozen(eq=False)
class Chosen:
    """The cheapest way, and the bytes that a device sends for it."""

    way: Way
    bytes: int


def chosen(frame: Frame, view: View, shape: Shape, wanted: Sharding | None) -> Chosen:
    """The way that sends the fewest bytes to make a view in the sharding that is wanted."""
    best: Chosen | None = None
    for summed, moves in _variants(view, shape):
        site = _site(frame, view, summed, moves=moves)
        request = _request(site, view, summed, shape, wanted)
        assignment = request.best()
        found = Chosen(Way(view, site, summed, assignment), request.bytes(assignment))
        best = found if best is None or found.bytes < best.bytes else best
    assert best is not None
    unmade = sum(each.price for each in best.way.view.bases)
    return evolve(best, bytes=best.bytes + unmade)


def _variants(view: View, shape: Shape) -> Iterator[tuple[frozenset[int], bool]]:
    """Sets of dimensions of which devices give sums of what they hold, and whether elements are exchanged."""
    yield frozenset(), True
    yield frozenset(), False
    if neutral("add", shape.dtype) is None or len(view.bases) > 1:
        return
    small = [dim for dim in range(shape.rank) if view.moves(dim) and _is_small(view, dim)]
    for number in range(1, len(small) + 1):
        for dims in itertools.combinations(small, number):
            yield frozenset(dims), True


def _is_small(view: View, dim: int) -> bool:
    line = view.lines[dim]
    return not line.has_padding and 0 < 2 * line.extent <= dims_of(view.bases[0])[dim]


def _site(frame: Frame, view: View, summed: frozenset[int], *, moves: bool) -> Site:
    factors: list[Factor] = []
    given, made = [], []
    for dim, line in enumerate(view.lines):
        kind: FactorKind = "permutation" if view.moves(dim) else "pass_through"
        made.append((len(factors),))
        if dim in summed:
            factors.append(Factor(line.extent, "need_replication"))
            kind = "reduction"
        given.append((len(factors),))
        factors.append(Factor(dims_of(view.bases[0])[dim] if dim in summed else line.extent, kind))
    rule = ShardingRule(tuple(factors), (tuple(given),) * len(view.bases), (tuple(made),))
    kinds = ("pass_through", "permutation", "reduction") if moves else ("pass_through",)
    return Site(frame.mesh, rule, frozenset(n for n, each in enumerate(factors) if each.kind in kinds))


def _request(site: Site, view: View, summed: frozenset[int], shape: Shape, wanted: Sharding | None) -> Request:
    def fetched(assignment: Assignment) -> int:
        return Way(view, site, summed, assignment).fetched()

    shapes = tuple(each.shape if isinstance(each.shape, Shape) and each.maker is None else None for each in view.bases)
    at_hand = tuple(() if each.maker is not None else each.shardings for each in view.bases)
    return Request(site, shapes, at_hand, (shape,), (wanted,), fetched)
