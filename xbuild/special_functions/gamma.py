"""The logarithm of the gamma function, and its derivative, digamma."""

from __future__ import annotations

import math

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from .form import special
from .numerics import bernoulli, chebyshev, filled, fraction, is_double, polynomial, stirling_error

# lgamma(2 + t) / t in 2t, and digamma(x) / (x - root) in 2x - 3: Chebyshev coefficients computed with 50 digits.
_LGAMMA = (
    0.41418612492156676, 0.16322170068760064, -0.008658972394126285, 0.0006727515726001485, -6.139556963628233e-05,
    6.110065797003576e-06, -6.410003033826223e-07, 6.962242692768951e-08, -7.747248733788217e-09,
    8.774075140687239e-10, -1.0070266869830198e-10, 1.1678602130652374e-11, -1.3656871334744932e-12,
    1.6079351149711552e-13, -1.9039501088488732e-14, 2.2653768767833064e-15, -2.706656814831896e-16,
    3.245660731626191e-17, -3.904483378457447e-18,
)  # fmt: skip
_DIGAMMA = (
    0.983570260441567, -0.2270640863346444, 0.03336889902393011, -0.005320077271596548, 0.0008788656937820505,
    -0.00014773492650606044, 2.5060543468359146e-05, -4.2721034029993324e-06, 7.302769272465923e-07,
    -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09, 6.299717236108931e-10,
    -1.080593028883266e-10, 1.853735192053638e-11, -3.18023536582553e-12, 5.456147570322795e-13,
    -9.360993131036438e-14, 1.606064636295075e-14, -2.7555431377438815e-15, 4.727736178601912e-16,
    -8.11148420346509e-17, 1.391707769474154e-17,
)  # fmt: skip
_ROOT = {True: (1.4616321449683622, 9.549995429965697e-17), False: (1.4616321325302124, 1.2438149938918909e-08)}
"""The root of digamma: the nearest number of the type (f64 or f32), and the remainder."""


@special
def lgamma(x: Value) -> Value:
    """Return the logarithm of the absolute value of gamma(x).

    Formula: Stirling's series for x >= 8; for smaller x, the recurrence, which moves x into the interval 1.5..2.5; for
    x < 0, the reflection formula.
    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64 with x > 0, including near the zeros at 1 and 2. For x < 0, the error is at most 8
    ulp of max(1, lgamma(-x)). The integers <= 0 and the infinities give inf; NaN stays NaN.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[3])(xb.lgamma), [1.0, 5.0, -1.0])
    array([0.       , 3.1780539,       inf], dtype=float32)

    Source: XlaBuilder's math library, Lgamma; DLMF 5.5.1, 5.5.3, 5.11.1.
    """
    size = abs(x)
    positive = positive_lgamma(size)
    part = abs(fraction(size))
    reflected = -(ops.log(size) + ops.log(ops.sine(part * math.pi) / math.pi)) - positive
    pole = eq(size, math.inf) | ((x < 0) & eq(part, 0))
    return select(pole, math.inf, select(x < 0, reflected, positive))


def positive_lgamma(x: Value) -> Value:
    """The logarithm of gamma(x) for x >= 0."""
    steps = ops.floor(x - 1.5)
    product = filled(x, 1)
    for k in range(1, 7):
        product = select(steps >= k, product * (x - k), product)
    low, middle = x < 0.5, x < 1.5
    t = select(low, x, select(middle, x - 1, x - steps - 2))
    lead = select(middle, -ops.log_plus_one(t), ops.log(product))
    near = select(low, lead - ops.log(x), lead) + near_two(t)
    return select(x < 8, near, _stirling(x))


def near_two(t: Value) -> Value:
    """The logarithm of gamma(2 + t) for t in -1/2..1/2."""
    return t * chebyshev(t * 2, _LGAMMA, 9)


def _stirling(x: Value) -> Value:
    return (x - 0.5) * (ops.log(x) - 1) + (stirling_error(x) + (math.log(2 * math.pi) - 1) / 2)


@special
def digamma(x: Value) -> Value:
    """Return the digamma function, the derivative of lgamma.

    Formula: an asymptotic series for x >= 10; for smaller x, the recurrence, which moves x into the interval 1..2; for
    x < 0, the reflection formula.
    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64 with x > 0, including near the root. For x < 0, the error is at most 8 ulp of the
    largest term in the reflection formula. The integers <= 0, -inf and NaN give NaN.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> float(xb.evaluate(xb.computation(xb.f64[()])(xb.digamma), 1.0))
    -0.57721566490153...

    Source: XlaBuilder's math library, Digamma; DLMF 5.5.2, 5.5.4, 5.11.2.
    """
    size = abs(x)
    positive = positive_digamma(size)
    reflected = positive + (1 / size + math.pi / ops.tan(fraction(size) * math.pi))
    pole = (x <= 0) & eq(ops.floor(x), x)
    return select(pole, math.nan, select(x < 0, reflected, positive))


def positive_digamma(x: Value) -> Value:
    """The digamma function for x > 0."""
    steps = ops.floor(x - 1)
    total = filled(x, 0)
    for k in range(1, 9):
        total = select(steps >= k, total + 1 / (x - k), total)
    low = x < 1
    place = select(low, x + 1, x - steps)
    root, rest = _ROOT[is_double(x)]
    distance = select(low, x - (root - 1), place - root) - rest
    near = distance * chebyshev(place * 2 - 3, _DIGAMMA, 12) + select(low, -1 / x, total)
    return select(x < 10, near, _asymptotic(x))


def _asymptotic(x: Value) -> Value:
    inverse = 1 / x
    square = inverse * inverse
    terms = [float(bernoulli(2 * k) / (2 * k)) for k in range(1, 10 if is_double(x) else 4)]
    return ops.log(x) - (inverse * 0.5 + square * polynomial(square, terms))
