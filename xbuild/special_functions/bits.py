"""Classification of floats (NaN, infinity, negative zero), and the next float towards another."""

from __future__ import annotations

import math

import numpy as np

from shape_inference import PRIMITIVES
from shape_inference.dims import array, element_type

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import compare, eq, ne, select
from ..derived.support import dressed, shape_of
from .form import FLOATS, on_bits


@on_bits
def next_after(start: Value, end: Value) -> Value:
    """Return the representable number next to `start` in the direction of `end`, or `end` if the two are equal.

    Shapes: takes bf16, f16, f32 or f64 of any shape and returns the same shape. A scalar fits any shape. The result is
    exact. The number next to 0 is the smallest denormal number; the number after the largest is infinity. NaN in either
    operand gives NaN.
    Raises: not_array, element_type_unsupported or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(lambda x: xb.next_after(x, 2.0)), [1.0, 2.0])
    array([1.0000001, 2.       ], dtype=float32)

    Source: XlaBuilder's math library, NextAfter; IEEE 754, 5.3.1.
    """
    shape = array("start", shape_of(start))
    integer = PRIMITIVES[f"s{shape.dtype.bits}"]
    bits = ops.bitcast_convert(start, new_element_type=integer)
    target = ops.bitcast_convert(end, new_element_type=integer)
    most, sign = np.iinfo(integer.dtype).max, np.iinfo(integer.dtype).min
    size, end_size = bits & most, target & most  # as integers, so that subnormals are not flushed to zero
    inwards = (size > end_size) | ((bits ^ target) < 0)
    moved = select(inwards, bits - 1, bits + 1)
    from_zero = (target & sign) | 1
    found = ops.bitcast_convert(select(eq(size, 0), from_zero, moved), new_element_type=shape.dtype)
    found = select(eq(start, end), end, found)
    return select(eq(start, start) & eq(end, end), found, start + end)


@dressed
def is_nan(operand: Value, *, name: str | None = None) -> Value:
    """Return whether each element is NaN.

    Shapes: takes floats of any shape and returns pred of the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[5])(xb.is_nan), [1.0, -0.0, np.inf, -np.inf, np.nan])
    array([False, False, False, False,  True])

    Source: XlaBuilder's math library, IsNan.
    """
    _float(operand)
    return ne(operand, operand, name=name)


@dressed
def is_inf(operand: Value, *, name: str | None = None) -> Value:
    """Return whether each element is infinite, with either sign.

    Shapes: takes floats of any shape and returns pred of the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[5])(xb.is_inf), [1.0, -0.0, np.inf, -np.inf, np.nan])
    array([False, False,  True,  True, False])

    Source: XlaBuilder's math library, IsInf.
    """
    _float(operand)
    return eq(ops.abs(operand), math.inf, name=name)


@dressed
def is_pos_inf(operand: Value, *, name: str | None = None) -> Value:
    """Return whether each element is positive infinity.

    Shapes: takes floats of any shape and returns pred of the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[5])(xb.is_pos_inf), [1.0, -0.0, np.inf, -np.inf, np.nan])
    array([False, False,  True, False, False])

    Source: XlaBuilder's math library, IsPosInf.
    """
    _float(operand)
    return eq(operand, math.inf, name=name)


@dressed
def is_neg_inf(operand: Value, *, name: str | None = None) -> Value:
    """Return whether each element is negative infinity.

    Shapes: takes floats of any shape and returns pred of the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[5])(xb.is_neg_inf), [1.0, -0.0, np.inf, -np.inf, np.nan])
    array([False, False, False,  True, False])

    Source: XlaBuilder's math library, IsNegInf.
    """
    _float(operand)
    return eq(operand, -math.inf, name=name)


@dressed
def is_neg_zero(operand: Value, *, name: str | None = None) -> Value:
    """Return whether each element is -0, which differs from 0 only by its sign bit.

    Shapes: takes floats of any shape and returns pred of the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[5])(xb.is_neg_zero), [1.0, -0.0, np.inf, -np.inf, np.nan])
    array([False,  True, False, False, False])

    Source: XlaBuilder's math library, IsNegZero.
    """
    _float(operand)
    return compare(operand, -0.0, "EQ", type="TOTALORDER", name=name)


def _float(operand: Value) -> None:
    element_type("operand", array("operand", shape_of(operand)), FLOATS, "a float")
