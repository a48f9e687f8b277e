"""What is not arithmetic: random functions of residues, which agree with the true ones where these laws hold.

Each has its values at numbers where the true function is rational (exp 0 = 1), is odd or even where that is, and
cbrt, sqrt, log1p and the like are tied to those from which they follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np

from . import residues
from .arithmetic import minus, opposite, plus, quotient, raised, times
from .complexes import joined, parts
from .laws import by_law, by_signs, cube_root, level, root
from .places import is_turned, known, mixed, places, upright
from .residues import UNDEFINED, Word
from .tables import fields

_INF = float("inf")
_ODD = ("sine", "tanh", "sinh", "asin", "asinh", "atanh", "erf", "cbrt")
_EVEN = ("cosine", "cosh", "abs")
_POINTS: Mapping[str, Mapping[float, float]] = {
    "exponential": {0: 1, -_INF: 0, _INF: _INF},
    "log": {1: 0, 0: -_INF, _INF: _INF},
    "rsqrt": {0: _INF, _INF: 0},
    "cbrt": {0: 0, 1: 1, 8: 2, 27: 3, 64: 4, _INF: _INF},
    "logistic": {0: 0.5, -_INF: 0, _INF: 1},
    "tanh": {0: 0, _INF: 1},
    "erf": {0: 0, _INF: 1},
    "sine": {0: 0}, "sinh": {0: 0, _INF: _INF}, "asin": {0: 0}, "asinh": {0: 0, _INF: _INF},
    "atanh": {0: 0, 1: _INF}, "cosine": {0: 1}, "cosh": {0: 1, _INF: _INF}, "acos": {1: 0}, "acosh": {1: 0},
}  # fmt: skip
"""Where the value of a function is known; of odd and even functions for numbers from 0 on."""

NAMES = (
    "exponential", "log", "rsqrt", "logistic", "acos", "acosh",
    *(name for name in (*_ODD, *_EVEN) if name != "abs"),
)  # fmt: skip
"""The functions of one operand that are random ones."""


def salt_of(name: str) -> int:
    return crc32(name.encode()) + 2


def random_words(name: str, *operands: Any) -> Word:
    """A random number of the fields for each tuple of operands' elements: words, integers or complex numbers."""
    found: Any = np.uint64(0)
    for place, operand in enumerate(operands):
        for half in _bits(np.asarray(operand)):
            found = mixed(found ^ mixed(half, 7 * place + salt_of(name)), salt_of(name))
    bits = np.asarray(found, np.uint64)
    return residues.reduced(bits & np.uint64(2**32 - 1), mixed(bits, 3) & np.uint64(2**32 - 1))


def _bits(operand: Any) -> tuple[Word, ...]:
    if operand.dtype.kind == "c":
        return parts(operand)
    if operand.dtype == np.uint64:
        return (operand,)
    return (operand.astype(np.int64).view(np.uint64),)


def applied(name: str, operand: Word) -> Word:
    """A random function of one operand, with the true values where they are known."""
    if operand.dtype.kind == "c":
        first = random_words(name, operand)
        return joined(first, random_words(f"{name} i", operand))
    if level() is not None and name in _OF_EXPONENTIALS:
        return _OF_EXPONENTIALS[name](operand)
    if by_signs() and name in _OF_LOGARITHMS:
        return _OF_LOGARITHMS[name](operand)
    given = upright(operand) if name in _ODD or name in _EVEN else operand
    given = np.where(given == residues.NEGATIVE, residues.INFINITE, given) if given is not operand else given
    found = _by_root(name, given) if by_signs() and name in ROOTS else random_words(name, given)
    found = by_law(name, given, np.where(residues.is_special(given), UNDEFINED, found))
    numbers = known(given)
    if name == "rsqrt":
        found = _of_squares(numbers, found)
    for point, value in _POINTS.get(name, {}).items():
        found = np.where(numbers == point, residues.of_reals(np.array(value, np.float64)), found)
    if name not in _ODD:
        return found
    turned = is_turned(operand) | (operand == residues.NEGATIVE)
    return np.where(turned, _opposite(found), found)


ROOTS = frozenset({"rsqrt", "cbrt"})
"""Functions that are roots in the fields, where signs count."""


def _by_root(name: str, operand: Word) -> Word:
    if name == "cbrt":
        return cube_root(operand)
    found = root(operand)
    return np.where(residues.is_special(found), found, residues.inverse(found))


def _of_squares(numbers: Any, otherwise: Word) -> Word:
    """The inverse roots of numbers that are squares of multiples of 1/256."""
    with np.errstate(invalid="ignore"):
        scaled = np.sqrt(numbers) * 256
        is_square = (scaled == np.rint(scaled)) & (scaled > 0) & (scaled < 2**24) & (numbers * 65536 == scaled**2)
    if not is_square.any():
        return otherwise
    whole = residues.of_integers(np.where(is_square, scaled, 1).astype(np.int64))
    found = residues.multiply(residues.inverse(whole), residues.of_integers(np.full(whole.shape, 256)))
    return np.where(is_square, found, otherwise)


