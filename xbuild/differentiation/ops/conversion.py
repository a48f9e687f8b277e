"""Cotangents of conversions between element types."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...core.builder import Value
from ..arrays import array_shape, dims_of
from ..rules import BITS_HAVE_NO_DERIVATIVE, Cotangents, Pullback, no_derivative, refuse_derivative, vjp

no_derivative(
    "stochastic_convert",
    reason=(
        "it rounds at random, so a small change of the operand changes the result either not at all or by a full step"
    ),
)


@vjp
def convert(back: Pullback, operand: Value, *, new_element_type: Any) -> Cotangents:
    return (back.ct,)  # the walk converts a cotangent to the element type of its value


@vjp
def reduce_precision(back: Pullback, operand: Value, *, exponent_bits: int, mantissa_bits: int) -> Cotangents:
    return (ops.reduce_precision(back.ct, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits),)


@vjp
def bitcast_convert(back: Pullback, operand: Value, *, new_element_type: Any) -> Cotangents:
    if back.ct is not None and array_shape(operand).dtype is not new_element_type:
        refuse_derivative(*BITS_HAVE_NO_DERIVATIVE)
    return (back.ct,)


@vjp
def bitcast(back: Pullback, operand: Value, *, shape: Any) -> Cotangents:
    """Only for elements that keep their type and order; bits read as another type have no derivative."""
    source: Any = operand.shape
    if back.ct is None:
        return (None,)
    if source.dtype is not shape.dtype:
        refuse_derivative(*BITS_HAVE_NO_DERIVATIVE)
    if not (_is_row_major(source) and _is_row_major(shape)):
        refuse_derivative(
            "it reads an array in the order of a different layout", "use a transpose and a reshape instead"
        )
    return (ops.reshape(back.ct, new_sizes=dims_of(operand)),)


def _is_row_major(shape: Any) -> bool:
    order = shape.layout.minor_to_major if shape.layout is not None else ()
    return not order or tuple(order) == tuple(reversed(range(len(shape.dims))))
