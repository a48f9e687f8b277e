"""The derivatives of the incomplete gamma function and of a gamma variate with respect to the first argument."""

from __future__ import annotations

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import select
from . import temme
from .dual import Dual
from .form import special
from .gamma import positive_digamma
from .incomplete_gamma import fraction_factor, is_series, is_small, power, series, small_factor
from .numerics import filled, stirling_error


@special
def igamma_grad_a(a: Value, x: Value) -> Value:
    """Return the derivative of xb.igamma with respect to a.

    Formula: the series and the continued fraction of igamma, differentiated term by term.
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: the relative error is at most 1e-5 for f32 and 2e-14 for f64, for 1e-2 <= a <= 2e3 and P from 1e-10 to 1 -
    1e-10. The result is NaN if a <= 0, x < 0 or an argument is NaN, and 0 if x is 0 or infinite.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[()], xb.f32[()])(xb.igamma_grad_a), 1.0, 2.0)
    np.float32(-0.2208253...)

    Source: XlaBuilder's math library, IgammaGradA; DLMF 8.7.1, 8.9.2, 8.12.
    """
    factor, scale = _slope(a, x)
    return _where_it_is(a, x, factor * scale)


@special
def random_gamma_grad(a: Value, x: Value) -> Value:
    """Return the derivative, with respect to a, of a gamma(a) variate whose value is x.

    Formula: -(dP/da) / (dP/dx) with P = igamma(a, x).
    Shapes: takes floats of any shape and returns the same shape. A scalar fits any shape. Floats narrower than f32 are
    computed in f32 and rounded once.
    Accuracy: the relative error is at most 1e-5 for f32 and 2e-14 for f64, for 1e-2 <= a <= 2e3 and P from 1e-10 to 1 -
    1e-10. The result is NaN if a <= 0, x < 0 or an argument is NaN, and 0 if x is 0 or infinite.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[()], xb.f32[()])(xb.random_gamma_grad), 1.0, 2.0)
    np.float32(1.63169...)

    Source: XlaBuilder's math library, RandomGammaGrad; Figurnov, Mohamed and Mnih, Implicit reparameterization
    gradients (2018).
    """
    factor, _ = _slope(a, x)
    near = temme.is_near(a, x)
    stirling = ops.exponential(stirling_error(select(near, a, 10.0)))
    return _where_it_is(a, x, -factor * x / a * select(near, stirling, 1.0))


def _where_it_is(a: Value, x: Value, found: Value) -> Value:
    ends = (x <= 0) | ~ops.is_finite(x) | ~ops.is_finite(a)
    legal = (a > 0) & (x >= 0)
    return select(legal, select(ends, 0.0, found), float("nan"))


def _slope(a: Value, x: Value) -> tuple[Value, Value]:
    """The two factors of dP/da: a slope, and x^a exp(-x) / gamma(a + 1) or, for large a near x, its approximation."""
    dual = Dual(a, filled(a, 1))
    by_power = ops.log(x) - positive_digamma(a + 1)
    lower, upper, small = series(dual, x), fraction_factor(dual, x), small_factor(dual, x) + 1
    grown = ops.exponential(select(is_small(a, x), x, 0.0))
    factor = select(
        is_series(a, x),
        _product(lower, by_power),
        select(is_small(a, x), _product(small, by_power) * grown, -_product(upper, by_power)),
    )
    near = temme.is_near(a, x)
    expanded, weight = temme.slope(a, x)
    return select(near, expanded, factor), select(near, weight, power(a, x))


def _product(factor: Dual, by_power: Value) -> Value:
    """The derivative of the product of a factor and the power, divided by the power."""
    return factor.slope + factor.value * by_power
