"""Ops that change the element type."""

from __future__ import annotations

from shape_inference import PrimitiveType, Shape

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["bitcast", "bitcast_convert", "convert", "reduce_precision", "stochastic_convert"]


@op(Properties("same_place", denormals="flushed", states_shape=True))
def convert(operand: Value, *, new_element_type: PrimitiveType) -> Value:
    """Convert each element to a different element type, by value.

    Conversion to a float rounds to the nearest number, with ties to even. Conversion to an integer type rounds a float
    towards zero and clamps it to the range of the type (NaN becomes 0); of an integer, it keeps the low bits.
    Conversion to pred returns whether the element is not 0. Conversion from complex to real keeps the real part. NaNs
    have the bits that XLA:CPU gives them. Conversions to and from f16 return quiet NaNs. The NaN of f8e5m2 is 0x7f
    (from f32 and f64, 0x7e or 0xfe). The NaN of a fnuz type converts to a NaN without a sign. In types without NaN, a
    NaN becomes -0.
    Shapes: takes an array of any shape. The result has the same extents.
    Raises: not_array.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4])
    ... def saturated(x):
    ...     return xb.ops.convert(x, new_element_type=xb.s8)
    >>> xb.evaluate(saturated, [2.9, -2.9, 300.0, float("nan")])
    array([  2,  -2, 127,   0], dtype=int8)

    Source: Operation Semantics, ConvertElementType; StableHLO, convert.
    """


@op(Properties("mixed", states_shape=True, work="each"))
def bitcast_convert(operand: Value, *, new_element_type: PrimitiveType) -> Value:
    """Reinterpret the bits of each element as a different type, lowest bits first if the widths differ.

    Shapes: types of the same width keep the extents. A narrower type adds a minor dimension for the parts of each
    element. For a wider type, the minor dimension must have exactly as many elements as one result element needs, and
    is removed. Complex types can be reinterpreted only as complex types. A pred is one 8-bit byte whose value is 0 or
    1. When read from bits, it is false if the byte is 0 and true (1) otherwise.
    Raises: not_array, element_type_unsupported, rank_too_small or dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[1])
    ... def octets(x):
    ...     return xb.ops.bitcast_convert(x, new_element_type=xb.u8)
    >>> xb.evaluate(octets, [1.0])
    array([[  0,   0, 128,  63]], dtype=uint8)

    Source: Operation Semantics, BitcastConvertType; StableHLO, bitcast_convert.
    """


@op(Properties("mixed", states_shape=True, work="none"))
def bitcast(operand: Value, *, shape: Shape) -> Value:
    """Reinterpret the bytes of the operand, in the order of its layout, as an array with a different shape and layout.

    Shapes: takes an array of any shape. `shape` has the same number of bytes as that array. Types narrower than 8 bits
    take one byte per element. A shape without a layout is laid out row by row. No other HLO op depends on a layout.
    Raises: not_array; element_count_mismatch if the number of bytes differs; dimension_mismatch if a dynamic dimension
    changes.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3])
    ... def turned(x):
    ...     return xb.bitcast(x, xb.parse_shape("f32[3,2]{0,1}"))
    >>> xb.evaluate(turned, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    array([[1., 4.],
           [2., 5.],
           [3., 6.]], dtype=float32)

    Source: HloOpcode, bitcast; xla/hlo/ir/hlo_instruction.h.
    """


@op(Properties("same_place", states_shape=True))
def reduce_precision(operand: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    """Round each element to a float format with `exponent_bits` and `mantissa_bits`, and keep the operand's type.

    Rounds to the nearest number, with ties to even. Numbers that are too large become infinite; numbers smaller than
    the smallest normal number of the format become zero and keep their sign. A NaN is kept, but becomes infinity if the
    format has no mantissa bits (compiled XLA:CPU keeps it).
    Shapes: takes a float array of any shape. The result has the same shape.
    Raises: not_array or element_type_unsupported; invalid_attribute if exponent_bits is below 1 or mantissa_bits is
    negative.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3])
    ... def as_half(x):
    ...     return xb.ops.reduce_precision(x, exponent_bits=5, mantissa_bits=10)
    >>> xb.evaluate(as_half, [1.0001, 65520.0, 1e-8])
    array([ 1., inf,  0.], dtype=float32)

    Source: Operation Semantics, ReducePrecision; StableHLO, reduce_precision.
    """


@op(Properties("same_place", depends_on="implementation", states_shape=True))
def stochastic_convert(operand: Value, random: Value, *, new_element_type: PrimitiveType) -> Value:
    """Round each element to one of its two neighbours in a different type, at random.

    An element is rounded away from zero if random / 2^bits is less than its position between the two neighbours, which
    is 0 at the one nearer to zero and 1 at the other.
    Shapes: takes a float array, and an array of random bits with the same extents and as many bits per element (u32 for
    f32). The result type is a float type, or an integer type, to whose range the result is clamped.
    Raises: not_array, element_type_unsupported, rank_mismatch or dimension_mismatch; element_type_mismatch if the
    widths differ.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3], xb.u32[3])
    ... def rounded(x, random):
    ...     return xb.ops.stochastic_convert(x, random, new_element_type=xb.s8)
    >>> xb.evaluate(rounded, [1.25, 1.25, -1.25], [0, 2**31, 0])
    array([ 2,  1, -2], dtype=int8)

    Source: xla_builder.h, StochasticConvertType.
    """
