"""The complementary error function and the inverse error function; erf itself is an op."""

from __future__ import annotations

import math

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, minimum, select
from .form import special
from .numerics import chebyshev, is_double

# (1 + 2x) exp(x²) erfc(x) for all x >= 0, in t = (x - 3.75) / (x + 3.75).
# Chebyshev coefficients computed with 50 digits; the variable is that of Shepherd and Laframboise (1981).
_SCALED = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189, -0.026658668435305753,
    0.009074997670705265, -0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05, 4.13902798607301e-06,
    7.74038306619849e-07, -2.1886401049234397e-07, 1.076499946567091e-08, 4.521959811218287e-09,
    -7.754400208831351e-10, -6.318088340886684e-11, 2.86879501093067e-11, 1.9455868545777347e-13,
    -9.65469674843344e-13, 3.25254814814874e-14, 3.3478119482868056e-14, -1.864562880419313e-15,
    -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17,
)  # fmt: skip
# erf_inv(x) / x in w = -log(1 - x²): for w <= 6 in w / 3 - 1, beyond in sqrt(w), scaled to -1..1.
# The variables are those of Giles, Approximating the erfinv function (2010); the coefficients as above.
_NEAR = (
    1.6032187843614276, 0.7065114598352629, -0.018563518253529174, -0.006322936481916675, 0.0017152748065213783,
    -0.00010090171263236434, -4.472783685679211e-05, 1.1536323222418791e-05, -2.1707108033382995e-07,
    -4.1754298203284093e-07, 7.78699623588968e-08, 3.872092257424227e-09, -3.777038640094083e-09,
    4.6386529158896234e-10, 7.770143484817043e-11, -3.174763383548652e-11, 2.0231645192233355e-12,
    9.765600091051987e-13, -2.4425065566813935e-13, -3.3311728365333843e-16, 1.0213858321281266e-14,
    -1.6679796813597045e-15, -1.519620539702162e-16, 9.487880520881664e-17, -9.272709088890916e-18,
)  # fmt: skip
_FAR = (
    4.119725654534839, 1.8393102249508797, 0.0031058634204801567, -0.0017716420074548307, 0.0006917048126285146,
    -0.0002711754018107765, 0.00010932023458889641, -4.199456805815618e-05, 1.3940381332464283e-05,
    -3.4559086108184535e-06, 3.351020464646085e-07, 2.2456754762695417e-07, -1.5906629027986042e-07,
    5.610833113422126e-08, -1.0170819730234594e-08, -1.1454904877718391e-09, 1.579275050687966e-09,
    -5.930952590172628e-10, 1.0686982637182824e-10, 9.228228264722526e-12, -1.3241504656997307e-11,
    4.595709072042049e-12, -7.68397678174913e-13, -4.963542547170259e-14, 7.584233106963342e-14,
    -2.656759657531759e-14, 5.588388635893447e-15, -5.326705328516633e-16, -1.7806478014284677e-16,
    1.357973742049353e-16, -5.4078240841961904e-17, 1.4162523892080798e-17,
)  # fmt: skip
_FAR_FROM, _FAR_TO = math.sqrt(6), 6.1


@special
def erfc(x: Value) -> Value:
    """Return the complementary error function 1 - erf(x), with full relative precision where it is small.

    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64. NaN stays NaN; inf gives 0, and -inf gives 2.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> float(xb.evaluate(xb.computation(xb.f64[()])(xb.erfc), 10.0))
    2.0884875837625...e-45

    Source: XlaBuilder's math library, Erfc; DLMF 7.2.2.
    """
    size = minimum(abs(x), 30)  # erfc(30) is zero
    tail = exp_of_minus_square(size) * _scaled(size) / (1 + 2 * size)
    far = select(x < 0, 2 - tail, tail)
    return select(size < 0.5, 1 - ops.erf(x), far)


def _scaled(size: Value) -> Value:
    return chebyshev((size - 3.75) / (size + 3.75), _SCALED, 14)


def exp_of_minus_square(x: Value) -> Value:
    """The exponential exp(-x²) without error of x²: the square of the upper half of x's digits is exact."""
    high = ops.reduce_precision(x, exponent_bits=11 if is_double(x) else 8, mantissa_bits=24 if is_double(x) else 10)
    return ops.exponential(-(high * high)) * ops.exponential((high - x) * (high + x))


@special
def erf_inv(x: Value) -> Value:
    """Return the inverse error function: the y for which erf(y) is x.

    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64. The result is infinite for -1 and 1, and NaN for |x| > 1.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[3])(xb.erf_inv), [0.0, 0.5, 1.0])
    array([0.        , 0.47693628,        inf], dtype=float32)

    Source: XlaBuilder's math library, ErfInv.
    """
    w = -ops.log_plus_one(-(x * x))
    w = select(abs(x) < 0.5, w, -ops.log((1 - x) * (1 + x)))
    near = chebyshev(w / 3 - 1, _NEAR, 12)
    far = chebyshev((ops.sqrt(w) * 2 - (_FAR_FROM + _FAR_TO)) / (_FAR_TO - _FAR_FROM), _FAR, 15)
    inner = x * select(w <= 6, near, far)
    return select(abs(x) < 1, inner, select(eq(abs(x), 1), x * math.inf, math.nan))
