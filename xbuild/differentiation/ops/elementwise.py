"""Cotangents of ops that act on each element alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...core.builder import Value
from ...properties.patterns import number_in
from ..rules import Cotangents, Pullback, full, vjp, zero_derivative
from ..support import broadcast_to, is_complex, is_equal, is_greater, total

zero_derivative(
    "and", "ceil", "compare", "count_leading_zeros", "floor", "is_finite", "mulhi", "not", "or", "popcnt",
    "round_nearest_afz", "round_nearest_even", "shift_left", "shift_right_arithmetic", "shift_right_logical", "xor",
)  # fmt: skip


@vjp
def add(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return back.ct, back.ct


@vjp
def subtract(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return back.ct, ops.negate(back.ct) if back.wants(1) else None


@vjp
def multiply(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return _times(back, rhs) if back.wants(0) else None, _times(back, lhs) if back.wants(1) else None


def _times(back: Pullback, factor: Value) -> Value:
    """The cotangent times a factor; where that is an infinite constant, no cotangent stays none.

    XLA's expansions multiply by infinity in branches that a select leaves out. Tangents are left out by it themselves.
    """
    number = number_in(factor.instruction)
    if number is None or not np.isinf(number) or getattr(back.builder, "mode", "") == "jvp":
        return ops.multiply(back.ct, factor)
    return ops.select(is_equal(back.ct, back.zeros(back.ct)), back.ct, ops.multiply(back.ct, factor))


@vjp
def divide(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    quotient = back.ct / rhs
    return quotient, -(quotient * back.result) if back.wants(1) else None


@vjp
def power(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return _of_base(back, lhs, rhs) if back.wants(0) else None, _of_exponent(back, lhs) if back.wants(1) else None


def _of_base(back: Pullback, base: Value, exponent: Value) -> Value | None:
    """t * b * a^(b-1), and 0 where b is 0, of a base of 0 as well; it has a derivative by b there, too."""
    number = number_in(exponent.instruction)
    if number is not None and number == 0:
        return None
    if number is not None:
        slope = base if number == 2 else ops.power(base, full(back.builder, number - 1, base.shape))
        return ops.multiply(back.ct, full(back.builder, number, base.shape) * slope)
    is_zero = ops.and_(is_equal(exponent, back.zeros(exponent)), is_equal(base, back.zeros(base)))
    one = back.full(1, exponent)
    safe = ops.select(is_zero, one, base)
    return ops.multiply(back.ct, exponent * ops.power(safe, exponent - one))


def _of_exponent(back: Pullback, base: Value) -> Value:
    """t * log(a) * a^b, and 0 where a is 0."""
    safe = ops.select(is_equal(base, back.zeros(base)), back.full(1, base), base)
    return ops.multiply(back.ct, ops.log(safe) * back.result)


@vjp
def atan2(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    scaled = back.ct / (lhs * lhs + rhs * rhs)
    return scaled * rhs, -(scaled * lhs) if back.wants(1) else None


@vjp
def remainder(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    if not back.wants(1):
        return back.ct, None
    quotient = lhs / rhs
    return back.ct, -(back.ct * (ops.sign(quotient) * ops.floor(ops.abs(quotient))))


def _extremum(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    """The cotangent goes to the operand that is the result, half of it to each of two that are equal."""
    half = ops.select(is_equal(lhs, rhs), back.ct * 0.5, back.zeros(back.ct))

    def share(first: Value, second: Value) -> Value:
        wins = is_greater(first, second) if back.instruction.opcode == "maximum" else is_greater(second, first)
        return ops.select(wins, back.ct, half)

    return share(lhs, rhs) if back.wants(0) else None, share(rhs, lhs) if back.wants(1) else None


vjp.enter("maximum", _extremum)
vjp.enter("minimum", _extremum)


@vjp
def negate(back: Pullback, operand: Value) -> Cotangents:
    return (-back.ct,)


@vjp
def exponential(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * back.result,)


@vjp
def exponential_minus_one(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (back.result + 1.0),)


@vjp
def log(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct / operand,)


@vjp
def log_plus_one(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct / (operand + 1.0),)


@vjp
def sqrt(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct / (back.result * 2.0),)


@vjp
def rsqrt(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (back.result / operand * -0.5),)


@vjp
def cbrt(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct / (back.result * back.result * 3.0),)


@vjp
def logistic(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (back.result * (1.0 - back.result)),)


@vjp
def tanh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (1.0 - back.result * back.result),)


@vjp
def sine(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * ops.cosine(operand),)


@vjp
def cosine(back: Pullback, operand: Value) -> Cotangents:
    return (-(back.ct * ops.sine(operand)),)


@vjp
def tan(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (back.result * back.result + 1.0),)


@vjp
def sinh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * ops.cosh(operand),)


@vjp
def cosh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * ops.sinh(operand),)


@vjp
def asin(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * ops.rsqrt(1.0 - operand * operand),)


@vjp
def acos(back: Pullback, operand: Value) -> Cotangents:
    return (-(back.ct * ops.rsqrt(1.0 - operand * operand)),)


@vjp
def asinh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * ops.rsqrt(operand * operand + 1.0),)


@vjp
def acosh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (ops.rsqrt(operand - 1.0) * ops.rsqrt(operand + 1.0)),)


@vjp
def atanh(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct / (1.0 - operand * operand),)


@vjp
def erf(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct * (ops.exponential(-(operand * operand)) * (2 / math.sqrt(math.pi))),)


@vjp
def abs(back: Pullback, operand: Value) -> Cotangents:
    """t * sign(a), and t at 0; of a complex number t * conj(z) / |z|, and 0 at 0."""
    if not is_complex(operand):
        return (ops.select(is_greater(operand, back.zeros(operand), "GE"), back.ct, -back.ct),)
    scaled = back.ct / _nonzero(back, back.result)
    return (ops.complex(scaled * ops.real(operand), -(scaled * ops.imag(operand))),)


def _nonzero(back: Pullback, size: Value) -> Value:
    """A size, and 1 where it is 0."""
    return ops.select(is_equal(size, back.zeros(size)), back.full(1, size), size)


@vjp
def sign(back: Pullback, operand: Value) -> Cotangents:
    """0 for real numbers; of a complex number what turns it, since z / |z| does not change along z."""
    if not is_complex(operand):
        return (None,)
    turned = -ops.imag(back.ct * back.result)
    scaled = turned / _nonzero(back, ops.abs(operand))
    return (ops.complex(-(scaled * ops.imag(back.result)), -(scaled * ops.real(back.result))),)


@vjp
def real(back: Pullback, operand: Value) -> Cotangents:
    return (ops.complex(back.ct, back.zeros(back.ct)) if is_complex(operand) else back.ct,)


@vjp
def imag(back: Pullback, operand: Value) -> Cotangents:
    return (ops.complex(back.zeros(back.ct), -back.ct) if is_complex(operand) else None,)


@vjp
def complex(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    return ops.real(back.ct), -ops.imag(back.ct) if back.wants(1) else None


@vjp
def copy(back: Pullback, operand: Value) -> Cotangents:
    return (back.ct,)


@vjp
def clamp(back: Pullback, min: Value, operand: Value, max: Value) -> Cotangents:
    """The cotangent goes to the operand strictly between the bounds, and to a bound that the operand is beyond."""
    shape: Any = operand.shape
    low, high = broadcast_to(min, shape.dims), broadcast_to(max, shape.dims)
    zeros = back.zeros(back.ct)
    inside = ops.and_(is_greater(operand, low), is_greater(high, operand))
    found = [
        ops.select(is_greater(low, operand), back.ct, zeros) if back.wants(0) else None,
        ops.select(inside, back.ct, zeros) if back.wants(1) else None,
        ops.select(is_greater(operand, high), back.ct, zeros) if back.wants(2) else None,
    ]
    for n, bound in ((0, min), (2, max)):
        part = found[n]
        if part is not None and bound.shape.rank < shape.rank:  # type: ignore[union-attr]
            found[n] = total(part)
    return tuple(found)


@vjp
def select(back: Pullback, pred: Value, on_true: Value, on_false: Value) -> Cotangents:
    zeros = back.zeros(back.ct)
    return (
        None,
        ops.select(pred, back.ct, zeros) if back.wants(1) else None,
        ops.select(pred, zeros, back.ct) if back.wants(2) else None,
    )
