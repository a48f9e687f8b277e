"""Constants of numbers and arrays beside values: a number takes the element type of the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import AnyShape, PrimitiveType, c64, f32, pred, primitive_type, refuse, s32
from shape_inference.dims import limits

from ... import ops
from ...core.attributes import Array
from ...core.builder import Builder, Value, stands_for
from ...core.diagnostics import ValueUseError

_DEFAULT = {"pred": pred, "signed": s32, "unsigned": s32, "float": f32, "complex": c64}
_SMALL = 65504.0
_NUMBERS = ("signed", "unsigned", "float", "complex")
_HOLDS = {"pred": ("pred",), "signed": _NUMBERS, "unsigned": _NUMBERS, "float": _NUMBERS[2:], "complex": _NUMBERS[3:]}
"""For each kind of number, the kinds of element type that can hold it."""


def as_value(builder: Builder, operand: Any, dtype: PrimitiveType | None = None) -> Value:
    """A value as it is; anything else as a constant: a Python number or list in this element type, an array in its own.

    Raises: invalid_operand (ValueUseError) for what is no number; element_type_mismatch where the type cannot hold it.

    >>> import xbuild as xb
    >>> as_value(xb.Builder("b"), 2, xb.f32)
    %constant.1: f32[]
    """
    operand = operand if isinstance(operand, Value) else stands_for(operand)
    return operand if isinstance(operand, Value) else ops.constant(builder, literal=literal(operand, dtype))


def literal(operand: Any, dtype: PrimitiveType | None = None) -> Array:
    """An array as it is; a Python number or list in this element type, or in s32, f32, c64 or pred."""
    if isinstance(operand, np.ndarray | np.generic) and not isinstance(operand, float | complex):
        return np.asarray(operand)
    if type(operand) is float and dtype is not None and dtype.is_float and dtype.is_native and abs(operand) < _SMALL:
        return np.array(operand, dtype.dtype)  # the usual case, which needs no checks
    array = _array(operand)
    return in_type(array, dtype or _DEFAULT[primitive_type(array.dtype).kind], operand)


def in_type(array: Array, dtype: PrimitiveType, shown: Any) -> Array:
    """Numbers converted to an element type; rounding is allowed, a change of kind or an overflow is refused."""
    if array.size and dtype.kind not in _HOLDS[primitive_type(array.dtype).kind]:
        hints = ("x.astype(xb.f32) makes floats of a value of integers",) if dtype.is_integer else ()
        refuse(
            "element_type_mismatch", f"{shown!r} is no {dtype}, which is the element type that is wanted here", *hints
        )
    if array.size and dtype.is_integer:
        low, high = limits(dtype)
        if int(array.min()) < low or int(array.max()) > high:
            refuse("element_type_mismatch", f"{shown!r} is outside of {dtype}, which holds {low}..{high}")
    with np.errstate(over="ignore", invalid="ignore"):
        held = array.astype(dtype.dtype)
        lost = dtype.is_float and bool((np.isfinite(array) & ~np.isfinite(held.astype(np.float64))).any())
    if lost:
        refuse("element_type_mismatch", f"{shown!r} is outside of {dtype}, which has no finite number that large")
    return held


def _array(operand: Any) -> Array:
    try:
        array = np.asarray(operand)
        if array.dtype != object:
            primitive_type(array.dtype)
            return array
        too_large = all(isinstance(each, int) for each in array.flat)
    except (TypeError, ValueError):
        too_large = False
    if too_large:
        shown = repr(operand)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        refuse("element_type_mismatch", f"{shown} is outside of every integer type")
    raise ValueUseError(
        "invalid_operand", f"operand {operand!r} is neither a value nor a number nor an array", _way_out(operand)
    )


def _way_out(operand: Any) -> str:
    """The hint for an object that cannot be an operand beside a value."""
    if isinstance(operand, AnyShape | PrimitiveType):
        return "x.shape is the shape of a value, x.shape.dtype its element type"
    if isinstance(operand, tuple | list):
        return "xb.concatenate makes one value of several"
    return "`x is None` and `x is y` tell what a name stands for; numbers and arrays can stand beside values"
