"""Functions of real and complex numbers that NumPy lacks, or computes differently from XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy import count_nonzero

from xbuild.core.attributes import Array

from ..rules.denormals import keeping

Kernel: TypeAlias = Callable[..., Any]

_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_NEGATIVE_ZERO = {size: np.array(np.iinfo(bits).min, bits)[()] for size, bits in _BITS.items()}


def maximum(lhs: Array, rhs: Array) -> Any:
    """The maximum: NaN if either operand is NaN, and +0 above -0, where NumPy's result depends on operand order."""
    result = np.maximum(lhs, rhs)
    if (size := result.size) <= _SMALL and count_nonzero(result) == size:
        return result
    size = result.dtype.itemsize
    if _meet_at_zero(lhs, rhs) and (result.view(_BITS[size]) == _NEGATIVE_ZERO[size]).any():
        return np.where((lhs == 0) & (rhs == 0), lhs + rhs, result)
    return result


def minimum(lhs: Array, rhs: Array) -> Any:
    """The minimum: NaN if either operand is NaN; -0 is less than +0."""
    result = np.minimum(lhs, rhs)
    if (size := result.size) <= _SMALL and count_nonzero(result) == size:
        return result
    if _meet_at_zero(lhs, rhs) and (result.view(_BITS[result.dtype.itemsize]) == 0).any():
        return np.where((lhs == 0) & (rhs == 0), -(-lhs - rhs), result)
    return result


def beside_number(function: Kernel, numbers: Array, place: int) -> Kernel:
    """The function `maximum` or `minimum` with one number, as a function of the other operand.

    NumPy takes four times as long with one number as with a row of it, so the operand is read in rows. `numbers` is the
    number broadcast to the operand's extents, and `place` is its place among the operands.
    """
    length = next((n for n in range(min(numbers.size, _LONGEST_ROW), _LEAST_ROW - 1, -1) if numbers.size % n == 0), 0)
    row = np.full(length, numbers.flat[0])

    def complete(operand: Array) -> Any:
        return function(numbers, operand) if place == 0 else function(operand, numbers)

    def by_rows(operand: Array) -> Any:
        if not operand.flags.c_contiguous:
            return complete(operand)
        rows = operand.reshape(-1, length)
        return (function(row, rows) if place == 0 else function(rows, row)).reshape(operand.shape)

    return by_rows if length else complete


_LEAST_ROW, _LONGEST_ROW = 128, 8192
"""The lengths of the rows of one number: shorter ones are slow, longer ones leave the cache."""

_SMALL = 4096
"""The largest number of elements of a result that is searched for zeros first."""


def _meet_at_zero(lhs: Array, rhs: Array) -> bool:
    """Whether both operands may be zero at the same index; only operands of rank 0 are examined."""
    return bool((lhs.ndim or lhs == 0) and (rhs.ndim or rhs == 0))


def choose(pred: Array, on_true: Array, on_false: Array) -> Any:
    """The same bits as `np.where`, computed without a branch per element, since irregular masks make branches slow."""
    return chooser(on_true.dtype, pred.size)(pred, on_true, on_false)


@cache
def chooser(dtype: np.dtype[Any], size: int) -> Callable[[Array, Any, Any], Any]:
    """The function `choose` for arrays of a type and a number of elements."""
    bits = _BITS.get(dtype.itemsize)
    if bits is None or size < 4096:
        return np.where

    def choose_bits(pred: Array, on_true: Any, on_false: Any) -> Any:
        mask = np.negative(pred.view(np.int8)).astype(bits, copy=False)
        ours, theirs = _number_or_array(on_true.view(bits)), _number_or_array(on_false.view(bits))
        chosen = mask & (ours ^ theirs)
        if theirs.ndim or theirs:
            chosen ^= theirs
        return chosen.view(dtype)

    return choose_bits


def _number_or_array(array: Any) -> Any:
    """The number of which an array is a broadcast, with which NumPy computes faster; else the array."""
    return array if any(array.strides) else array.flat[0]


def has_zero(array: Array) -> bool:
    """Whether an element is zero; NumPy counts floats one by one, and compares many at once."""
    if array.size <= _FEW:
        return bool(count_nonzero(array) != array.size)
    return bool(count_nonzero(array == 0))


_FEW = 2048
"""The largest number of floats that NumPy counts faster than it compares them."""


def near_zero(kernel: Kernel) -> Kernel:
    """The kernel of a function with f(x) = x near zero; as in XLA, it returns denormal operands even in flush mode."""

    def precise(operand: Array) -> Any:
        result = kernel(operand)
        if not has_zero(result):
            return result
        return np.where(result == 0, operand, result)[()]

    return precise


