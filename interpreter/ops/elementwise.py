"""Values of elementwise ops, computed by the functions in the tables of `kernels.elementwise`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xbuild.core.attributes import Array

from ..kernels import functions
from ..kernels.elementwise import BINARY, BY_WIDTH, RELATIONS, UNARY
from ..kernels.lifting import (
    common,
    lift_binary,
    lift_unary,
    narrowed,
    together,
    total_order,
    widened,
)
from ..rules import compute

for _opcode, _kernels in UNARY.items():
    compute.enter(_opcode, lift_unary(_kernels))
for _opcode, _kernels in BINARY.items():
    compute.enter(_opcode, lift_binary(_kernels))
for _opcode, _rule in BY_WIDTH.items():
    compute.enter(_opcode, _rule)


@compute
def copy(operand: Any) -> Any:
    return operand


@compute
def real(operand: Array) -> Any:
    return operand.real if operand.dtype.kind == "c" else operand


@compute
def imag(operand: Array) -> Any:
    return operand.imag if operand.dtype.kind == "c" else narrowed(np.zeros_like(widened(operand)), operand.dtype)


@compute
def is_finite(operand: Array) -> Any:
    return np.isfinite(widened(operand))


@compute
def complex(lhs: Array, rhs: Array) -> Any:
    return functions.complex_of(lhs, rhs)


@compute
def compare(lhs: Array, rhs: Array, *, direction: str, type: str | None) -> Any:
    if type == "TOTALORDER":
        dtype = common(lhs.dtype, rhs.dtype)
        lhs, rhs = total_order(narrowed(lhs, dtype)), total_order(narrowed(rhs, dtype))
    elif lhs.dtype is not rhs.dtype or lhs.dtype.isbuiltin != 1:
        lhs, rhs = together(lhs, rhs)
    return RELATIONS[direction](lhs, rhs)


@compute
def clamp(min: Array, operand: Array, max: Array) -> Any:
    if min.dtype == operand.dtype == max.dtype and operand.dtype.isbuiltin == 1:
        low, value, high = min, operand, max
    else:
        low, value, high = together(min, operand, max)
    kind = value.dtype.kind
    return narrowed(BINARY["minimum"][kind](BINARY["maximum"][kind](low, value), high), operand.dtype)


@compute
def select(pred: Array, on_true: Any, on_false: Any) -> Any:
    if isinstance(on_true, tuple):
        return on_true if pred else on_false
    if on_true.dtype != on_false.dtype:
        dtype = common(on_true.dtype, on_false.dtype)
        on_true, on_false = narrowed(on_true, dtype), narrowed(on_false, dtype)
    if np.ndim(pred) == 0:
        return on_true if pred else on_false
    return functions.choose(pred, on_true, on_false)
