"""Building blocks of the special functions: series, polynomials, loops over values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from shape_inference import f64

from .. import ops
from ..core.builder import Value
from ..derived.control_flow import while_
from ..derived.elementwise import select
from ..derived.reduction import reduce_all
from ..derived.support import as_value, dtype_of, like
from .dual import Dual, chosen, parts

Number: TypeAlias = Any
"""A Value or a Dual."""


def is_double(x: Value) -> bool:
    return dtype_of(x) is f64


def filled(x: Value, number: float) -> Value:
    """A number broadcast to the extents of x, in the element type of x."""
    return like(as_value(x.builder, number, dtype_of(x)), x, number)


def epsilon(x: Value) -> float:
    """The machine epsilon of the value's element type."""
    return 2.0**-52 if is_double(x) else 2.0**-23


def tiny(x: Value) -> float:
    """A small normal number of the value's element type, whose inverse is finite."""
    return float(np.finfo(np.float64 if is_double(x) else np.float32).tiny) * 4


def chebyshev(x: Value, coefficients: Sequence[float], single: int) -> Value:
    """The sum of c[k] T_k(x) for x in -1..1; f32 uses the first `single` coefficients.

    Source: Clenshaw, A note on the summation of Chebyshev series.
    """
    first, *rest = coefficients if is_double(x) else coefficients[:single]
    twice = x + x
    last = before = filled(x, 0)
    for coefficient in reversed(rest):
        last, before = twice * last - (before - coefficient), last
    return x * last - (before - first)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of c[k] x^k, by Horner's rule."""
    *rest, last = coefficients
    total = filled(x, last)
    for coefficient in reversed(rest):
        total = total * x + coefficient
    return total


@functools.cache
def bernoulli(n: int) -> Fraction:
    """The Bernoulli number B_n, with B_1 = -1/2. Source: DLMF 24.5.3."""
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


@functools.cache
def stirling(terms: int) -> tuple[float, ...]:
    """The coefficients of the remainder of Stirling's formula, in odd powers of 1/x. Source: DLMF 5.11.1."""
    return tuple(float(bernoulli(2 * k) / (2 * k * (2 * k - 1))) for k in range(1, terms + 1))


def stirling_error(x: Value) -> Value:
    """The remainder of Stirling's formula, lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2), for x >= 8."""
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, stirling(9 if is_double(x) else 3))


def log1p_gap(x: Value, whole: Value | None = None) -> Value:
    """The difference x - log(1 + x), without cancellation near zero; `whole` is 1 + x with more precision.

    With s = x / (2 + x), the difference is s x - 2 (s^3/3 + s^5/5 + ...).
    """
    s = x / (x + 2)
    square = s * s
    terms = 17 if is_double(x) else 8
    near = s * x - 2 * s * square * polynomial(square, [1 / (2 * k + 3) for k in range(terms)])
    return select((x > -0.5) & (x < 0.5), near, x - (ops.log_plus_one(x) if whole is None else ops.log(whole)))


def fraction(x: Value) -> Value:
    """The difference of x and the nearest integer, in -1/2..1/2."""
    return x - ops.round_nearest_even(x)


def any_of(holds: Value) -> Value:
    return reduce_all(holds, False, ops.or_)


def repeat(
    step: Callable[..., Sequence[Number]],
    going: Callable[..., Value],
    state: Sequence[Number],
    fixed: Sequence[Number],
    limit: int,
) -> list[Any]:
    """Apply `step(n, *state, *fixed)` for n = 1, 2, ... to each element while `going`, on the same operands, holds.

    The numbers are values or duals of one shape, and n is a scalar. The loop ends after at most `limit` steps.
    """
    numbers = [*state, *fixed]
    first = parts(numbers[0])[0]
    count = as_value(first.builder, 1, dtype_of(first))

    def condition(values: Value) -> Value:
        n, *read = _read(values, numbers)
        return any_of(going(n, *read)) & ops.compare(n, as_value(n.builder, limit, dtype_of(n)), direction="LE")

    def body(values: Value) -> list[Value]:
        n, *read = _read(values, numbers)
        goes = going(n, *read)
        changed = [chosen(goes, new, old) for new, old in zip(step(n, *read), read, strict=False)]
        return [n + 1, *_flat(changed), *_flat(read[len(state) :])]

    return _read(while_((count, *_flat(numbers)), condition, body), numbers)[1 : len(state) + 1]


def _flat(numbers: Sequence[Number]) -> list[Value]:
    return [value for number in numbers for value in parts(number)]


def _read(values: Value, numbers: Sequence[Number]) -> list[Any]:
    """The count and the numbers in a tuple value; each is a Value or a Dual, as in `numbers`."""
    count, *rest = values
    read = iter(rest)
    return [count, *(Dual(next(read), next(read)) if isinstance(each, Dual) else next(read) for each in numbers)]