def tanh(operand: Array) -> Any:
    """Hyperbolic tangent: a denormal f64 operand is flushed as in arithmetic, a denormal f32 operand is returned."""
    return np.tanh(operand) if operand.dtype == np.float64 else _tanh_in_single(operand)


_tanh_in_single = near_zero(np.tanh)


def atan2(lhs: Array, rhs: Array) -> Any:
    """Arctangent of lhs / rhs: where lhs is a flushed denormal number and rhs is 0, the result is ±π/2, as in XLA."""
    result = np.arctan2(lhs, rhs)
    over_zero = rhs == 0
    if lhs.dtype.itemsize < 4 or not over_zero.any():
        return result
    is_flushed = over_zero & (lhs == 0) & (lhs.view(_BITS[lhs.dtype.itemsize]) << 1 != 0)
    return np.where(is_flushed, np.copysign(lhs.dtype.type(np.pi / 2), lhs), result)[()]


def power(lhs: Array, rhs: Array) -> Any:
    """The C library's `pow`, as in XLA: denormal operands are not flushed, and only the result may be flushed."""
    return np.multiply(keeping(np.power, lhs, rhs), 1)


def sign(operand: Array) -> Any:
    """The sign as -1, 0 or 1; the result is the operand itself for ±0 and NaN."""
    return np.copysign(np.sign(operand), operand)


def complex_sign(operand: Array) -> Any:
    """z / |z|, part by part: an infinite part gives NaN, and a finite one beside it 0. Of 0 it is 0."""
    size = np.abs(operand)
    found = np.empty(operand.shape, operand.dtype)
    found.real, found.imag = operand.real / size, operand.imag / size
    found[size == 0] = 0
    return found[()]


def round_nearest_afz(operand: Array) -> Any:
    """Round to nearest, with halves away from zero.

    The number added is the one just below 0.5, so that 0.49999997 gives 0 and large odd numbers are unchanged.
    """
    under_half = np.nextafter(operand.dtype.type(0.5), operand.dtype.type(0))
    return np.trunc(operand + np.copysign(under_half, operand))


def logistic(operand: Array) -> Any:
    return 1 / (1 + np.exp(-operand))


def rsqrt(operand: Array) -> Any:
    return 1 / np.sqrt(operand)


def complex_rsqrt(operand: Array) -> Any:
    return np.where(np.isinf(operand), 0, 1 / np.sqrt(operand)).astype(operand.dtype)


# For single and double precision: erf(x) / x as a polynomial in x² for |x| <= 1, exp(x²) erfc(x) as one in
# (x - 3.75) / (x + 3.75), scaled to -1..1, for 1 <= x <= END, and END, where erf is 1. They are interpolated at
# Chebyshev points with 60 digits; their errors are below 1e-9 and 1e-17.
_ERF = {
    4: (
        (
            1.128379167, -0.3761263848, 0.1128378262, -0.02686543831, 0.005221053413, -0.0008484396551,
            0.0001126825389, -9.673590812e-06,
        ),
        (
            0.2412230775, -0.1356269978, 0.03919137174, -0.009370764798, 0.001841558314, -0.0002913929713,
            3.542121259e-05, -2.903700939e-06, 8.813883515e-08,
        ),
        4.0,
    ),
    8: (
        (
            1.1283791670955126, -0.3761263890318375, 0.11283791670954882, -0.026866170645077334, 0.005223977624823223,
            -0.0008548326981129666, 0.00012055331122299266, -1.4925595519506043e-05, 1.6461004480962034e-06,
            -1.6350354461959655e-07, 1.4660051998394848e-08, -1.1373902296430911e-09, 5.958930743134941e-11,
        ),
        (
            0.20100586278980304, -0.14956560740980876, 0.054639014200511135, -0.01688594237963596, 0.004376991048772834,
            -0.0009330603369324369, 0.00015707827811502673, -1.8986211068364088e-05, 1.1522175342089556e-06,
            9.099149645923368e-08, -2.6898369741573668e-08, 1.2109097065314568e-09, 3.4591566174567207e-10,
            -4.3507837882015726e-11, -4.163825445871789e-12, 9.128674874526761e-13, 5.435002394270322e-14,
        ),
        6.0,
    ),
}  # fmt: skip


def erf(operand: Array) -> Any:
    """The error function, computed in the operand's precision; the result for NaN is NaN."""
    near, far, end = _ERF[operand.dtype.itemsize]
    low, high = (1 - 3.75) / (1 + 3.75), (end - 3.75) / (end + 3.75)
    size = np.minimum(np.abs(operand), operand.dtype.type(end))
    square = size * size
    place = ((size - 3.75) / (size + 3.75) * 2 - (low + high)) / (high - low)
    beyond = np.copysign(1 - np.exp(-square) * _polynomial(far, place), operand)
    return np.where(size < 1, operand * _polynomial(near, np.minimum(square, 1)), beyond)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Any:
    total = x * coefficients[-1]
    for coefficient in reversed(coefficients[1:-1]):
        total += coefficient
        total *= x
    return total + coefficients[0]


