"""The Hurwitz zeta function and the derivatives of digamma."""

from __future__ import annotations

import math

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from .form import special
from .gamma import digamma
from .numerics import bernoulli, epsilon, filled, fraction, repeat, tiny

_TERMS = 10
_CORRECTIONS = 12


@special
def zeta(x: Value, q: Value) -> Value:
    """Return the Hurwitz zeta function: the sum of (q + k)^(-x) over all integers k >= 0.

    Formula: ten terms and the Euler-Maclaurin formula; for q < 0, the sums of the terms on both sides of zero.
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: 8 ulp for f32 and f64 with q > 0. For q < 0, the error is at most 8 ulp of the larger of the two sums. The
    result is inf for x = 1 and at the poles q = 0, -1, ... It is NaN for x < 1, for q < 0 with a non-integer x, and for
    a NaN argument.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> float(xb.evaluate(xb.computation(xb.f64[()], xb.f64[()])(xb.zeta), 2.0, 1.0))
    1.644934066848226...

    Source: XlaBuilder's math library, Zeta; DLMF 25.11.1, 25.11.5.
    """
    below = ops.floor(q)
    start = select(q > 0, q, q - below)
    whole = _positive(x, start)
    # The finite sum of the terms left of zero is the difference of two zeta functions.
    left = _positive(x, 1 + below - q) - _positive(x, 1 - q)
    odd = eq(abs(fraction(x * 0.5)), 0.5)
    both = whole + select(odd, -left, left)
    is_whole = eq(ops.floor(x), x)
    negative = select(is_whole, both, math.nan)
    found = select(q > 0, whole, select(eq(below, q), math.inf, negative))
    found = select(eq(x, math.inf), _limit(select(x > 1, 1.0, x), q), found)
    return select(x > 1, found, select(eq(x, 1), math.inf, math.nan))


def _limit(one: Value, q: Value) -> Value:
    """The limit for x = inf: 0 for q > 1, 1 for q = 1, infinity for q < 1."""
    return select(q > 1, 0.0, select(eq(q, 1), one, math.inf))


def _positive(x: Value, q: Value) -> Value:
    def step(n: Value, total: Value, x: Value, q: Value) -> tuple[Value]:
        return (total + ops.power(q + (n - 1), -x),)

    def going(n: Value, total: Value, x: Value, q: Value) -> Value:
        return eq(q, q)

    direct: Value = repeat(step, going, [filled(q, 0)], [x, q], _TERMS)[0]
    return direct + _rest(x, q + float(_TERMS))


def _rest(x: Value, a: Value) -> Value:
    """The sum of the terms from a on: the integral, half a term, and corrections by the derivatives at a."""
    last = ops.power(a, -x)
    total = last * (a / (x - 1) + 0.5)
    term = last * x / a
    for k in range(1, _CORRECTIONS + 1):
        total = total + term * float(bernoulli(2 * k) / math.factorial(2 * k))
        term = term * ((x + (2 * k - 1)) / a) * ((x + 2 * k) / a)
    return select(last < tiny(a) / epsilon(a), ops.power(a, 1 - x) / (x - 1), total)


@special
def polygamma(n: Value, x: Value) -> Value:
    """Return the derivative of order n of digamma, for integers n >= 0.

    Formula: (-1)^(n + 1) n! zeta(n + 1, x); for n = 0, the digamma function.
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: 16 ulp for f32 and f64 if n! is finite in the type and x > 0. An n that is negative or not an integer
    gives NaN.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> float(xb.evaluate(xb.computation(xb.f64[()], xb.f64[()])(xb.polygamma), 1.0, 1.0))
    1.644934066848226...

    Source: XlaBuilder's math library, Polygamma; DLMF 5.15.1, 25.11.12.
    """
    sized = _factorial(n) * zeta(n + 1, x)
    odd = eq(abs(fraction(n * 0.5)), 0.5)
    higher = select(odd, sized, -sized)
    found = select(eq(n, 0), digamma(x), higher)
    return select((n >= 0) & eq(ops.floor(n), n), found, math.nan)


def _factorial(n: Value) -> Value:
    """The factorial of n, or infinity where it overflows."""

    def step(k: Value, product: Value, n: Value) -> tuple[Value]:
        return (product * select(n >= k, k * filled(n, 1), 1.0),)

    def going(k: Value, product: Value, n: Value) -> Value:
        return n >= k

    product: Value = repeat(step, going, [filled(n, 1)], [n], 171)[0]
    return product
