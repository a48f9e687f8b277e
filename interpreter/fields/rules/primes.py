"""The fields that floats are numbers of: pairs of primes of at most 31 bits, and towers of them for exponents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cached_property
from math import log2

import numpy as np
from attrs import frozen

from xbuild.core.context import assigned


@frozen(slots=False)
class Pair:
    """Two primes; a number is its residues by both."""

    primes: tuple[int, int]

    @cached_property
    def words(self) -> tuple[np.uint64, np.uint64]:
        return np.uint64(self.primes[0]), np.uint64(self.primes[1])

    @property
    def bits(self) -> float:
        """A nonzero polynomial of degree d vanishes at a random point with probability d^2 / 2^bits at most."""
        return log2(self.primes[0]) + log2(self.primes[1])

    @property
    def small(self) -> int:
        """Numbers below it in magnitude are recognized as such."""
        return min(1 << 30, min(self.primes) // 2)


PLAIN = Pair((2**31 - 19, 2**31 - 61))
"""The fields of arithmetic alone."""

TOWER = tuple(
    Pair(pair)
    for pair in (
        (268380839, 268375469),
        (536761679, 536750939),
        (1073523359, 1073501879),
        (2147046719, 2147003759),
    )
)
"""Fields of which each prime is twice that of the level below, and 1: powers of a generator of the squares have
exponents that are numbers of the level below."""

SIGNED = (Pair((1072375919, TOWER[-2].primes[1])), Pair((2144751839, TOWER[-1].primes[1])))
"""Two levels of a tower in which the first prime says which numbers are positive: the squares by it.

-1 is none, and of each other number either it or its negative is one; 2, 3, 5 and 7 are squares by both first primes.
Cube roots are unique by all, since none is 1 more than a multiple of 3.
"""

_current: ContextVar[Pair] = ContextVar("xbuild_primes", default=PLAIN)
current: Callable[[], Pair] = _current.get


def over(pair: Pair) -> AbstractContextManager[Pair]:
    """Inside, floats are numbers of these fields."""
    return assigned(_current, pair)
