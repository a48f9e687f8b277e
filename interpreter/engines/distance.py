"""Distance of two arrays in units in the last place, and the tolerance of each element type."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from shape_inference import PrimitiveType, primitive_type

Array: TypeAlias = Any

_UNSIGNED = (ml_dtypes.float8_e8m0fnu,)  # the type has exponents alone: its bits are in the order of its values

# The tolerance by width of the type, in eps relative to the largest magnitude of the array: XLA sums in another order,
# and its elementary functions differ in the last places. Integers and predicates must be equal.
EPS_OF_BITS = {64: 64.0, 32: 64.0, 16: 4.0, 8: 1.0, 6: 1.0, 4: 1.0}


def allowed(dtype: PrimitiveType) -> float:
    """The tolerance of an element type in its own eps; 0 for integers and predicates.

    >>> import xbuild as xb
    >>> allowed(xb.f32), allowed(xb.bf16), allowed(xb.s32), allowed(xb.c64)
    (64.0, 4.0, 0.0, 64.0)
    """
    if dtype.kind == "complex":
        return EPS_OF_BITS[dtype.bits // 2]
    if dtype.dtype in _UNSIGNED:
        return 0.5  # the next smaller value is half of the value
    return EPS_OF_BITS[dtype.bits] if dtype.is_float else 0.0


def distance(a: Array, b: Array) -> Array:
    """The distance of two arrays, in values of their type, by element; inf where one is NaN, or integers differ."""
    if a.dtype.kind == "c":
        return np.maximum(distance(a.real, b.real), distance(a.imag, b.imag))
    if not is_float(a.dtype):
        return np.where(a == b, 0.0, np.inf)
    left, right = _ordered(a), _ordered(b)
    apart = (np.maximum(left, right) - np.minimum(left, right)).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a signalling NaN would warn
        one, other = np.isnan(a).astype(bool), np.isnan(b).astype(bool)
    return np.where(one & other, 0.0, np.where(one | other, np.inf, apart))


def is_float(dtype: np.dtype[Any]) -> bool:
    return primitive_type(dtype).is_float


def _ordered(values: Array) -> Array:
    """The bits of floats as unsigned ints in the order of the floats; -0 stands just below +0."""
    kind = np.dtype(f"u{values.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(kind).reshape(values.shape)
    if values.dtype in _UNSIGNED:
        return bits
    sign = kind.type(1 << (primitive_type(values.dtype).bits - 1))
    magnitude = bits & (sign - kind.type(1))
    return np.where(bits & sign, sign - kind.type(1) - magnitude, sign + magnitude).astype(kind)


def beyond(a: Array, b: Array, eps: float | None = None) -> Array:
    """Where two arrays differ by more than `eps` (by default their type's tolerance) times their largest magnitude.

    A NaN equals a NaN, and an infinity equals itself; both are beyond any other number.
    """
    dtype = primitive_type(a.dtype)
    factor = allowed(dtype) if eps is None else eps
    if not (dtype.is_float or dtype.kind == "complex"):
        return np.asarray(a != b)
    wide = np.complex128 if dtype.kind == "complex" else np.float64
    with np.errstate(all="ignore"):
        left, right = a.astype(wide), b.astype(wide)
        magnitudes = np.maximum(np.abs(left), np.abs(right))
        finite = magnitudes[np.isfinite(magnitudes)]
        tolerance = factor * _eps(a.real.dtype) * (finite.max() if finite.size else 0.0)
        near = np.abs(left - right) <= tolerance
    both_nan = np.isnan(left) & np.isnan(right)
    return ~(near | both_nan | (left == right))


def _eps(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
