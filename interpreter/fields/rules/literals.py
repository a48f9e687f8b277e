"""What number a float literal stands for: the rounded one exactly, or one that rounds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from fractions import Fraction
from math import frexp, isfinite
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from attrs import field, frozen

from xbuild.core.context import assigned

Literal: TypeAlias = tuple[float, np.dtype[Any]]

DENOMINATORS = (10, 100, 1000)
"""A literal is read as the fraction that rounds to it, of a denominator up to the first of these for which one does."""
_DECIMALS = {53: 14, 24: 6, 11: 3, 8: 2}
"""How many decimal digits a literal has at most that is read as a decimal number, by the binary digits of its type."""
_FACTORS = [Fraction(n, d) for d in range(1, 13) for n in range(1, 13)]
"""What products and quotients of two literals may be, such as 1 for 2 pi and 1 / (2 pi)."""
_MANY_DIGITS = 20
"""Types of fewer binary digits have products of literals that are near a factor by chance."""
_EXACT_BITS = 6
"""Literals of so few binary digits are what they say."""


def digits_of(dtype: np.dtype[Any]) -> int:
    """The binary digits of a float type."""
    return int(ml_dtypes.finfo(dtype).nmant) + 1  # type: ignore[no-untyped-call]


def _rounds_to(number: Fraction, value: float, dtype: np.dtype[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.asarray(float(number)).astype(dtype) == value)


def simplest(value: float, dtype: np.dtype[Any]) -> Fraction:
    """The fraction of a small denominator, or the short decimal number, that rounds to a float; else the float exactly.

    >>> simplest(float(np.float32(0.1)), np.dtype(np.float32)), simplest(0.75, np.dtype(np.float32))
    (Fraction(1, 10), Fraction(3, 4))
    >>> simplest(float(np.float32(3e-4)), np.dtype(np.float32))
    Fraction(3, 10000)
    """
    exact = Fraction(value)
    if abs(value) > 2.0 ** digits_of(dtype):  # where integers are rounded, too
        return _decimal(value, dtype) or exact
    fractions = map(exact.limit_denominator, DENOMINATORS)
    found = next((each for each in fractions if _rounds_to(each, value, dtype)), None)
    return found if found is not None else _decimal(value, dtype) or exact


def _decimal(value: float, dtype: np.dtype[Any]) -> Fraction | None:
    for digits in range(_DECIMALS.get(digits_of(dtype), 1)):
        number = Fraction(f"{value:.{digits}e}")
        if _rounds_to(number, value, dtype):
            return number
    return None


@frozen(eq=False)
class LiteralReading:
    """How literals are read: each has its number in `numbers`; others are read exactly, or where not as the simplest.

    The rounding of a type is what literals are read up to: two that stand for one number by it have that number.
    """

    is_exact: bool = False
    numbers: Mapping[Literal, Fraction] = field(factory=dict)

    def fraction(self, value: float, dtype: np.dtype[Any]) -> Fraction:
        """The number of a literal, which is finite."""
        if self.is_exact:
            return Fraction(value)
        found = self.numbers.get((value, dtype))
        return simplest(value, dtype) if found is None else found


PLAIN, EXACT = LiteralReading(), LiteralReading(is_exact=True)
_current: ContextVar[LiteralReading] = ContextVar("xbuild_reading", default=PLAIN)
current: Callable[[], LiteralReading] = _current.get


def reading(given: LiteralReading) -> AbstractContextManager[LiteralReading]:
    """Inside, literals are read so."""
    return assigned(_current, given)


def reading_of(literals: Iterable[Literal]) -> LiteralReading:
    """The reading of the literals of two programs, in which those that are one number up to rounding agree.

    Literals of more digits come first. One of fewer digits is the number of one before it that rounds to it; else the
    simplest fraction or decimal number; else what makes its product with one before it, or its quotient, a fraction of
    small numbers, as with pi and 2 pi.
    """
    numbers: dict[Literal, Fraction] = {}
    others: list[tuple[Literal, Fraction]] = []
    for value, dtype in sorted({each for each in literals if isfinite(each[0])}, key=_order):
        exact = Fraction(value)
        is_short = _is_short(value) and abs(value) <= 2.0 ** digits_of(dtype)
        found = exact if is_short else _of_others(value, dtype, numbers)
        found = simplest(value, dtype) if found is None else found
        if found == exact and not is_short:
            found = _by_factor(value, dtype, others) or exact
            others.append(((value, dtype), found))
        numbers[value, dtype] = found
    return LiteralReading(numbers=numbers)


def _order(literal: Literal) -> tuple[int, float, float, str]:
    value, dtype = literal
    return -digits_of(dtype), abs(value), value, str(dtype)


def _is_short(value: float) -> bool:
    fraction, _ = frexp(value)
    return bool((fraction * 2**_EXACT_BITS).is_integer())


def _of_others(value: float, dtype: np.dtype[Any], numbers: Mapping[Literal, Fraction]) -> Fraction | None:
    """The number of a literal of more digits that rounds to this one."""
    digits = digits_of(dtype)
    for (_, of), number in numbers.items():
        if digits_of(of) > digits and _rounds_to(number, value, dtype):
            return number
    return None


def _by_factor(value: float, dtype: np.dtype[Any], others: Iterable[tuple[Literal, Fraction]]) -> Fraction | None:
    """The number that makes a fraction of small numbers with that of another literal, up to the rounding of both."""
    digits, exact = digits_of(dtype), Fraction(value)
    if digits < _MANY_DIGITS or not value:
        return None
    for (_, of), number in others:
        if digits_of(of) < _MANY_DIGITS or not number:
            continue
        bound = Fraction(1, 2**digits) + Fraction(1, 2 ** digits_of(of))
        for other in (1 / number, number):
            ratio = float(abs(exact / other))
            near = next((each for each in _FACTORS if abs(ratio / float(each) - 1) <= float(bound)), None)
            if near is not None:
                return near * abs(other) * (1 if value > 0 else -1)
    return None