def _logistic(operand: Word) -> Word:
    return quotient(_one(operand), plus(_one(operand), applied("exponential", opposite(operand))))


def _tanh(operand: Word) -> Word:
    """2 / (1 + exp(-2x)) - 1."""
    found = _logistic(plus(operand, operand))
    return minus(plus(found, found), _one(operand))


def _hyperbolic(sign: Callable[[Word, Word], Word]) -> Callable[[Word], Word]:
    def rule(operand: Word) -> Word:
        """(exp(x) + exp(-x)) / 2, or the difference."""
        both = sign(applied("exponential", operand), applied("exponential", opposite(operand)))
        return quotient(both, plus(_one(operand), _one(operand)))

    return rule


_OF_EXPONENTIALS = {"logistic": _logistic, "tanh": _tanh, "cosh": _hyperbolic(plus), "sinh": _hyperbolic(minus)}
"""Functions that are quotients of exponentials, where these are read by their laws."""


def _of_square(sign: Callable[[Word, Word], Word]) -> Callable[[Word], Word]:
    def rule(operand: Word) -> Word:
        """log(x + sqrt(x^2 + 1)), or with -1."""
        return applied("log", plus(operand, sqrt(sign(times(operand, operand), _one(operand)))))

    return rule


def _atanh(operand: Word) -> Word:
    """log((1 + x) / (1 - x)) / 2."""
    found = applied("log", quotient(plus(_one(operand), operand), minus(_one(operand), operand)))
    return quotient(found, plus(_one(operand), _one(operand)))


_OF_LOGARITHMS = {"asinh": _of_square(plus), "acosh": _of_square(minus), "atanh": _atanh}
"""Functions that are logarithms, where these are read by their laws and signs count."""


def _opposite(words: Word) -> Word:
    return residues.marked(residues.negate(words), -residues.as_reals(words))


def _function(name: str) -> Callable[..., Word]:
    def rule(operand: Word, **attributes: Any) -> Word:
        return applied(name, operand)

    return rule


for _name in NAMES:
    fields.enter(_name, _function(_name))


@fields
def abs(operand: Word) -> Word:
    """Of a real number it or its negative, by its sign in the order."""
    if operand.dtype.kind == "c":
        return random_words("abs", operand)
    below = places(operand) < 0
    return np.where(below, _opposite(operand), operand)


def _one(words: Word) -> Word:
    ones = residues.of_integers(np.ones(np.shape(words), np.int64))
    return joined(ones, np.zeros_like(ones)) if words.dtype.kind == "c" else ones


@fields
def exponential_minus_one(operand: Word, **attributes: Any) -> Word:
    return fields["subtract"](applied("exponential", operand), _one(operand))


@fields
def log_plus_one(operand: Word, **attributes: Any) -> Word:
    return applied("log", fields["add"](operand, _one(operand)))


@fields
def sqrt(operand: Word, **attributes: Any) -> Word:
    """1 / rsqrt(x)."""
    return fields["divide"](_one(operand), applied("rsqrt", operand))


@fields
def tan(operand: Word, **attributes: Any) -> Word:
    """sin(x) / cos(x)."""
    return fields["divide"](applied("sine", operand), applied("cosine", operand))


@fields
def power(lhs: Word, rhs: Word) -> Word:
    """Powers with known integers by multiplication, those with 1/2 and -1/2 by roots, others a random function."""
    if lhs.dtype.kind == "c":
        return joined(random_words("power", lhs, rhs), random_words("power i", lhs, rhs))
    numbers = known(rhs)
    found = random_words("power", lhs, rhs)
    if by_signs() and np.isnan(numbers).any():
        found = applied("exponential", times(rhs, applied("log", lhs)))
    for each in np.unique(numbers[np.isfinite(numbers)]):
        found = np.where(numbers == each, _power(lhs, float(each), found), found)
    return found


def _power(lhs: Word, exponent: float, otherwise: Word) -> Word:
    if exponent == 0:
        return _one(lhs)
    if exponent == int(exponent):
        finite = raised(np.where(residues.is_special(lhs), np.uint64(0), lhs), int(exponent))
        return np.where(residues.is_special(lhs), otherwise, finite)
    if 2 * exponent == int(2 * exponent):
        whole = int(exponent)
        found = sqrt(lhs) if exponent > 0 else applied("rsqrt", lhs)
        return times(_power(lhs, float(whole), found), found) if whole else found
    return otherwise


@fields
def remainder(lhs: Word, rhs: Word) -> Word:
    return random_words("remainder", lhs, rhs)


@fields
def atan2(lhs: Word, rhs: Word) -> Word:
    """Odd in the first operand, and 0 of 0 for a positive second one."""
    found = random_words("atan2", upright(lhs), rhs)
    return np.where(is_turned(lhs), residues.negate(found), found)


def bits_of(words: Word, salt: int) -> Any:
    """Random integers of 64 bits, one for each element."""
    return mixed(np.asarray(words), salt)
