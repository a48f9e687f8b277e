"""Cotangents of conversions between element types."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...core.builder import Value
from ..rules import Cotangents, Pullback, no_derivative, refuse_derivative, vjp, zero_derivative
from ..support import dims_of

zero_derivative("bitcast_convert")
no_derivative(
    "stochastic_convert", reason="it rounds at random, and a small change of its operand changes nothing or all"
)


@vjp
def convert(back: Pullback, operand: Value, *, new_element_type: Any) -> Cotangents:
    return (back.ct,)  # the walk gives a cotangent the element type of what it is the cotangent of


@vjp
def reduce_precision(back: Pullback, operand: Value, *, exponent_bits: int, mantissa_bits: int) -> Cotangents:
    return (ops.reduce_precision(back.ct, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits),)


@vjp
def bitcast(back: Pullback, operand: Value, *, shape: Any) -> Cotangents:
    """Elements that keep their type and their order; of bits that are read as another type there is no derivative."""
    given: Any = operand.shape
    if given.dtype is not shape.dtype:
        return (None,)
    if not (_is_row_major(given) and _is_row_major(shape)):
        refuse_derivative("it reads an array in the order of another layout", "write it as a transpose and a reshape")
    return (ops.reshape(back.ct, new_sizes=dims_of(operand)),)


def _is_row_major(shape: Any) -> bool:
    order = shape.layout.minor_to_major if shape.layout is not None else ()
    return not order or tuple(order) == tuple(reversed(range(len(shape.dims))))
