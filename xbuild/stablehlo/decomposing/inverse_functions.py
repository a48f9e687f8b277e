"""Inverse trigonometric and hyperbolic functions of CHLO on real numbers, in the ops that XLA compiles them to.

HLO has an op for each, which XLA:CPU does not run. Of complex numbers the op is kept, and so it is where the text says
that it was an op of HLO.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes

from shape_inference import PrimitiveType, f32

from ... import ops
from ...core.builder import Value
from ...derived.elementwise import ge, gt, lt, select
from ...derived.support.arguments import dtype_of
from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around
from ..spelling.op_names import HLO_OPCODE
from .composed import composed

_LOG_2 = math.log(2)


def _legs(x: Value) -> Value:
    """sqrt(1 - x^2)."""
    return ops.sqrt((1 - x) * (x + 1))


def _acos(x: Value) -> Value:
    return ops.atan2(_legs(x), x)


def _asin(x: Value) -> Value:
    half = ops.atan2(x, _legs(x) + 1)
    return half + half


def _largest(x: Value) -> float:
    return float(ml_dtypes.finfo(_type(x).dtype).max)  # type: ignore[no-untyped-call]


def _type(x: Value) -> PrimitiveType:
    dtype = dtype_of(x)
    assert dtype is not None
    return dtype


def _acosh(x: Value) -> Value:
    """log(2 x) where x + 1 would overflow on the way."""
    root = ops.sqrt(x - 1)
    near = ops.log_plus_one(root * (ops.sqrt(x + 1) + root))
    return select(ge(x, _largest(x) / 2), ops.log(x) + _LOG_2, near)


def _asinh(x: Value) -> Value:
    """By the magnitude; log(2 x) where its square would overflow."""
    size = ops.abs(x)
    square = size * size
    near = ops.log_plus_one(size + square / (ops.sqrt(square + 1) + 1))
    return ops.sign(x) * select(ge(size, math.sqrt(_largest(x))), ops.log(size) + _LOG_2, near)


def _atanh(x: Value) -> Value:
    half = (ops.log_plus_one(x) - ops.log_plus_one(ops.negate(x))) * 0.5
    return select(gt(ops.abs(x), 1), math.nan, half)


def _in_single(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The function in f32 of what is narrower."""

    def wide(x: Value) -> Value:
        dtype = _type(x)
        if dtype.bits >= 32:
            return function(x)
        return ops.convert(function(ops.convert(x, new_element_type=f32)), new_element_type=dtype)

    return wide


def _halves(x: Value) -> tuple[Value, Value]:
    """exp(x) / 2 and exp(-x) / 2, which overflow no sooner than their sum."""
    return ops.exponential(x + -_LOG_2), ops.exponential(-_LOG_2 - x)


def _cosh(x: Value) -> Value:
    one, other = _halves(x)
    return one + other


def _sinh(x: Value) -> Value:
    small = ops.exponential_minus_one(x)
    one, other = _halves(x)
    return select(lt(ops.abs(x), 1), (small + small / (small + 1)) * 0.5, one - other)


_NAMED = (_acos, _acosh, _asin, _asinh, _atanh, _cosh, _sinh)
_SINGLE = (_cosh, _sinh)
_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    each.__name__.strip("_"): _in_single(each) if each in _SINGLE else each for each in _NAMED
}


@around(*(f"chlo.{name}" for name in _FUNCTIONS))
def function(op: Reading, as_op: Rule) -> Results:
    (operand,) = op.wants(1)
    name = op.operation.name.partition(".")[2]
    dtype = getattr(operand.shape, "dtype", None)
    if dtype is None or not dtype.is_float or op.text(HLO_OPCODE, "") == name:
        return as_op(op)
    op.ignore("result_accuracy")
    return composed(op, name, _FUNCTIONS[name], operand)
