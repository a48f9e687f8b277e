"""Temme's uniform expansion of the incomplete gamma functions, for a large a and an x near a.

With m = (x - a) / a and e^2 / 2 = m - log(1 + m): Q(a, x) = erfc(e sqrt(a / 2)) / 2 + R, P = 1 - Q, and
R = exp(-a e^2 / 2) / sqrt(2 pi a) times the sum over k of a^-k times a power series in e.

Source: Temme, The asymptotic expansion of the incomplete gamma functions (1979); DLMF 8.12; the recurrences are
those of DiDonato and Morris, Computation of the incomplete gamma function ratios and their inverse (1986).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import select
from .error_function import erfc
from .numerics import bernoulli, is_double, log1p_gap, polynomial

_FROM, _REACH = 100.0, 0.3


def is_near(a: Value, x: Value) -> Value:
    return (a >= _FROM) & (abs(x - a) <= a * _REACH)


def tail(a: Value, x: Value, sign: int) -> Value:
    """The function Q for a sign of 1, and P for -1."""
    a, e, weight, _ = _terms(a, x)
    return erfc(e * ops.sqrt(a * 0.5) * sign) * 0.5 + sign * weight * series(a, e)[0]


def slope(a: Value, x: Value) -> tuple[Value, Value]:
    """The two factors of the derivative of P with respect to a, of which one is exp(-a e^2 / 2) / sqrt(2 pi a)."""
    a, e, weight, m = _terms(a, x)
    bend = select(abs(e) < 1e-3, 1 + e * (1 / 3 + e / 36), m / e)  # m / e, which is 1 at zero
    total, by_e, by_a = series(a, e)
    of_erfc = e * 0.5 - bend
    of_rest = total * (ops.log_plus_one(m) - 0.5 / a) - by_e * bend / a + by_a
    return of_erfc - of_rest, weight


def _terms(a: Value, x: Value) -> tuple[Value, Value, Value, Value]:
    """The terms a, e, the weight of R, and m; where x is not near a, those of x = a = 100."""
    near = is_near(a, x)
    a = select(near, a, _FROM)
    m = select(near, x - a, 0.0) / a
    gap = log1p_gap(m)
    e = ops.sign(m) * ops.sqrt(gap * 2)
    return a, e, ops.exponential(-a * gap) * ops.rsqrt(a * (2 * math.pi)), m


def series(a: Value, e: Value) -> tuple[Value, Value, Value]:
    """The sum of a^-k d[k](e), and its derivatives with respect to e and to a."""
    inverse = 1 / a
    total = by_e = by_inverse = None
    for row in reversed(_coefficients(*((8, 18) if is_double(a) else (3, 9)))):
        value, bend = polynomial(e, row), polynomial(e, [n * c for n, c in enumerate(row)][1:])
        if total is None or by_e is None:
            total, by_e, by_inverse = value, bend, e * 0
            continue
        by_inverse = by_inverse * inverse + total
        total, by_e = total * inverse + value, by_e * inverse + bend
    assert total is not None
    assert by_e is not None
    assert by_inverse is not None
    return total, by_e, -by_inverse * inverse * inverse


@functools.cache
def _coefficients(rows: int, columns: int) -> tuple[tuple[float, ...], ...]:
    """The coefficients d[k][n], from the series of m in powers of e and the coefficients of 1 / Stirling's series."""
    length = columns + 2 * rows + 2
    alpha = _inverse(length)
    gamma = _gamma(rows)
    first = [Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, length - 2))]
    found = [first]
    for k in range(1, rows):
        before = found[-1]
        sign = (-1) ** k * gamma[k]
        found.append([sign * first[n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    return tuple(tuple(map(float, row[:columns])) for row in found)


def _inverse(length: int) -> list[Fraction]:
    """The coefficients of m in powers of e, from e = m (de / dm) (1 + m)."""
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, length):
        middle = sum((j * alpha[j] * alpha[n + 1 - j] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - middle) / (n + 1))
    return alpha


def _gamma(count: int) -> list[Fraction]:
    """The coefficients of gamma's asymptotic series: the exponential of lgamma's."""
    log = [Fraction(0)] * (count + 1)
    for k in range(1, count // 2 + 2):
        if 2 * k - 1 <= count:
            log[2 * k - 1] = bernoulli(2 * k) / (2 * k * (2 * k - 1))
    found = [Fraction(1)]
    for n in range(1, count + 1):
        found.append(sum((j * log[j] * found[n - j] for j in range(1, n + 1)), Fraction(0)) / n)
    return found
