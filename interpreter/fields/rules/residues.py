"""Numbers of two prime fields in one 64-bit word: a float of a program is its residues by two primes.

Bits 0 to 30 are the residue by the first prime, bits 31 to 61 that by the second; the two bits above mark what is no
number of a field: an infinity, minus infinity, or NaN. Ops that move elements move these words.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from xbuild.core.attributes import Array

from . import literals
from .primes import current
from .tables import Undecidable

Word: TypeAlias = Any
"""An array of words (uint64)."""

_WIDTH, _MASK = np.uint64(31), np.uint64(2**31 - 1)
_TOP = np.uint64(62)
LIMIT = np.uint64(1 << 62)
INFINITE, NEGATIVE, UNDEFINED = (np.uint64(n << 62) for n in (1, 2, 3))
_REALS = np.array([0.0, np.inf, -np.inf, np.nan])
_MARKS = {np.inf: INFINITE, -np.inf: NEGATIVE}


def packed(first: Array, second: Array) -> Word:
    return first | (second << _WIDTH)


def halves(words: Word) -> tuple[Array, Array]:
    """The residues by the two primes; of complex numbers, which are two words, Undecidable."""
    _check_real(words)
    return words & _MASK, (words >> _WIDTH) & _MASK


def is_special(words: Word) -> Array:
    """Which elements are an infinity or NaN."""
    _check_real(words)
    found: Array = words >= LIMIT
    return found


def _check_real(words: Word) -> None:
    if words.dtype.kind == "c":
        raise Undecidable("functions and comparisons of complex numbers")


def has_special(*words: Word) -> bool:
    return any(bool(np.any(each >= LIMIT)) for each in words)


def as_reals(words: Word) -> Array:
    """0 for each number of the field, and infinities and NaN as floats."""
    found: Array = _REALS[(words >> _TOP).astype(np.int64)]
    return found


def marked(words: Word, reals: Array) -> Word:
    """The words, with infinities and NaN where `reals` has them."""
    found = np.where(reals == np.inf, INFINITE, words)
    found = np.where(reals == -np.inf, NEGATIVE, found)
    return np.where(np.isnan(reals), UNDEFINED, found)


def reduced(first: Array, second: Array) -> Word:
    """Unsigned integers of each prime brought into their fields."""
    one, other = current().words
    return packed(first % one, second % other)


def add(a: Word, b: Word) -> Word:
    (a0, a1), (b0, b1) = halves(a), halves(b)
    return reduced(a0 + b0, a1 + b1)


def negate(a: Word) -> Word:
    a0, a1 = halves(a)
    one, other = current().words
    return reduced(one - a0, other - a1)


def multiply(a: Word, b: Word) -> Word:
    (a0, a1), (b0, b1) = halves(a), halves(b)
    return reduced(a0 * b0, a1 * b1)


def power(a: Word, exponent: tuple[int, int]) -> Word:
    """Powers with an exponent of at least 0 for each prime."""
    found = []
    for base, prime, left in zip(halves(a), current().words, exponent, strict=True):
        result = np.ones_like(base)
        while left:
            result = result * base % prime if left & 1 else result
            base, left = base * base % prime, left >> 1
        found.append(result)
    return packed(*found)


def inverse(a: Word) -> Word:
    """The number whose product with each is 1; of 0 it is 0."""
    one, other = current().primes
    return power(a, (one - 2, other - 2))


def total(a: Word, axes: tuple[int, ...]) -> Word:
    """Sums over axes; up to 2^33 residues have a sum of 64 bits."""
    first, second = halves(a)
    return reduced(first.sum(axes, dtype=np.uint64), second.sum(axes, dtype=np.uint64))


def of_integers(values: Array) -> Word:
    """Integers and truth values, of any width, as numbers of the fields."""
    native = np.asarray(values)
    wide = native.astype(np.uint64 if native.dtype == np.uint64 else np.int64)
    if wide.dtype == np.uint64:
        return reduced(wide, wide)
    return packed(*(np.mod(wide, prime).astype(np.uint64) for prime in current().primes))


def as_integers(words: Word) -> Array:
    """The integers of the least magnitude with these residues (by the Chinese remainder theorem)."""
    (first, second), (one, other) = halves(words), current().primes
    steps = (second + np.uint64(other) - first % np.uint64(other)) % np.uint64(other)
    steps = steps * np.uint64(pow(one, -1, other)) % np.uint64(other)
    found: Array = (first + np.uint64(one) * steps).astype(np.int64)
    return np.where(found > one * other // 2, found - one * other, found)


def of_fraction(value: Fraction) -> int:
    """The word of a fraction whose denominator neither prime divides."""
    first, second = (value.numerator * pow(value.denominator, -1, p) % p for p in current().primes)
    return first | second << 31


def of_reals(values: Array) -> Word:
    """Floats of a literal as numbers of the fields, each by the number that it stands for."""
    exact = np.asarray(values)
    with np.errstate(all="ignore"):  # NaN of some bits warns where it is converted
        wide = exact.astype(np.float64)
    distinct, places = np.unique(wide.reshape(-1), return_inverse=True)
    primes, reading = current().primes, literals.current()
    words = np.array([_word(float(each), exact.dtype, primes, reading) for each in distinct], np.uint64)
    return words[places].reshape(exact.shape) if distinct.size else np.zeros(exact.shape, np.uint64)


@lru_cache(maxsize=1 << 16)
def _word(value: float, dtype: np.dtype[Any], primes: tuple[int, int], reading: literals.LiteralReading) -> int:
    if not np.isfinite(value):
        return int(_MARKS.get(value, UNDEFINED))
    return of_fraction(reading.fraction(value, dtype))  # by these primes, which are the current ones
