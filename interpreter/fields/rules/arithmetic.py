"""Arithmetic of words elementwise: sums, products and quotients, with infinities and NaN as floats have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xbuild.core.attributes import Array

from . import residues
from .complexes import joined, parts
from .laws import by_signs, chosen
from .places import own_places, places
from .residues import Word, has_special
from .tables import fields

Of = Callable[..., Any]


def _like_floats(exact: Of, of_reals: Of, *words: Word) -> Word:
    """A rule of numbers; where an operand is none, the result is the float's if that is none either."""
    found = exact(*words)
    if not has_special(*words):
        return found
    reals = of_reals(*(np.where(residues.is_special(each), residues.as_reals(each), 0.0) for each in words))
    touched = np.any(np.broadcast_arrays(*map(residues.is_special, words)), 0)
    return residues.marked(found, np.where(touched, reals, 0.0))


def _signs(words: Word) -> Array:
    """1, -1 or 0, or an infinity or NaN, with the sign that a number has in the order."""
    return np.where(residues.is_special(words), residues.as_reals(words), np.sign(own_places(words)))


def plus(a: Word, b: Word) -> Word:
    return _like_floats(residues.add, np.add, a, b)


def minus(a: Word, b: Word) -> Word:
    return plus(a, opposite(b))


def opposite(a: Word) -> Word:
    return _like_floats(residues.negate, np.negative, a)


def times(a: Word, b: Word) -> Word:
    found = residues.multiply(a, b)
    if not has_special(a, b):
        return found
    touched = residues.is_special(a) | residues.is_special(b)
    return residues.marked(found, np.where(touched, _signs(a) * _signs(b), 0.0))


def quotient(a: Word, b: Word) -> Word:
    """Quotients; x / 0 is an infinity of the sign of x, 0 / 0 is NaN, and x / infinity is 0."""
    found = residues.multiply(a, residues.inverse(b))
    is_zero = b == 0
    if not is_zero.any() and not has_special(a, b):
        return found
    touched = residues.is_special(a) | residues.is_special(b) | is_zero
    reals = np.where(touched, _signs(a) / _signs(b), 0.0)
    return residues.marked(np.where(residues.is_special(b), np.uint64(0), found), reals)


@fields
def add(lhs: Word, rhs: Word) -> Word:
    return _by_parts(plus, lhs, rhs)


@fields
def subtract(lhs: Word, rhs: Word) -> Word:
    return _by_parts(minus, lhs, rhs)


@fields
def negate(operand: Word) -> Word:
    return _by_parts(opposite, operand)


def _by_parts(rule: Of, *words: Word) -> Word:
    """A linear rule, of complex numbers by their parts."""
    if words[0].dtype.kind != "c":
        return rule(*words)
    return joined(*(rule(*each) for each in zip(*map(parts, words), strict=True)))


@fields
def multiply(lhs: Word, rhs: Word) -> Word:
    if lhs.dtype.kind != "c":
        return times(lhs, rhs)
    (a, b), (c, d) = parts(lhs), parts(rhs)
    return joined(minus(times(a, c), times(b, d)), plus(times(a, d), times(b, c)))


@fields
def divide(lhs: Word, rhs: Word) -> Word:
    if lhs.dtype.kind != "c":
        return quotient(lhs, rhs)
    c, d = parts(rhs)
    norm = plus(times(c, c), times(d, d))
    a, b = parts(multiply(lhs, joined(c, opposite(d))))
    return joined(quotient(a, norm), quotient(b, norm))


@fields
def maximum(lhs: Word, rhs: Word) -> Word:
    return _extreme(np.greater_equal, lhs, rhs)


@fields
def minimum(lhs: Word, rhs: Word) -> Word:
    return _extreme(np.less_equal, lhs, rhs)


def _extreme(holds: Of, a: Word, b: Word) -> Word:
    found = np.where(holds(*ordered(a, b)), a, b)
    return np.where((a == residues.UNDEFINED) | (b == residues.UNDEFINED), residues.UNDEFINED, found)


def ordered(a: Word, b: Word) -> tuple[Array, Array]:
    """The places of two words; where signs count, that of their difference and 0."""
    if not by_signs():
        return places(a), places(b)
    shape = np.broadcast(a, b).shape
    away = chosen(shape, lambda: np.where(a == b, 0.0, own_places(minus(a, b))))
    return away, np.zeros(shape)


@fields
def clamp(min: Word, operand: Word, max: Word) -> Word:
    return minimum(maximum(min, operand), max)


_TESTS: dict[str, Of] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


@fields
def compare(lhs: Word, rhs: Word, *, direction: str, type: str | None) -> Array:
    if direction in ("EQ", "NE"):
        same = chosen(np.broadcast(lhs, rhs).shape, lambda: _same(lhs, rhs))
        return np.asarray(same if direction == "EQ" else ~same)
    return np.asarray(_TESTS[direction](*ordered(lhs, rhs)) & _unequal(lhs, rhs, direction))


def _same(lhs: Word, rhs: Word) -> Array:
    return np.asarray((lhs == rhs) & (lhs != residues.UNDEFINED if lhs.dtype.kind != "c" else True))


def _unequal(lhs: Word, rhs: Word, direction: str) -> Array:
    """Whether the test may hold: a strict one never of equal words."""
    shape = np.broadcast(lhs, rhs).shape
    return chosen(shape, lambda: lhs != rhs) if direction in ("LT", "GT") else np.ones(shape, bool)


@fields
def sign(operand: Word) -> Word:
    """1, -1 or 0 by the place in the order."""
    place = places(operand)
    whole = residues.of_integers(np.where(np.isnan(place), 0, np.sign(place)).astype(np.int64))
    return np.where(operand == residues.UNDEFINED, residues.UNDEFINED, whole)


@fields
def is_finite(operand: Word) -> Array:
    return chosen(operand.shape, lambda: ~residues.is_special(operand))


def _rounded(rule: Of) -> Of:
    def by_place(operand: Word) -> Word:
        place = places(operand)
        whole = residues.of_reals(rule(np.where(np.isfinite(place), place, 0.0)))
        return np.where(residues.is_special(operand), operand, whole)

    return by_place


def _away_from_zero(reals: Array) -> Array:
    return np.asarray(np.trunc(reals + np.copysign(0.5, reals)))


fields.enter("floor", _rounded(np.floor))
fields.enter("ceil", _rounded(np.ceil))
fields.enter("round_nearest_even", _rounded(np.round))
fields.enter("round_nearest_afz", _rounded(_away_from_zero))


@fields
def reduce_precision(operand: Word, *, exponent_bits: int, mantissa_bits: int) -> Word:
    return operand


def raised(base: Word, exponent: int) -> Word:
    """Powers with one integer, of numbers; those with a negative one are inverses."""
    found = residues.power(base, (abs(exponent), abs(exponent)))
    return quotient(residues.of_integers(np.ones(found.shape, np.int64)), found) if exponent < 0 else found
