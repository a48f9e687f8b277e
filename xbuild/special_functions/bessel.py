"""The modified Bessel functions of the first kind, of order 0 and 1, scaled by exp(-|x|)."""

from __future__ import annotations

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import maximum, minimum, select
from .form import special
from .numerics import chebyshev

# Chebyshev coefficients computed with 50 digits: exp(-x) I0(x) and exp(-x) I1(x) (1 / x + 1 / 2) for 0 <= x <= 8 in
# x / 4 - 1, and sqrt(x) exp(-x) I0(x), sqrt(x) exp(-x) I1(x) for x >= 8 in 16 / x - 1.
_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11,
    2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14,
    1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
)  # fmt: skip
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,
    3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18, -7.233180487874754e-18,
)  # fmt: skip
_I1_NEAR = (
    0.20246426130761644, -0.17401870994002142, 0.07856847650361223, -0.03146783590381136, 0.01066928098915836,
    -0.0028093827089391895, 0.00039161148768121316, 0.0001279915485877045, -0.00013847539795142257,
    7.481915976638608e-05, -3.1587026255434554e-05, 1.1466411415519913e-05, -3.7192817580959458e-06,
    1.0999647040842556e-06, -3.0033419169186816e-07, 7.635923887781945e-08, -1.8193228880198796e-08,
    4.082347159482495e-09, -8.662075644922145e-10, 1.7439052274904178e-10, -3.3410312736112515e-11,
    6.106642442190628e-12, -1.0672582430285505e-12, 1.7871445574745552e-13, -2.8725399110808284e-14,
    4.439256647302868e-15, -6.606215725581079e-16, 9.479847345563611e-17, -1.3134627982552735e-17,
    1.759232608564956e-18,
)  # fmt: skip
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18, -9.314178867326884e-19, -1.242193275194891e-18,
)  # fmt: skip


@special
def bessel_i0e(x: Value) -> Value:
    """Return exp(-|x|) I0(x), where I0 is the modified Bessel function of the first kind of order 0.

    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64. Infinities give 0; NaN stays NaN.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(xb.bessel_i0e), [0.0, 1.0])
    array([1.       , 0.4657596], dtype=float32)

    Source: XlaBuilder's math library, BesselI0e; DLMF 10.25.2.
    """
    size = abs(x)
    near = chebyshev(minimum(size, 8) / 4 - 1, _I0_NEAR, 19)
    return select(size <= 8, near, _far(size, _I0_FAR, 7))


@special
def bessel_i1e(x: Value) -> Value:
    """Return exp(-|x|) I1(x), where I1 is the modified Bessel function of the first kind of order 1.

    Shapes: takes floats of any shape and returns the same shape. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: 8 ulp for f32 and f64. Infinities give 0; zeros and NaN are unchanged.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(xb.bessel_i1e), [0.0, -1.0])
    array([ 0.        , -0.20791042], dtype=float32)

    Source: XlaBuilder's math library, BesselI1e; DLMF 10.25.2.
    """
    size = abs(x)
    near = x * chebyshev(minimum(size, 8) / 4 - 1, _I1_NEAR, 19) / (1 + size * 0.5)
    return select(size <= 8, near, ops.sign(x) * _far(size, _I1_FAR, 7))


def _far(size: Value, coefficients: tuple[float, ...], single: int) -> Value:
    return chebyshev(16 / maximum(size, 8) - 1, coefficients, single) * ops.rsqrt(size)
