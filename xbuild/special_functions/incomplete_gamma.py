"""The regularised incomplete gamma functions, and the series that their gradients use.

Each function is the power x^a exp(-x) / gamma(a + 1) times a factor, which is a series or a continued fraction.
"""

from __future__ import annotations

import math
from typing import Any

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from . import temme
from .dual import Dual, chosen, parts
from .form import special
from .gamma import near_two, positive_lgamma
from .numerics import epsilon, filled, log1p_gap, repeat, stirling_error

_LIMIT = 2000


@special
def igamma(a: Value, x: Value) -> Value:
    """Return the regularised lower incomplete gamma function P(a, x).

    Formula: the integral of t^(a - 1) exp(-t) from 0 to x, divided by gamma(a). It is computed with a power series for
    x < a, and otherwise with a continued fraction or a second series. If a >= 100 and a is near x, it is computed with
    Temme's expansion.
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: 16 + 4 |log P| ulp for f32 and f64. The result is NaN if a <= 0, x < 0 or an argument is NaN. It is 0 for
    x = 0, 1 for x = inf, and 0 for a = inf.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(lambda x: xb.igamma(1.0, x)), [0.0, 2.0])
    array([0.        , 0.86466473], dtype=float32)

    Source: XlaBuilder's math library, Igamma; DLMF 8.2.4, 8.7.1, 8.9.2, 8.12.
    """
    lower, upper = _both(a, x)
    return _at_the_ends(a, x, select(is_series(a, x), lower, 1 - upper), 0.0)


@special
def igammac(a: Value, x: Value) -> Value:
    """Return the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    It has full precision where Q is small.
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: 16 + 4 |log Q| ulp for f32 and f64. The result is NaN if a <= 0, x < 0 or an argument is NaN. It is 1 for
    x = 0, 0 for x = inf, and 1 for a = inf.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> float(xb.evaluate(xb.computation(xb.f64[()], xb.f64[()])(xb.igammac), 1.0, 50.0))
    1.9287498479639...e-22

    Source: XlaBuilder's math library, Igammac; DLMF 8.2.4, 8.7.3, 8.9.2, 8.12.
    """
    lower, upper = _both(a, x)
    return _at_the_ends(a, x, select(is_series(a, x), 1 - lower, upper), 1.0)


def _at_the_ends(a: Value, x: Value, found: Value, at_zero: float) -> Value:
    found = select(eq(x, 0) | eq(a, math.inf), at_zero, found)
    found = select(eq(x, math.inf), 1 - at_zero, found)
    legal = (a > 0) & (x >= 0) & ~(eq(a, math.inf) & eq(x, math.inf))
    return select(legal, found, math.nan)


def _both(a: Value, x: Value) -> tuple[Value, Value]:
    """P and Q: P is valid where the series is used, Q elsewhere, and both are valid where Temme's expansion is used."""
    scale = power(a, x)
    lower = scale * series(a, x)
    upper = select(is_small(a, x), _small_upper(a, x), scale * fraction_factor(a, x))
    near = temme.is_near(a, x)
    return select(near, temme.tail(a, x, -1), lower), select(near, temme.tail(a, x, 1), upper)


def is_series(a: Value, x: Value) -> Value:
    return (x < a) & ~is_small(a, x)


def is_small(a: Value, x: Value) -> Value:
    """Whether x is small and P is not."""
    return (x <= 1.1) & ((x >= a) | ((a < 0.5) & (a * ops.log(x) > -0.4)))


def power(a: Value, x: Value) -> Value:
    """The power x^a exp(-x) / gamma(a + 1); for a large a it is computed from the distance of x from a."""
    small = a < 10
    low = select(small, a, 1.0)
    direct = ops.power(x, low) * ops.exponential(-x) * ops.exponential(-positive_lgamma(low + 1))
    high = select(small, 10.0, a)
    exponent = -high * log1p_gap((x - high) / high, x / high) - stirling_error(high)
    return select(small, direct, ops.exponential(exponent) * ops.rsqrt(high * (2 * math.pi)))


def series(a: Any, x: Value) -> Any:
    """The series 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ... for x < a, x not near a."""
    first = parts(a)[0]
    used = is_series(first, x) & ~temme.is_near(first, x)
    a = chosen(used, a, ones(a))
    x = select(used, x, 0.0)

    def step(n: Value, term: Any, total: Any, a: Any, x: Value) -> list[Any]:
        term = term * x / (a + n)
        return [term, total + term]

    def going(n: Value, term: Any, total: Any, a: Any, x: Value) -> Value:
        return _matters(term, total)

    return repeat(step, going, [ones(a), ones(a)], [a, x], _LIMIT)[1]


def fraction_factor(a: Any, x: Value) -> Any:
    """The fraction a / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), for x > 1.1 and x >= a.

    Source: DLMF 8.9.2; Lentz's algorithm.
    """
    first = parts(a)[0]
    used = (x > 1.1) & (x >= first) & ~temme.is_near(first, x) & (x < math.inf)
    a = chosen(used, a, ones(a))
    x = select(used, x, 2.0)

    def step(n: Value, above: Any, below: Any, total: Any, change: Any, a: Any, x: Value) -> list[Any]:
        numerator = (a - (n + 1)) * (n + 1)
        place = -(a - (x + (2 * n + 3)))
        below = 1 / (place + numerator * below)
        above = place + numerator / above
        return [above, below, total * (below * above), below * above - 1]

    def going(n: Value, above: Any, below: Any, total: Any, change: Any, a: Any, x: Value) -> Value:
        return _matters(change * total, total)

    begin, above = 1 / -(a - (x + 1)), -(a - (x + 3))
    below = 1 / (above + (a - 1) * begin)
    return a * repeat(step, going, [above, below, begin * (below * above), ones(a)], [a, x], _LIMIT)[2]


def small_factor(a: Any, x: Value) -> Any:
    """The f of P = x^a / gamma(a + 1) (1 + f): a times the sum of (-x)^n / (n! (a + n)), for x <= 1.1."""
    x = select(x <= 1.1, x, 0.0)
    sign, total = filled(x, 1), None
    for n in range(1, 20):
        sign = sign * x * (-1 / n)
        term = 1 / (a + n) * sign
        total = term if total is None else total + term
    return a * total


def _small_upper(a: Value, x: Value) -> Value:
    """The difference 1 - x^a / gamma(a + 1) (1 + f), without cancellation for a small a."""
    size = select(is_small(a, x), a, 1.0)
    gamma = select(size < 0.5, near_two(size) - ops.log_plus_one(size), positive_lgamma(size + 1))
    exponent = size * ops.log(x) - gamma
    factor: Value = small_factor(size, x)
    return -ops.exponential_minus_one(exponent) - ops.exponential(exponent) * factor


def ones(model: Any) -> Any:
    """The constant 1, as a dual number if the model is one."""
    first = parts(model)[0]
    return Dual(filled(first, 1), filled(first, 0)) if isinstance(model, Dual) else filled(first, 1)


def _matters(term: Any, total: Any) -> Value:
    """Whether a term changes the sum or the slope of the sum."""
    limit = epsilon(parts(total)[0])
    holds = None
    for small, large in zip(parts(term), parts(total), strict=True):
        changes = abs(small) > abs(large) * limit
        holds = changes if holds is None else holds | changes
    assert holds is not None
    return holds
