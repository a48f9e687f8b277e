"""The factors that two lists of extents of one product have in common, as a reshape needs them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from attrs import define

Common = tuple[int, "int | None", "int | None"]
"""A factor: its size, the number of the source's dimension, the number of the target's; None where it is of one."""


@define
class _Side:
    """The dimensions of one side, and how much of them has been split into factors."""

    dims: Sequence[int]
    dim: int = 0
    rest: int = 1
    taken: int = 1

    def at_unit(self) -> bool:
        """Whether the next dimension, of which nothing is taken yet, has extent 1."""
        return self.rest == 1 and self.dim < len(self.dims) and self.dims[self.dim] == 1

    def enter(self) -> None:
        """Begin the next dimension where the last is done."""
        if self.rest == 1 and self.dim < len(self.dims):
            self.rest = self.dims[self.dim]

    def take(self, size: int) -> None:
        self.rest //= size
        self.taken *= size
        if self.rest == 1:
            self.dim += 1

    def catching_up(self, other: _Side, common: int) -> int:
        """The factor of this side, which is behind: the one by which it meets the other, if there is one."""
        if other.taken % self.taken == 0 and self.rest % (other.taken // self.taken) == 0:
            return other.taken // self.taken
        return self.rest // common if self.rest > common else self.rest


def common_factors(source: Sequence[int], target: Sequence[int]) -> Iterator[Common]:
    """The factors of two lists of extents, none 0, from the outermost.

    While the products of what is split so far are equal, the greatest common divisor of what remains of both dimensions
    is a factor of both. Where that is 1, each side has factors of its own until the products are equal again.

    >>> list(common_factors([8, 4], [2, 16]))
    [(2, 0, 0), (4, 0, 1), (4, 1, 1)]
    >>> list(common_factors([2, 3], [3, 2]))
    [(2, 0, None), (3, None, 0), (3, 1, None), (2, None, 1)]

    Source: Shardy, op sharding rule of reshape.
    """
    one, other = _Side(source), _Side(target)
    while one.dim < len(source) or other.dim < len(target):
        if one.at_unit():
            yield 1, one.dim, None
            one.dim += 1
        elif other.at_unit():
            yield 1, None, other.dim
            other.dim += 1
        else:
            yield from _next(one, other)


def _next(one: _Side, other: _Side) -> Iterator[Common]:
    one.enter()
    other.enter()
    common = math.gcd(one.rest, other.rest)
    if one.taken == other.taken and common > 1:
        yield common, one.dim, other.dim
        one.take(common)
        other.take(common)
        return
    both = one.taken == other.taken
    is_behind = one.taken < other.taken
    if both or is_behind:
        size = one.rest if both else one.catching_up(other, common)
        yield size, one.dim, None
        one.take(size)
    if both or not is_behind:
        size = other.rest if both else other.catching_up(one, common)
        yield size, None, other.dim
        other.take(size)
