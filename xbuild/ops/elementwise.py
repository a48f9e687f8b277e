"""Elementwise ops: most are declared by a row, those with attributes or notes in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from shape_inference.ops.elementwise import ANY, BINARY, UNARY, Types
from shape_inference.rules import MissingRule

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Denormals, Order, Properties, Work

__all__ = [
    "abs", "acos", "acosh", "add", "and_", "asin", "asinh", "atan2", "atanh", "cbrt", "ceil", "clamp", "compare",
    "complex", "copy", "cosh", "cosine", "count_leading_zeros", "divide", "erf", "exponential",
    "exponential_minus_one", "floor", "imag", "is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum",
    "mulhi", "multiply", "negate", "not_", "or_", "popcnt", "power", "real", "remainder", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sine", "sinh", "sqrt", "subtract", "tan", "tanh", "xor",
]  # fmt: skip


# ----------------------------------------------------------------------------
# Declarations by rows: opcode, source, sentence and example


def _unary(
    opcode: str, source: str, sentence: str, example: str, *, denormals: Denormals = "flushed", work: Work = "each"
) -> Callable[[Value], Value]:
    """Declare an elementwise op of one operand."""

    def declaration(operand: Value) -> Value: ...  # type: ignore[empty-body]

    properties = Properties("same_place", denormals=denormals, work=work)
    return _declare(declaration, properties, (opcode, source, sentence, example), UNARY)


def _binary(
    opcode: str, source: str, sentence: str, example: str, *, order: Order = "fixed", work: Work = "each"
) -> Callable[[Value, Value], Value]:
    """Declare an elementwise op of two operands of one shape."""

    def declaration(lhs: Value, rhs: Value) -> Value: ...  # type: ignore[empty-body]

    properties = Properties("same_place", order=order, denormals="flushed", mixes_precisions=True, work=work)
    return _declare(declaration, properties, (opcode, source, sentence, example), BINARY)


_UNARY_RULES = """Shapes: takes an array of any shape and returns an array with the same dimensions.
    Types: {types}
    Raises: not_array or element_type_unsupported."""
_BINARY_RULES = """Shapes: takes two arrays with the same dimensions and returns an array with those dimensions.
    Types: {types}
    Raises: not_array, rank_mismatch, dimension_mismatch, element_type_mismatch or element_type_unsupported."""


def _declare(
    declaration: Callable[..., Value], properties: Properties, row: tuple[str, ...], allowed: Mapping[str, Types]
) -> Callable[..., Value]:
    """Declare the op of a row; the example has the form `shapes: arguments -> printed result`."""
    opcode, source, sentence, example = row
    if opcode.strip("_") not in allowed:
        raise MissingRule(f"{opcode} has no row for its element types in shape_inference/ops/elementwise.py")
    _, types = allowed[opcode.strip("_")]
    call, result = example.split(" -> ")
    shapes, arguments = call.split(": ")
    declaration.__name__ = declaration.__qualname__ = opcode
    declaration.__module__ = "xbuild.ops.elementwise"
    accepted = "every element type is allowed." if types == ANY[1] else f"the element type must be {types}."
    if types == ANY[1] or (allowed is BINARY and "float" in types):
        accepted += " For two floats of different precisions, the result has the wider type."
    rules = (_UNARY_RULES if allowed is UNARY else _BINARY_RULES).format(types=accepted)
    declaration.__doc__ = f"""{sentence}

    {rules}

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation({shapes})(xb.ops.{opcode}), {arguments})
    {result}

    Source: {source}.
    """
    return op(properties)(declaration)


# ----------------------------------------------------------------------------
# The ops

_FUNCTIONS = "Operation Semantics, Element-wise unary functions"
_ARITHMETIC = "Operation Semantics, Element-wise binary arithmetic operations"
_HEADER = "xla_builder.h"
_OPCODES = "hlo_opcode.h"

abs = _unary("abs", _FUNCTIONS,
    "Return the absolute value. For complex numbers, it is the distance from 0; the smallest integer is unchanged.",
    "xb.s8[2]: [-3, -128] -> array([   3, -128], dtype=int8)", denormals="kept")  # fmt: skip
acos = _unary("acos", _HEADER,
    "Return the inverse cosine, in 0..π, or NaN outside -1..1.",
    "xb.f32[2]: [1.0, 2.0] -> array([ 0., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
acosh = _unary("acosh", _HEADER,
    "Return the inverse hyperbolic cosine, or NaN below 1.",
    "xb.f32[2]: [1.0, 0.0] -> array([ 0., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
asin = _unary("asin", _HEADER,
    "Return the inverse sine, in -π/2..π/2, or NaN outside -1..1.",
    "xb.f32[2]: [0.0, 1.0] -> array([0.       , 1.5707964], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
asinh = _unary("asinh", _HEADER,
    "Return the inverse hyperbolic sine.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
atanh = _unary("atanh", _HEADER,
    "Return the inverse hyperbolic tangent. It is infinite at -1 and 1, and NaN outside -1..1.",
    "xb.f32[2]: [0.0, 1.0] -> array([ 0., inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
cbrt = _unary("cbrt", "StableHLO, cbrt",
    "Return the real cube root, including for negative numbers.",
    "xb.f32[2]: [1.0, -1.0] -> array([ 1., -1.], dtype=float32)",
    work="transcendental")  # fmt: skip
ceil = _unary("ceil", _FUNCTIONS,
    "Round up to an integer; -0.5 becomes -0.",
    "xb.f32[2]: [1.2, -0.5] -> array([ 2., -0.], dtype=float32)")  # fmt: skip
cosh = _unary("cosh", _HEADER,
    "Return the hyperbolic cosine.",
    "xb.f32[2]: [0.0, float('-inf')] -> array([ 1., inf], dtype=float32)",
    work="transcendental")  # fmt: skip
cosine = _unary("cosine", _FUNCTIONS,
    "Return the cosine of an angle in radians, or NaN for an infinity.",
    "xb.f32[2]: [0.0, float('inf')] -> array([ 1., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
count_leading_zeros = _unary("count_leading_zeros", "StableHLO, count_leading_zeros",
    "Return the number of leading zero bits: the width for 0, and 0 for a negative number.",
    "xb.s8[3]: [0, 1, -1] -> array([8, 7, 0], dtype=int8)")  # fmt: skip
erf = _unary("erf", _HEADER,
    "Return the error function: 2/√π times the integral of exp(-t²) from 0 to the operand.",
    "xb.f64[3]: [0.0, 1.0, 9.0] -> array([0.        , 0.84270079, 1.        ])",
    work="transcendental")  # fmt: skip
exponential = _unary("exponential", _FUNCTIONS,
    "Return e to the power of the operand.",
    "xb.f32[2]: [0.0, float('-inf')] -> array([1., 0.], dtype=float32)",
    work="transcendental")  # fmt: skip
exponential_minus_one = _unary("exponential_minus_one", "StableHLO, exponential_minus_one",
    "Return exp(x) - 1, without losing digits near 0.",
    "xb.f32[2]: [0.0, 1e-20] -> array([0.e+00, 1.e-20], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
floor = _unary("floor", _FUNCTIONS,
    "Round down to an integer; -0 stays -0.",
    "xb.f32[2]: [1.8, -0.5] -> array([ 1., -1.], dtype=float32)")  # fmt: skip
imag = _unary("imag", "StableHLO, imag",
    "Return the imaginary part as a float, or 0 for a float.",
    "xb.c64[2]: [1 + 2j, 3] -> array([2., 0.], dtype=float32)", denormals="kept")  # fmt: skip
is_finite = _unary("is_finite", _FUNCTIONS,
    "Return whether a number is neither infinite nor NaN, as pred.",
    "xb.f32[3]: [1.0, float('inf'), float('nan')] -> array([ True, False, False])", denormals="kept")  # fmt: skip
log = _unary("log", _FUNCTIONS,
    "Return the natural logarithm: -inf for 0 and -0, and NaN for a negative number.",
    "xb.f32[3]: [1.0, 0.0, -1.0] -> array([  0., -inf,  nan], dtype=float32)",
    work="transcendental")  # fmt: skip
log_plus_one = _unary("log_plus_one", "StableHLO, log_plus_one",
    "Return log(1 + x), without losing digits near 0. It is -inf at -1.",
    "xb.f32[2]: [1e-20, -1.0] -> array([1.e-20,   -inf], dtype=float32)",
    work="transcendental")  # fmt: skip
logistic = _unary("logistic", "StableHLO, logistic",
    "Return 1 / (1 + exp(-x)), without overflow.",
    "xb.f32[3]: [-200.0, 0.0, 200.0] -> array([0. , 0.5, 1. ], dtype=float32)",
    work="transcendental")  # fmt: skip
negate = _unary("negate", _FUNCTIONS,
    "Return -x. Integers wrap: the smallest integer is unchanged, and the u8 value 1 becomes 255.",
    "xb.s8[2]: [5, -128] -> array([  -5, -128], dtype=int8)", denormals="kept")  # fmt: skip
not_ = _unary("not_", _FUNCTIONS,
    "Invert every bit; for pred, return the negation.",
    "xb.s8[2]: [0, 5] -> array([-1, -6], dtype=int8)")  # fmt: skip
popcnt = _unary("popcnt", "StableHLO, popcnt",
    "Return the number of set bits, which for -1 is the width.",
    "xb.s8[3]: [0, 7, -1] -> array([0, 3, 8], dtype=int8)")  # fmt: skip
real = _unary("real", "StableHLO, real",
    "Return the real part as a float; a float is unchanged.",
    "xb.c64[2]: [1 + 2j, 3] -> array([1., 3.], dtype=float32)", denormals="kept")  # fmt: skip
round_nearest_afz = _unary("round_nearest_afz", "StableHLO, round_nearest_afz",
    "Round to the nearest integer; round halves away from zero.",
    "xb.f32[4]: [0.5, 1.5, 2.5, -0.5] -> array([ 1.,  2.,  3., -1.], dtype=float32)")  # fmt: skip
round_nearest_even = _unary("round_nearest_even", "StableHLO, round_nearest_even",
    "Round to the nearest integer; round halves to the nearest even integer.",
    "xb.f32[4]: [0.5, 1.5, 2.5, -0.5] -> array([ 0.,  2.,  2., -0.], dtype=float32)")  # fmt: skip
rsqrt = _unary("rsqrt", "StableHLO, rsqrt",
    "Return 1 / sqrt(x): -inf for -0, and NaN for a negative number.",
    "xb.f32[2]: [4.0, -0.0] -> array([ 0.5, -inf], dtype=float32)",
    work="transcendental")  # fmt: skip
sign = _unary("sign", _FUNCTIONS,
    "Return -1, 0 or 1; a zero keeps its sign, and a NaN stays NaN. For a complex z, return z/|z|, or 0 if z is 0.",
    "xb.f32[3]: [-2.0, -0.0, 5.0] -> array([-1., -0.,  1.], dtype=float32)")  # fmt: skip
sine = _unary("sine", "StableHLO, sine",
    "Return the sine of an angle in radians, or NaN for an infinity.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., nan], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
sinh = _unary("sinh", _HEADER,
    "Return the hyperbolic sine.",
    "xb.f32[2]: [-0.0, float('-inf')] -> array([ -0., -inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
sqrt = _unary("sqrt", "StableHLO, sqrt",
    "Return the square root: -0 for -0, and NaN for a negative number. A complex root has a real part >= 0.",
    "xb.c64[1]: [-4] -> array([0.+2.j], dtype=complex64)",
    work="transcendental")  # fmt: skip
tan = _unary("tan", "StableHLO, tan",
    "Return the tangent of an angle in radians, or NaN for an infinity.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., nan], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
tanh = _unary("tanh", _FUNCTIONS,
    "Return the hyperbolic tangent.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0.,  1.], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip

add = _binary("add", _ARITHMETIC,
    "Return lhs + rhs. Integers wrap; pred values are combined by logical or.",
    "xb.u8[2], xb.u8[2]: [1, 255], [10, 2] -> array([11,  1], dtype=uint8)", order="any")  # fmt: skip
and_ = _binary("and_", _ARITHMETIC,
    "Return the bits that are set in both operands.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([8, 5], dtype=int32)", order="any")  # fmt: skip
atan2 = _binary("atan2", "StableHLO, atan2",
    "Return the angle of the point (rhs, lhs), in -π..π. Zeros and infinities give the same results as C's atan2.",
    "xb.f32[2], xb.f32[2]: [0.0, 1.0], [-1.0, 0.0] -> array([3.1415927, 1.5707964], dtype=float32)",
    work="transcendental")  # fmt: skip
divide = _binary("divide", _ARITHMETIC,
    "Return lhs / rhs. Integer quotients are rounded towards zero. "
    "Dividing an integer by zero sets all bits (-1, or the greatest unsigned integer).",
    "xb.s32[3], xb.s32[3]: [7, -7, 7], [2, 2, 0] -> array([ 3, -3, -1], dtype=int32)")  # fmt: skip
maximum = _binary("maximum", _ARITHMETIC,
    "Return the greater operand, or NaN if either is NaN; +0 is greater than -0. For pred, return the logical or. "
    "Complex numbers are compared by their real parts, then by their imaginary parts.",
    "xb.f32[2], xb.f32[2]: [1.0, 5.0], [3.0, float('nan')] -> array([ 3., nan], dtype=float32)",
    order="any")  # fmt: skip
minimum = _binary("minimum", _ARITHMETIC,
    "Return the lesser operand, or NaN if either is NaN; -0 is less than +0. For pred, return the logical and. "
    "Complex numbers are compared by their real parts, then by their imaginary parts.",
    "xb.f32[2], xb.f32[2]: [1.0, 0.0], [3.0, -0.0] -> array([ 1., -0.], dtype=float32)",
    order="any")  # fmt: skip
mulhi = _binary("mulhi", _OPCODES,
    "Return the upper half of the product, computed at twice the width.",
    "xb.s8[2], xb.s8[2]: [100, -1], [100, 1] -> array([39, -1], dtype=int8)", order="swapped")  # fmt: skip
multiply = _binary("multiply", _ARITHMETIC,
    "Return lhs * rhs. Integers wrap; pred values are combined by logical and.",
    "xb.s8[2], xb.s8[2]: [3, 100], [4, 100] -> array([12, 16], dtype=int8)", order="any")  # fmt: skip
or_ = _binary("or_", _ARITHMETIC,
    "Return the bits that are set in at least one operand.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([14, -1], dtype=int32)", order="any")  # fmt: skip
power = _binary("power", "StableHLO, power",
    "Return lhs to the power of rhs. Integers wrap; a negative integer exponent gives 0 unless lhs is 1 or -1.",
    "xb.s32[3], xb.s32[3]: [3, 2, -1], [4, -1, -3] -> array([81,  0, -1], dtype=int32)",
    work="transcendental")  # fmt: skip
remainder = _binary("remainder", _ARITHMETIC,
    "Return the remainder of a division whose quotient is rounded towards zero; it has the sign of lhs. "
    "Division by zero returns lhs for integers and NaN for floats.",
    "xb.s32[3], xb.s32[3]: [7, -7, 7], [2, 2, 0] -> array([ 1, -1,  7], dtype=int32)")  # fmt: skip
shift_left = _binary("shift_left", "StableHLO, shift_left",
    "Shift the bits of lhs left by rhs (read as unsigned); return 0 if rhs is at least the width.",
    "xb.s32[3], xb.s32[3]: [1, 1, 1], [4, 32, -1] -> array([16,  0,  0], dtype=int32)")  # fmt: skip
shift_right_arithmetic = _binary("shift_right_arithmetic", "StableHLO, shift_right_arithmetic",
    "Shift the bits of lhs right by rhs (read as unsigned), repeating the top bit, even for unsigned types.",
    "xb.s8[2], xb.s8[2]: [-128, -1], [7, 8] -> array([-1, -1], dtype=int8)")  # fmt: skip
shift_right_logical = _binary("shift_right_logical", "StableHLO, shift_right_logical",
    "Shift the bits of lhs right by rhs (read as unsigned), filling with zeros; return 0 if rhs is at least the width.",
    "xb.s8[2], xb.s8[2]: [-128, -1], [7, 8] -> array([1, 0], dtype=int8)")  # fmt: skip
subtract = _binary("subtract", _ARITHMETIC,
    "Return lhs - rhs. Integers wrap.",
    "xb.u8[2], xb.u8[2]: [3, 0], [1, 1] -> array([  2, 255], dtype=uint8)")  # fmt: skip
xor = _binary("xor", _ARITHMETIC,
    "Return the bits that are set in exactly one operand.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([ 6, -6], dtype=int32)", order="any")  # fmt: skip


@op(Properties("same_place"))
def complex(lhs: Value, rhs: Value) -> Value:
    """Return the complex number lhs + i rhs.

    Shapes: both operands have the same shape, of type f32 or f64; the result is c64 or c128.
    Raises: not_array, rank_mismatch, dimension_mismatch, element_type_mismatch or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.ops.complex), [1.0, 3.0], [2.0, 4.0])
    array([1.+2.j, 3.+4.j], dtype=complex64)

    Source: StableHLO, complex.
    """


@op(Properties("same_place", moves=("operand",), is_identity=True))
def copy(operand: Value) -> Value:
    """Return the operand unchanged.

    Shapes: takes a value of any shape, including tuples and tokens.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[2])(xb.copy), [1, 2])
    array([1, 2], dtype=int32)

    Source: hlo_opcode.h, kCopy.
    """


@op(Properties("same_place", denormals="flushed", mixes_precisions=True))
def compare(
    lhs: Value,
    rhs: Value,
    *,
    direction: Literal["EQ", "NE", "LT", "LE", "GT", "GE"],
    type: Literal["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"] | None = None,
) -> Value:
    """Compare lhs with rhs, and return pred. Floats are compared as in IEEE 754 (a NaN equals nothing) or by total
    order.

    Shapes: both operands have the same shape, of any element type. The result is pred with the same extents.
    TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < inf < +NaN. Complex numbers are compared by their real parts, then
    by their imaginary parts.
    Raises: rank_mismatch, dimension_mismatch or element_type_mismatch; invalid_attribute if the comparison type does
    not suit the operands.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.lt), [1.0, 2.0], [2.0, 2.0])
    array([ True, False])

    Source: Operation Semantics, Element-wise comparison operations; StableHLO, compare.
    """


@op(Properties("same_place", denormals="flushed", mixes_precisions=True))
def clamp(min: Value, operand: Value, max: Value) -> Value:
    """Clamp the operand between two bounds: min(max(min, operand), max). If the bounds cross, `max` takes precedence.

    Shapes: the bounds are scalars or have the operand's shape. All operands have the same element type; every type is
    allowed. NaN in any operand gives NaN.
    Raises: not_array, rank_mismatch, dimension_mismatch or element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[()], xb.s32[3], xb.s32[()])(xb.clamp), 0, [-1, 5, 9], 6)
    array([0, 5, 6], dtype=int32)

    Source: Operation Semantics, Clamp.
    """


@op(Properties("same_place", moves=("on_true", "on_false"), chosen_by=("pred",), mixes_precisions=True))
def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    """Take elements from on_true where pred is true, and from on_false elsewhere, without changing any bits.

    Shapes: on_true and on_false have the same shape; pred is a scalar or has the same extents. Tuples need a scalar
    pred.
    Raises: not_array, rank_mismatch, dimension_mismatch, element_type_mismatch or non_scalar.

    >>> import xbuild as xb
    >>> chosen = xb.computation(xb.pred[4], xb.s32[4], xb.s32[4])(xb.select)
    >>> xb.evaluate(chosen, [True, False, False, True], [1, 2, 3, 4], [100, 200, 300, 400])
    array([  1, 200, 300,   4], dtype=int32)

    Source: Operation Semantics, Select.
    """