def complex_of(real: Array, imaginary: Array) -> Any:
    """Complex numbers from their parts; `real + 1j * imaginary` would lose infinities and signs of zeros."""
    result = np.empty(np.broadcast(real, imaginary).shape, np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def complex_divide(lhs: Array, rhs: Array) -> Any:
    """lhs / rhs; as in C, infinity / finite is infinity and finite / infinity is zero, where NumPy gives NaN."""
    quotient = np.divide(lhs, rhs)
    lost = np.isnan(quotient.real) & np.isnan(quotient.imag)
    if not lost.any():
        return quotient
    above, below = np.isinf(lhs) & np.isfinite(rhs), np.isfinite(lhs) & np.isinf(rhs)
    direction = _corner(lhs, above) * np.conj(_corner(rhs, below))
    ends = complex_of(*(np.where(above, part * np.inf, part * 0) for part in (direction.real, direction.imag)))
    return np.where(lost & (above | below), ends, quotient)


def _corner(operand: Array, infinite: Array) -> Any:
    """The operand, where `infinite` is true, with each infinite part replaced by ±1 and each finite part by ±0."""
    parts = (np.where(infinite, np.copysign(np.isinf(part), part), part) for part in (operand.real, operand.imag))
    return complex_of(*(part.astype(operand.real.dtype) for part in parts))


def complex_exponential_minus_one(operand: Array) -> Any:
    """NumPy's `expm1`, except that an operand with zero imaginary part, infinity included, gives a real result."""
    result = np.expm1(operand)
    flat = operand.imag == 0
    return np.where(flat, complex_of(result.real, operand.imag), result) if flat.any() else result


def complex_log_plus_one(operand: Array) -> Any:
    """log(1 + z), exact near zero and where |1 + z| is near 1: |1 + z|² - 1 is summed with its rounding errors."""
    z = operand.astype(np.complex128)
    excess = _excess(z.real, z.imag)
    near, far = np.log1p(excess) / 2, np.log(np.hypot(1 + z.real, z.imag))
    size = np.where(np.abs(excess) < 0.5, near, far)
    return complex_of(size, np.arctan2(z.imag, 1 + z.real)).astype(operand.dtype)


def _excess(x: Array, y: Array) -> Any:
    """x² + y² + 2x in twice the precision, rounded once.

    Source: Dekker, A floating-point technique for extending the available precision; Knuth, TAOCP 2, 4.2.2.
    """
    (xx, xx_error), (yy, yy_error) = _squared(x), _squared(y)
    first, first_error = _added(2 * x, xx)
    total, total_error = _added(first, yy)
    exact = total + (total_error + first_error + xx_error + yy_error)
    return np.where(np.isfinite(exact), exact, x * x + y * y + 2 * x)


def _added(a: Array, b: Array) -> tuple[Any, Any]:
    """The rounded sum a + b, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _squared(x: Array) -> tuple[Any, Any]:
    """The rounded square of x, and its rounding error, computed from exact products of the halves of x."""
    square, (high, low) = x * x, _halves(x)
    return square, ((high * high - square) + 2 * high * low) + low * low


def _halves(x: Array) -> tuple[Any, Any]:
    """Two numbers of 26 significant bits whose sum is x."""
    stretched = x * 134217729.0
    high = stretched - (stretched - x)
    return high, x - high


def lost_by_product(a: Array, b: Array, product: Array) -> Any:
    """The exact rounding error of a product; 0 where computing the error overflows."""
    if product.dtype == np.float32:
        lost = a.astype(np.float64) * b - product
    else:
        (high, low), (upper, lower) = _halves(a), _halves(b)
        lost = ((high * upper - product) + high * lower + low * upper) + low * lower
    return np.where(np.isfinite(lost), lost, 0)


def complex_logistic(operand: Array) -> Any:
    """1 / (1 + exp(-z)), computed as exp(z) / (1 + exp(z)) for a negative real part, so that exp cannot overflow."""
    inner = np.exp(np.where(operand.real < 0, operand, -operand))
    return np.where(operand.real < 0, inner, 1) / (1 + inner)


def complex_atan2(lhs: Array, rhs: Array) -> Any:
    """-i log((x + i y) / sqrt(x² + y²)), computed in double precision."""
    y, x = lhs.astype(np.complex128), rhs.astype(np.complex128)
    return (-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))).astype(lhs.dtype)
