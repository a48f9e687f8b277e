"""Cotangents of elementwise ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...core.builder import Value
from ...properties.patterns import number_in
from ..arrays import broadcast_to, is_complex, is_equal, is_greater, sign_on_side, sum_all
from ..branches import first_side_mask
from ..rules import SIDES, Cotangents, Pullback, full, vjp, zero_derivative

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
    """The cotangent times a factor; for an infinite constant, a zero cotangent stays zero.

    XLA's expansions multiply by infinity in branches that a select drops. Tangents are dropped by the select itself.
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
    return _base_cotangent(back, lhs, rhs) if back.wants(0) else None, _exponent_cotangent(back, lhs) if back.wants(
        1
    ) else None


def _base_cotangent(back: Pullback, base: Value, exponent: Value) -> Value | None:
    """t * b * a^(b-1), and 0 for b = 0, even at a = 0, where the derivative by b exists as well."""
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


def _exponent_cotangent(back: Pullback, base: Value) -> Value:
    """t * log(a) * a^b, and 0 for a = 0."""
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


def _pull_back_extremum(back: Pullback, lhs: Value, rhs: Value) -> Cotangents:
    """The cotangent goes to the operand that is the result, or half to each if they are equal."""
    half = ops.select(is_equal(lhs, rhs), back.ct * 0.5, back.zeros(back.ct))

    def share(first: Value, second: Value) -> Value:
        wins = is_greater(first, second) if back.instruction.opcode == "maximum" else is_greater(second, first)
        return ops.select(wins, back.ct, half)

    return share(lhs, rhs) if back.wants(0) else None, share(rhs, lhs) if back.wants(1) else None


vjp.enter("maximum", _pull_back_extremum)
vjp.enter("minimum", _pull_back_extremum)


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
    """t * sign(a), which is 0 at 0; for a complex number t * conj(z) / |z|, and 0 at 0.

    If the computation compares a with 0, the slope at 0 is that of the side to which 0 belongs. If only odd products
    use a, the slope is 1, like their sign of 0.
    """
    if not is_complex(operand):
        side = back.memory.get(SIDES, {}).get(back.instruction.operands[0])
        if side is None:
            return (ops.multiply(back.ct, ops.sign(operand)),)
        if side == 0:  # a comparison of a with 0 would pick one side in the next derivative
            return (ops.multiply(back.ct, sign_on_side(ops.sign(operand), side)),)
        is_positive = is_greater(operand, back.zeros(operand), "GE" if side > 0 else "GT")
        return (ops.select(is_positive, back.ct, -back.ct),)
    scaled = back.ct / _replace_zero(back, back.result)
    return (ops.complex(scaled * ops.real(operand), -(scaled * ops.imag(operand))),)


def _replace_zero(back: Pullback, size: Value) -> Value:
    """A magnitude, with 0 replaced by 1."""
    return ops.select(is_equal(size, back.zeros(size)), back.full(1, size), size)


@vjp
def sign(back: Pullback, operand: Value) -> Cotangents:
    """0 for real numbers; for a complex number only its rotation counts, since z / |z| is constant along z."""
    if not is_complex(operand):
        return (None,)
    turned = -ops.imag(back.ct * back.result)
    scaled = turned / _replace_zero(back, ops.abs(operand))
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
    """The cotangent goes to the operand if it is strictly between the bounds, otherwise to the bound that it exceeds.

    If the lower bound is not below the upper one, the result is the upper one, and the lower one gets nothing.
    """
    shape: Any = operand.shape
    low, high = broadcast_to(min, shape.dims), broadcast_to(max, shape.dims)
    zeros = back.zeros(back.ct)
    inside = ops.and_(is_greater(operand, low), is_greater(high, operand))
    cotangents = [
        ops.select(ops.and_(is_greater(low, operand), is_greater(high, low)), back.ct, zeros)
        if back.wants(0)
        else None,
        ops.select(inside, back.ct, zeros) if back.wants(1) else None,
        ops.select(is_greater(operand, high), back.ct, zeros) if back.wants(2) else None,
    ]
    for n, bound in ((0, min), (2, max)):
        part = cotangents[n]
        if part is not None and bound.shape.rank < shape.rank:  # type: ignore[union-attr]
            cotangents[n] = sum_all(part)
    return tuple(cotangents)


@vjp
def select(back: Pullback, pred: Value, on_true: Value, on_false: Value) -> Cotangents:
    zeros = back.zeros(back.ct)
    pred = first_side_mask(back.instruction, pred, on_true, on_false)
    return (
        None,
        ops.select(pred, back.ct, zeros) if back.wants(1) else None,
        ops.select(pred, zeros, back.ct) if back.wants(2) else None,
    )
