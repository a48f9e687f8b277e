"""The regularised incomplete beta function."""

from __future__ import annotations

import math

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, maximum, minimum, select
from .form import special
from .gamma import positive_lgamma
from .numerics import epsilon, filled, log1p_gap, repeat, stirling_error, tiny

_LIMIT = 5000


@special
def regularized_incomplete_beta(a: Value, b: Value, x: Value) -> Value:
    """Return the regularised incomplete beta function I_x(a, b).

    Formula: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, divided by the integral from 0 to 1. It is computed
    with a continued fraction, but as 1 - I_(1 - x)(b, a) if x > (a + 1) / (a + b + 2).
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: 32 + 8 |log I| ulp for f32 and f64 with a, b <= 1e3, but 64 ulp of 1 if x > (a + 1) / (a + b + 2). The
    result is NaN if a <= 0, b <= 0, x is outside 0..1, or an operand is NaN.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(lambda x: xb.regularized_incomplete_beta(2.0, 1.0, x)), [0.5, 1.0])
    array([0.25, 1.  ], dtype=float32)

    Source: XlaBuilder's math library, RegularizedIncompleteBeta; DLMF 8.17.2, 8.17.4, 8.17.22.
    """
    legal = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    finite = (a < math.inf) & (b < math.inf)
    inside = legal & finite & (x > 0) & (x < 1)
    a, b, z = (select(inside, each, 0.5) for each in (a, b, x))
    turned = z > (a + 1) / (a + b + 2)
    p, q = select(turned, b, a), select(turned, a, b)
    u, v = select(turned, 1 - z, z), select(turned, z, 1 - z)
    part = _power(p, q, u, v) * _fraction(p, q, u) / p
    found = select(turned, 1 - part, part)
    return select(inside, found, select(legal & finite, x, math.nan))


def _power(a: Value, b: Value, x: Value, y: Value) -> Value:
    """The power x^a y^b / B(a, b), with y = 1 - x."""
    both = (a >= 10) & (b >= 10)
    low, high = minimum(a, b), maximum(a, b)
    plain = ops.exponential(a * ops.log(x) + b * _log(y, x) - _log_beta(low, high))
    return select(both, _balanced(a, b, x, y), plain)


def _log(y: Value, x: Value) -> Value:
    return select(x < 0.5, ops.log_plus_one(-x), ops.log(y))


def _balanced(a: Value, b: Value, x: Value, y: Value) -> Value:
    """The power for a, b >= 10, from the distance of x from a / (a + b), as in DiDonato and Morris."""
    a, b = maximum(a, 10), maximum(b, 10)
    distance = select(a > b, (a + b) * y - b, a - (a + b) * x)
    exponent = a * log1p_gap(-distance / a, x * (a + b) / a) + b * log1p_gap(distance / b, y * (a + b) / b)
    rest = stirling_error(a) + stirling_error(b) - stirling_error(a + b)
    return ops.exponential(-exponent - rest) * ops.sqrt(a / (a + b) * b / (2 * math.pi))


def _log_beta(low: Value, high: Value) -> Value:
    """The logarithm of B; for a large `high`, lgamma(high) - lgamma(low + high) is computed without cancellation."""
    large = maximum(high, 10)
    ratio = stirling_error(large) - stirling_error(low + large)
    ratio = ratio - (large + low - 0.5) * ops.log_plus_one(low / large) - low * (ops.log(large) - 1)
    plain = positive_lgamma(high) - positive_lgamma(low + high)
    return positive_lgamma(low) + select(high >= 10, ratio, plain)


def _fraction(a: Value, b: Value, x: Value) -> Value:
    """The continued fraction of DLMF 8.17.22, two terms for each step of Lentz's algorithm."""

    def step(n: Value, above: Value, below: Value, total: Value, change: Value, *fixed: Value) -> list[Value]:
        a, b, x = fixed
        even = n / (a + (2 * n - 1)) * ((b - n) / (a + 2 * n)) * x
        odd = -(a + n) / (a + 2 * n) * ((a + b + n) / (a + (2 * n + 1))) * x
        below = 1 / _apart(1 + even * below)
        above = _apart(1 + even / above)
        total = total * above * below
        below = 1 / _apart(1 + odd * below)
        above = _apart(1 + odd / above)
        return [above, below, total * above * below, above * below - 1]

    def going(n: Value, above: Value, below: Value, total: Value, change: Value, *fixed: Value) -> Value:
        return abs(change) > epsilon(total)

    first = 1 / _apart(1 - (a + b) * x / (a + 1))
    state = [filled(a, 1), first, first, filled(a, 1)]
    found: Value = repeat(step, going, state, [a, b, x], _LIMIT)[2]
    return found


def _apart(x: Value) -> Value:
    """The value x, with zeros replaced by a small number."""
    return select(eq(x, 0), tiny(x), x)
