"""Strict rules for arithmetic: division by zero, overflowing quotients and shifts, conversions out of range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import PrimitiveType, f4e2m1fn, f6e2m3fn, f6e3m2fn, pred, primitive_type, u8
from shape_inference.dims import limits
from xbuild.core.attributes import Array

from ..kernels.integers import as_unsigned
from ..kernels.lifting import widened
from ..ops import conversion as lowered
from .born import elementwise
from .table import Evaluation, Spotted, at_elements, first, strict


def _is_integer(it: Evaluation) -> bool:
    return primitive_type(np.asarray(it.result).dtype).is_integer


def _operands(it: Evaluation) -> tuple[Array, Array]:
    lhs, rhs = it.operands
    return widened(np.asarray(lhs)), widened(np.asarray(rhs))


@strict
def divide(it: Evaluation) -> Iterator[Spotted]:
    """Find integer division by zero, and division of the least number by -1, whose quotient overflows the type."""
    if not _is_integer(it):
        yield from elementwise(it)
        return
    lhs, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _everywhere(it, rhs == 0), "gives {result}")
    of = primitive_type(np.asarray(it.result).dtype)
    if of.kind == "signed":
        mask = (lhs == limits(of)[0]) & (rhs == -1)
        yield from at_elements(it, "division_overflow", _everywhere(it, mask), "wraps to {result}")


@strict
def remainder(it: Evaluation) -> Iterator[Spotted]:
    if not _is_integer(it):
        yield from elementwise(it)
        return
    _, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _everywhere(it, rhs == 0), "gives {result}")


@strict
def power(it: Evaluation) -> Iterator[Spotted]:
    """Find negative powers of the integer 0, which divide by zero."""
    if not _is_integer(it):
        yield from elementwise(it)
        return
    lhs, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _everywhere(it, (lhs == 0) & (rhs < 0)), "gives {result}")


def _shift(it: Evaluation) -> Iterator[Spotted]:
    """Find shifts by the bit width or more; a negative amount, read as unsigned, is one."""
    amount = np.asarray(it.operands[1])
    width = primitive_type(np.asarray(it.operands[0]).dtype).bits
    mask = widened(as_unsigned(amount)) >= width
    yield from at_elements(it, "shift_out_of_range", _everywhere(it, mask), f"gives {{result}}: the width is {width}")


for _opcode in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    strict.enter(_opcode, _shift)


def _everywhere(it: Evaluation, mask: Any) -> Array:
    return np.broadcast_to(mask, np.shape(it.result))


@strict
def convert(it: Evaluation) -> Iterator[Spotted]:
    """Find NaNs converted to integers, and values that the new type saturates, wraps, or makes infinite."""
    operand, to = it.operands[0], it.attributes.new_element_type
    value = widened(np.asarray(operand))
    if to.is_integer and value.dtype.kind in "fc":
        value = value.real.astype(np.float64)
        yield from at_elements(it, "nan_converted", np.isnan(value), "gives {result}")
        low, high = limits(to)
        mask = (np.trunc(value) < low) | (value >= high + 1.0)
        yield from at_elements(it, "value_out_of_range", mask, f"saturates to {{result}}: {_range(to)}")
    elif to.is_integer:
        low, high = limits(to)
        mask = (value < low) | (value > high) if value.dtype.kind in "iu" else np.zeros(value.shape, bool)
        yield from at_elements(it, "value_out_of_range", mask, f"wraps to {{result}}: {_range(to)}")
    elif to.kind in ("float", "complex"):
        yield from _rounded(it, value)


strict.enter("stochastic_convert", convert)


@strict
def bitcast_convert(it: Evaluation) -> Iterator[Spotted]:
    """Find bytes other than 0 and 1 that are read as pred."""
    if np.asarray(it.result).dtype == np.bool_:
        yield from _no_preds(lowered.bitcast_convert(np.asarray(it.operands[0]), new_element_type=u8))


@strict
def bitcast(it: Evaluation) -> Iterator[Spotted]:
    shape, source = it.attributes.shape, it.instruction.operands[0].shape
    if shape.dtype is pred and source.dtype is not pred:  # type: ignore[union-attr]
        octets = evolve(shape, dtype=u8)
        yield from _no_preds(lowered.relaid(np.asarray(it.operands[0]), source, octets))  # type: ignore[arg-type]


def _no_preds(octets: Array) -> Iterator[Spotted]:
    found = first(octets > 1)
    if found is not None:
        index, further = found
        what = f"reads the byte {octets[index]} as true: of a pred it is 0 or 1"
        yield Spotted("value_out_of_range", what, index, (("byte", octets[index]),), further)


@strict
def reduce_precision(it: Evaluation) -> Iterator[Spotted]:
    yield from _rounded(it, widened(np.asarray(it.operands[0])))


_BEYOND = {f4e2m1fn.dtype: 7, f6e2m3fn.dtype: 7.75, f6e3m2fn.dtype: 30}
"""For each type without infinity and NaN, the least number that rounding would carry past the largest value."""


def _rounded(it: Evaluation, value: Array) -> Iterator[Spotted]:
    """Find finite values that become infinity or NaN in the narrower type, or saturate at its largest value."""
    result = np.asarray(it.result)
    rounded = widened(result)
    mask = np.isfinite(value) & ~np.isfinite(rounded)
    if result.dtype in _BEYOND:
        mask = np.abs(value) >= _BEYOND[result.dtype]
    yield from at_elements(it, "value_out_of_range", mask, "becomes {result}")


def _range(of: PrimitiveType) -> str:
    low, high = limits(of)
    return f"{of} holds {low}..{high}"
