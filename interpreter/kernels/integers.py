"""XLA's integer arithmetic: results wrap, quotients round towards zero, every shift and division is defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference.types import PRIMITIVES, primitive_type
from xbuild.core.attributes import Array

from .lifting import narrowed, widened


def divide(lhs: Array, rhs: Array) -> Any:
    """The quotient rounded towards zero; all bits are set where the divisor is zero."""
    if lhs.dtype.itemsize < 8:  # a float of twice the width is exact enough
        quotient = np.divide(lhs, rhs).astype(np.int64).astype(lhs.dtype)
    else:
        quotient = np.floor_divide(lhs - np.fmod(lhs, rhs) if lhs.dtype.kind == "i" else lhs, rhs)
    zero = rhs == 0
    return np.where(zero, ~lhs.dtype.type(0), quotient) if zero.any() else quotient


def remainder(lhs: Array, rhs: Array) -> Any:
    """The remainder, with the sign of the dividend; the dividend itself where the divisor is zero."""
    rest = np.fmod(lhs, rhs)
    zero = rhs == 0
    return np.where(zero, lhs, rest) if zero.any() else rest


def power(lhs: Array, rhs: Array) -> Any:
    """The power modulo 2^bits; with a negative exponent, the inverse of 1 and -1, and 0 for every other base."""
    negative = rhs < 0
    if not negative.any():
        return np.power(lhs, rhs)
    one = lhs.dtype.type(1)
    odd = (rhs & one).astype(bool)
    inverse = np.where(lhs == 1, one, np.where(lhs == -1, np.where(odd, -one, one), 0 * one))
    return np.where(negative, inverse, np.power(lhs, np.maximum(rhs, 0 * one)))


def as_unsigned(operand: Array) -> Array:
    """The same bits as an unsigned type of the same width."""
    return _reinterpreted(operand, "u")


def as_signed(operand: Array) -> Array:
    """The same bits as a signed type of the same width."""
    return _reinterpreted(operand, "s")


def _reinterpreted(operand: Array, letter: str) -> Array:
    of = primitive_type(operand.dtype)
    dtype = PRIMITIVES[f"{letter}{of.bits}"].dtype
    return operand.view(dtype) if of.is_native else widened(operand).astype(dtype)


def shift_right_logical(lhs: Array, rhs: Array) -> Any:
    left, right = widened(as_unsigned(lhs)), widened(as_unsigned(rhs))
    return _back(np.right_shift(left, right), lhs.dtype)


def shift_right_arithmetic(lhs: Array, rhs: Array) -> Any:
    left, right = widened(as_signed(lhs)), widened(as_signed(rhs))
    return _back(np.right_shift(left, right), lhs.dtype)


def count_leading_zeros(operand: Array) -> Any:
    """The number of leading zeros: the bit width minus the popcount after the leading one is copied to lower bits."""
    width = primitive_type(operand.dtype).bits
    smeared = widened(as_unsigned(operand))
    shift = 1
    while shift < width:
        smeared = smeared | np.right_shift(smeared, smeared.dtype.type(shift))
        shift *= 2
    return (np.uint8(width) - np.bitwise_count(smeared)).astype(operand.dtype)


def popcnt(operand: Array) -> Any:
    return np.bitwise_count(widened(as_unsigned(operand))).astype(operand.dtype)


def mulhi(lhs: Array, rhs: Array) -> Any:
    """The upper half of the product of double width."""
    of = primitive_type(lhs.dtype)
    if of.bits == 64:
        return _mulhi64(lhs, rhs)
    dtype = np.int64 if of.kind == "signed" else np.uint64
    product = widened(lhs).astype(dtype) * widened(rhs).astype(dtype)
    return np.right_shift(product, dtype(of.bits)).astype(lhs.dtype)


def _mulhi64(lhs: Array, rhs: Array) -> Any:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = as_unsigned(lhs), as_unsigned(rhs)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    high = a1 * b1 + (middle >> half) + (a0 * b1 + (middle & low) >> half)
    if lhs.dtype.kind == "u":
        return high
    return high.view(np.int64) - np.where(lhs < 0, rhs, 0) - np.where(rhs < 0, lhs, 0)


def _back(bits: Array, dtype: np.dtype[Any]) -> Array:
    """Bits reinterpreted as the type `dtype` of the same width."""
    return bits.view(dtype) if dtype.isbuiltin == 1 else narrowed(bits, dtype)
