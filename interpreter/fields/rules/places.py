"""The order of residues: numbers that the field shows to be small have their true position, all others a random one.

Comparisons, maxima and sorts go by it. The place is a function of the residues alone, so that equal values are ordered
alike wherever they were computed; the place of -x is minus that of x.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar

import numpy as np
from attrs import frozen

from xbuild.core.attributes import Array
from xbuild.core.context import assigned

from . import residues
from .laws import by_signs, chosen, is_negative
from .primes import current
from .residues import Word

_SHIFTS = (0, 8, 24)
"""Small numbers n / 2^k, for these k, are recognized."""
_SCALES = [(shift, residues.of_integers(np.asarray(1 << shift))) for shift in _SHIFTS]


@frozen(eq=False)
class Draw:
    """One evaluation: the seed of the random functions, and the numbers that the programs state, by their words."""

    seed: int
    words: Array
    reals: Array


_NOTHING = Draw(0, np.zeros(0, np.uint64), np.zeros(0))
_current: ContextVar[Draw] = ContextVar("xbuild_draw", default=_NOTHING)


def drawing(seed: int, literals: Iterable[Array]) -> AbstractContextManager[Draw]:
    """Inside, random functions have this seed, and the numbers of these literals stand at their places."""
    flat = [np.asarray(each).reshape(-1) for each in literals]
    words = np.concatenate([residues.of_reals(each) for each in flat] or [_NOTHING.words])
    reals = np.concatenate([each.astype(np.float64) for each in flat] or [_NOTHING.reals])
    words, reals = np.concatenate([words, residues.negate(words)]), np.concatenate([reals, -reals])
    known, first = np.unique(words, return_index=True)
    return assigned(_current, Draw(seed, known, reals[first]))


def mixed(words: Array, salt: int = 0) -> Array:
    """Words scrambled by the seed of the draw and a salt (the finalizer of SplitMix64, twice)."""
    key = (_current.get().seed * 0x9E3779B97F4A7C15 + salt * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64
    found = np.asarray(words, np.uint64) ^ np.uint64(key)
    with np.errstate(over="ignore"):  # products of NumPy scalars warn where those of arrays wrap
        return _scrambled(_scrambled(found))


def _scrambled(words: Array) -> Array:
    found = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scrambled: Array = found ^ (found >> np.uint64(31))
    return scrambled


def known(words: Word) -> Array:
    """The number that each word is known to be, and NaN for the others."""
    found = np.where(residues.is_special(words), residues.as_reals(words), np.nan)
    special = residues.is_special(words)
    for shift, scale in reversed(_SCALES):
        whole = _whole(residues.multiply(words, scale) if shift else words)
        found = np.where(np.isnan(whole) | special, found, whole / (1 << shift))
    table = _current.get()
    if table.words.size:
        at = np.minimum(np.searchsorted(table.words, words), table.words.size - 1)
        found = np.where(table.words[at] == words, table.reals[at], found)
    return found


def _whole(words: Word) -> Array:
    """The small integer that a word is, else NaN."""
    (one, other), small = current().primes, current().small
    first, second = (half.astype(np.int64) for half in residues.halves(words))
    below = np.where((first == second) & (first < small), first, np.nan)
    negative = (one - first == other - second) & (one - first < small)
    return np.where(negative, first - one, below)


def is_turned(words: Word) -> Array:
    """Whether a word is the second of a pair x, -x, by a fixed choice."""
    if by_signs():
        return is_negative(words)
    (first, second), (one, other) = residues.halves(words), current().primes
    turned: Array = np.where(first == 0, second > other // 2, first > one // 2)
    return turned & ~residues.is_special(words)


def upright(words: Word) -> Word:
    """x for both x and -x, by a fixed choice."""
    return np.where(is_turned(words), residues.negate(words), words)


def places(words: Word) -> Array:
    """The place of each word in the order, as f64; NaN for NaN; in all fields of a tower that of the lowest."""
    words = np.asarray(words)
    return chosen(words.shape, lambda: own_places(words))


def own_places(words: Word) -> Array:
    """The place of each word by its own fields."""
    given = known(words)
    if not np.isnan(given).any():
        return given
    bits = mixed(upright(words), 1)
    exponent = ((bits >> np.uint64(52)) & np.uint64(15)).astype(np.int64) - 8
    magnitude = np.ldexp(1 + (bits & np.uint64((1 << 52) - 1)).astype(np.float64) / 2.0**52, exponent)
    drawn = np.where(is_turned(words), -magnitude, magnitude)
    return np.where(np.isnan(given) & ~(words == residues.UNDEFINED), drawn, given)
