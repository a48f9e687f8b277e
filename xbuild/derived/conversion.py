"""Convenience forms of the conversions: the attributes without their names."""

from __future__ import annotations

from shape_inference import PrimitiveType, Shape

from .. import ops
from ..core.builder import Value
from .support import dressed

__all__ = [
    "bitcast", "bitcast_convert", "bitcast_convert_type", "convert", "convert_element_type", "reduce_precision",
    "stochastic_convert",
]  # fmt: skip


@dressed
def convert(operand: Value, new_element_type: PrimitiveType, *, name: str | None = None) -> Value:
    """Convert each element to a different element type.

    Raises: the same errors as xb.ops.convert.

    >>> import xbuild as xb
    >>> xb.convert(xb.constant(xb.Builder("b"), [1, 2]), xb.f32).shape
    f32[2]

    Source: Operation Semantics, ConvertElementType.
    """
    return ops.convert(operand, new_element_type=new_element_type, name=name)


@dressed
def bitcast_convert(operand: Value, new_element_type: PrimitiveType, *, name: str | None = None) -> Value:
    """Reinterpret the bits of each element as a different type.

    Raises: the same errors as xb.ops.bitcast_convert.

    >>> import xbuild as xb
    >>> xb.bitcast_convert(xb.constant(xb.Builder("b"), [1.0, 2.0]), xb.u8).shape
    u8[2,4]

    Source: Operation Semantics, BitcastConvertType.
    """
    return ops.bitcast_convert(operand, new_element_type=new_element_type, name=name)


def bitcast(operand: Value, shape: Shape | PrimitiveType, *, name: str | None = None) -> Value:
    """Reinterpret the bytes of the operand, in the order of its layout, as an array with a different shape and layout.

    Raises: the same errors as xb.ops.bitcast.

    >>> import xbuild as xb
    >>> xb.bitcast(xb.constant(xb.Builder("b"), [1.0, 2.0]), xb.s32[2, 1]).shape
    s32[2,1]

    Source: HloOpcode, bitcast.
    """
    return ops.bitcast(operand, shape=shape, name=name)


@dressed
def reduce_precision(operand: Value, exponent_bits: int, mantissa_bits: int, *, name: str | None = None) -> Value:
    """Round each element to a smaller float format.

    Raises: the same errors as xb.ops.reduce_precision.

    >>> import xbuild as xb
    >>> xb.reduce_precision(xb.constant(xb.Builder("b"), [1.0, 2.0]), 5, 10).shape
    f32[2]

    Source: Operation Semantics, ReducePrecision.
    """
    return ops.reduce_precision(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, name=name)


def stochastic_convert(
    operand: Value, random: Value, new_element_type: PrimitiveType, *, name: str | None = None
) -> Value:
    """Round each element up or down at random.

    Raises: the same errors as xb.ops.stochastic_convert.

    >>> import xbuild as xb
    >>> b = xb.Builder("b")
    >>> xb.stochastic_convert(xb.constant(b, [1.5]), xb.constant(b, [7], xb.u32), xb.s8).shape
    s8[1]

    Source: xla_builder.h, StochasticConvertType.
    """
    return ops.stochastic_convert(operand, random, new_element_type=new_element_type, name=name)


convert_element_type = convert
bitcast_convert_type = bitcast_convert
