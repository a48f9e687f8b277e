"""Ops that change the element type."""

from __future__ import annotations

from shape_inference import PrimitiveType, Shape

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["bitcast", "bitcast_convert", "convert", "reduce_precision", "stochastic_convert"]


@op(Properties("same_place", denormals="flushed", states_shape=True))
def convert(operand: Value, *, new_element_type: PrimitiveType) -> Value:
    """Each element in a different type, by value.

    To a float: to the nearest, ties to even. To an integer: from a float towards zero, clamped to the range of the
    type, NaN as 0; from an integer the low bits. To pred: whether it is not 0. From complex to real: the real part.
    NaNs have the bits that XLA:CPU gives them: quiet ones to and from f16, 0x7f in f8e5m2 (0x7e or 0xfe from f32 and
    f64), one without a sign from the fnuz types, -0 in the types without NaN.
    Shapes: any array; the result has its extents.
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
    """The bits of each element read as another type, lowest bits first if the widths differ.

    Shapes: types of one width keep the extents; a narrower type adds a minor dimension for the parts of each
    element; for a wider type, the minor dimension must have exactly that extent and is removed. Complex types are read
    as complex ones only. A pred is a byte of 8 bits here: 0 or 1; read from bits, it is false if the byte is 0 and
    true (1) otherwise.
    Raises: not_array; element_type_unsupported; rank_too_small; dimension_mismatch.

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
    """The bytes of the operand, in the order of its layout, read as a different shape in the order of its layout.

    Shapes: any array; `shape` has the same number of bytes (types under 8 bits take one byte per element). A shape
    without a layout is laid out row by row. Nothing else in HLO depends on a layout.
    Raises: not_array; element_count_mismatch for a different number of bytes; dimension_mismatch for a dynamic
    dimension that changes.

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
    """Each element rounded to a float format of these bits, in the operand's type.

    To the nearest, ties to even; numbers too large become infinite, numbers below the format's smallest normal
    number become zero, with their sign; a NaN stays, but becomes infinity if there are no mantissa bits (compiled
    XLA:CPU keeps it).
    Shapes: any float array; the result has its shape.
    Raises: not_array; element_type_unsupported; invalid_attribute for no exponent bit or negative mantissa_bits.

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
    """Each element rounded to a neighbour in another type, away from zero if random / 2^bits is below its fraction.

    Shapes: a float array, and an array of random bits of the same width (u32 for f32) and extents; to an integer
    type, clamped to its range, or to a float type.
    Raises: not_array; element_type_unsupported; element_type_mismatch where widths differ; rank_mismatch;
    dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3], xb.u32[3])
    ... def rounded(x, random):
    ...     return xb.ops.stochastic_convert(x, random, new_element_type=xb.s8)
    >>> xb.evaluate(rounded, [1.25, 1.25, -1.25], [0, 2**31, 0])
    array([ 2,  1, -2], dtype=int8)

    Source: xla_builder.h, StochasticConvertType.
    """
