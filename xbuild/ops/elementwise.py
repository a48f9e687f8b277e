"""Elementwise ops: most are declared by a row, those with attributes or notes in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from shape_inference.ops.elementwise import BINARY, UNARY, Types
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
    declaration.__doc__ = f"""{sentence}

    Shapes: one shape for all operands and the result; element types: {types}. Floats of two precisions return the
    wider one.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; element_type_unsupported.

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
    "The absolute value; for a complex number, its distance from 0; the smallest integer is unchanged.",
    "xb.s8[2]: [-3, -128] -> array([   3, -128], dtype=int8)", denormals="kept")  # fmt: skip
acos = _unary("acos", _HEADER,
    "The inverse cosine, in 0..π; NaN outside of -1..1.",
    "xb.f32[2]: [1.0, 2.0] -> array([ 0., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
acosh = _unary("acosh", _HEADER,
    "The inverse hyperbolic cosine; NaN below 1.",
    "xb.f32[2]: [1.0, 0.0] -> array([ 0., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
asin = _unary("asin", _HEADER,
    "The inverse sine, in -π/2..π/2; NaN outside of -1..1.",
    "xb.f32[2]: [0.0, 1.0] -> array([0.       , 1.5707964], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
asinh = _unary("asinh", _HEADER,
    "The inverse hyperbolic sine.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
atanh = _unary("atanh", _HEADER,
    "The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.",
    "xb.f32[2]: [0.0, 1.0] -> array([ 0., inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
cbrt = _unary("cbrt", "StableHLO, cbrt",
    "The real cube root, also of negative numbers.",
    "xb.f32[2]: [1.0, -1.0] -> array([ 1., -1.], dtype=float32)",
    work="transcendental")  # fmt: skip
ceil = _unary("ceil", _FUNCTIONS,
    "The least integer that is not smaller; -0.5 becomes -0.",
    "xb.f32[2]: [1.2, -0.5] -> array([ 2., -0.], dtype=float32)")  # fmt: skip
cosh = _unary("cosh", _HEADER,
    "The hyperbolic cosine.",
    "xb.f32[2]: [0.0, float('-inf')] -> array([ 1., inf], dtype=float32)",
    work="transcendental")  # fmt: skip
cosine = _unary("cosine", _FUNCTIONS,
    "The cosine of an angle in radians; NaN for an infinity.",
    "xb.f32[2]: [0.0, float('inf')] -> array([ 1., nan], dtype=float32)",
    work="transcendental")  # fmt: skip
count_leading_zeros = _unary("count_leading_zeros", "StableHLO, count_leading_zeros",
    "The number of leading zero bits; the width for 0, 0 for a negative number.",
    "xb.s8[3]: [0, 1, -1] -> array([8, 7, 0], dtype=int8)")  # fmt: skip
erf = _unary("erf", _HEADER,
    "The error function, 2/√π times the integral of exp(-t²) from 0.",
    "xb.f64[3]: [0.0, 1.0, 9.0] -> array([0.        , 0.84270079, 1.        ])",
    work="transcendental")  # fmt: skip
exponential = _unary("exponential", _FUNCTIONS,
    "e to the power of the operand.",
    "xb.f32[2]: [0.0, float('-inf')] -> array([1., 0.], dtype=float32)",
    work="transcendental")  # fmt: skip
exponential_minus_one = _unary("exponential_minus_one", "StableHLO, exponential_minus_one",
    "exp(x) - 1, without the loss of digits near 0.",
    "xb.f32[2]: [0.0, 1e-20] -> array([0.e+00, 1.e-20], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
floor = _unary("floor", _FUNCTIONS,
    "The greatest integer that is not larger; -0 stays -0.",
    "xb.f32[2]: [1.8, -0.5] -> array([ 1., -1.], dtype=float32)")  # fmt: skip
imag = _unary("imag", "StableHLO, imag",
    "The imaginary part, as float; 0 for a float.",
    "xb.c64[2]: [1 + 2j, 3] -> array([2., 0.], dtype=float32)", denormals="kept")  # fmt: skip
is_finite = _unary("is_finite", _FUNCTIONS,
    "Whether a number is neither infinite nor NaN, as pred.",
    "xb.f32[3]: [1.0, float('inf'), float('nan')] -> array([ True, False, False])", denormals="kept")  # fmt: skip
log = _unary("log", _FUNCTIONS,
    "The natural logarithm; -inf for either zero, NaN for a negative number.",
    "xb.f32[3]: [1.0, 0.0, -1.0] -> array([  0., -inf,  nan], dtype=float32)",
    work="transcendental")  # fmt: skip
log_plus_one = _unary("log_plus_one", "StableHLO, log_plus_one",
    "log(1 + x), without the loss of digits near 0; -inf at -1.",
    "xb.f32[2]: [1e-20, -1.0] -> array([1.e-20,   -inf], dtype=float32)",
    work="transcendental")  # fmt: skip
logistic = _unary("logistic", "StableHLO, logistic",
    "1 / (1 + exp(-x)), without overflow.",
    "xb.f32[3]: [-200.0, 0.0, 200.0] -> array([0. , 0.5, 1. ], dtype=float32)",
    work="transcendental")  # fmt: skip
negate = _unary("negate", _FUNCTIONS,
    "-x; integers wrap: the smallest is unchanged, and u8 1 becomes 255.",
    "xb.s8[2]: [5, -128] -> array([  -5, -128], dtype=int8)", denormals="kept")  # fmt: skip
not_ = _unary("not_", _FUNCTIONS,
    "Every bit inverted; for pred, the negation.",
    "xb.s8[2]: [0, 5] -> array([-1, -6], dtype=int8)")  # fmt: skip
popcnt = _unary("popcnt", "StableHLO, popcnt",
    "The number of set bits; the width for -1.",
    "xb.s8[3]: [0, 7, -1] -> array([0, 3, 8], dtype=int8)")  # fmt: skip
real = _unary("real", "StableHLO, real",
    "The real part, as float; a float itself.",
    "xb.c64[2]: [1 + 2j, 3] -> array([1., 3.], dtype=float32)", denormals="kept")  # fmt: skip
round_nearest_afz = _unary("round_nearest_afz", "StableHLO, round_nearest_afz",
    "The nearest integer, halves away from zero.",
    "xb.f32[4]: [0.5, 1.5, 2.5, -0.5] -> array([ 1.,  2.,  3., -1.], dtype=float32)")  # fmt: skip
round_nearest_even = _unary("round_nearest_even", "StableHLO, round_nearest_even",
    "The nearest integer, halves to the even one.",
    "xb.f32[4]: [0.5, 1.5, 2.5, -0.5] -> array([ 0.,  2.,  2., -0.], dtype=float32)")  # fmt: skip
rsqrt = _unary("rsqrt", "StableHLO, rsqrt",
    "1 / sqrt(x); -inf for -0, NaN for a negative number.",
    "xb.f32[2]: [4.0, -0.0] -> array([ 0.5, -inf], dtype=float32)",
    work="transcendental")  # fmt: skip
sign = _unary("sign", _FUNCTIONS,
    "-1, 0 or 1; a zero keeps its sign, a NaN stays; for a complex number z/|z|, 0 for 0.",
    "xb.f32[3]: [-2.0, -0.0, 5.0] -> array([-1., -0.,  1.], dtype=float32)")  # fmt: skip
sine = _unary("sine", "StableHLO, sine",
    "The sine of an angle in radians; NaN for an infinity.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., nan], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
sinh = _unary("sinh", _HEADER,
    "The hyperbolic sine.",
    "xb.f32[2]: [-0.0, float('-inf')] -> array([ -0., -inf], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
sqrt = _unary("sqrt", "StableHLO, sqrt",
    "The square root; -0 for -0, NaN for a negative number; for a complex one the root with real part >= 0.",
    "xb.c64[1]: [-4] -> array([0.+2.j], dtype=complex64)",
    work="transcendental")  # fmt: skip
tan = _unary("tan", "StableHLO, tan",
    "The tangent of an angle in radians; NaN for an infinity.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0., nan], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip
tanh = _unary("tanh", _FUNCTIONS,
    "The hyperbolic tangent.",
    "xb.f32[2]: [-0.0, float('inf')] -> array([-0.,  1.], dtype=float32)", denormals="returned",
    work="transcendental")  # fmt: skip

add = _binary("add", _ARITHMETIC,
    "lhs + rhs; integers wrap; logical or for pred.",
    "xb.u8[2], xb.u8[2]: [1, 255], [10, 2] -> array([11,  1], dtype=uint8)", order="any")  # fmt: skip
and_ = _binary("and_", _ARITHMETIC,
    "The bits set in both.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([8, 5], dtype=int32)", order="any")  # fmt: skip
atan2 = _binary("atan2", "StableHLO, atan2",
    "The angle of the point (rhs, lhs), in -π..π, with C's results for zeros and infinities.",
    "xb.f32[2], xb.f32[2]: [0.0, 1.0], [-1.0, 0.0] -> array([3.1415927, 1.5707964], dtype=float32)",
    work="transcendental")  # fmt: skip
divide = _binary("divide", _ARITHMETIC,
    "lhs / rhs; integers round towards zero; by zero, all bits set (-1, or the greatest unsigned).",
    "xb.s32[3], xb.s32[3]: [7, -7, 7], [2, 2, 0] -> array([ 3, -3, -1], dtype=int32)")  # fmt: skip
maximum = _binary("maximum", _ARITHMETIC,
    "The greater; NaN if either is NaN, +0 above -0; logical or for pred; complex by real, then imaginary part.",
    "xb.f32[2], xb.f32[2]: [1.0, 5.0], [3.0, float('nan')] -> array([ 3., nan], dtype=float32)",
    order="any")  # fmt: skip
minimum = _binary("minimum", _ARITHMETIC,
    "The lesser; NaN if either is NaN, -0 below +0; logical and for pred; complex by real, then imaginary part.",
    "xb.f32[2], xb.f32[2]: [1.0, 0.0], [3.0, -0.0] -> array([ 1., -0.], dtype=float32)",
    order="any")  # fmt: skip
mulhi = _binary("mulhi", _OPCODES,
    "The upper half of the product in twice the width.",
    "xb.s8[2], xb.s8[2]: [100, -1], [100, 1] -> array([39, -1], dtype=int8)", order="swapped")  # fmt: skip
multiply = _binary("multiply", _ARITHMETIC,
    "lhs * rhs; integers wrap; logical and for pred.",
    "xb.s8[2], xb.s8[2]: [3, 100], [4, 100] -> array([12, 16], dtype=int8)", order="any")  # fmt: skip
or_ = _binary("or_", _ARITHMETIC,
    "The bits set in either.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([14, -1], dtype=int32)", order="any")  # fmt: skip
power = _binary("power", "StableHLO, power",
    "lhs to the power of rhs; integers wrap; a negative exponent gives 0, except for 1 and -1.",
    "xb.s32[3], xb.s32[3]: [3, 2, -1], [4, -1, -3] -> array([81,  0, -1], dtype=int32)",
    work="transcendental")  # fmt: skip
remainder = _binary("remainder", _ARITHMETIC,
    "The remainder of division towards zero, with the sign of lhs; by zero, lhs for integers and NaN for floats.",
    "xb.s32[3], xb.s32[3]: [7, -7, 7], [2, 2, 0] -> array([ 1, -1,  7], dtype=int32)")  # fmt: skip
shift_left = _binary("shift_left", "StableHLO, shift_left",
    "The bits of lhs shifted left by rhs (read as unsigned); 0 if rhs is at least the width.",
    "xb.s32[3], xb.s32[3]: [1, 1, 1], [4, 32, -1] -> array([16,  0,  0], dtype=int32)")  # fmt: skip
shift_right_arithmetic = _binary("shift_right_arithmetic", "StableHLO, shift_right_arithmetic",
    "The bits of lhs shifted right by rhs (read as unsigned), repeating the top bit, also for unsigned types.",
    "xb.s8[2], xb.s8[2]: [-128, -1], [7, 8] -> array([-1, -1], dtype=int8)")  # fmt: skip
shift_right_logical = _binary("shift_right_logical", "StableHLO, shift_right_logical",
    "The bits of lhs shifted right by rhs (read as unsigned), filling with zeros; 0 if rhs is at least the width.",
    "xb.s8[2], xb.s8[2]: [-128, -1], [7, 8] -> array([1, 0], dtype=int8)")  # fmt: skip
subtract = _binary("subtract", _ARITHMETIC,
    "lhs - rhs; integers wrap.",
    "xb.u8[2], xb.u8[2]: [3, 0], [1, 1] -> array([  2, 255], dtype=uint8)")  # fmt: skip
xor = _binary("xor", _ARITHMETIC,
    "The bits set in exactly one.",
    "xb.s32[2], xb.s32[2]: [12, -1], [10, 5] -> array([ 6, -6], dtype=int32)", order="any")  # fmt: skip


@op(Properties("same_place"))
def complex(lhs: Value, rhs: Value) -> Value:
    """The complex number lhs + i rhs.

    Shapes: one shape for both, f32 or f64; the result is c64 or c128.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.ops.complex), [1.0, 3.0], [2.0, 4.0])
    array([1.+2.j, 3.+4.j], dtype=complex64)

    Source: StableHLO, complex.
    """


@op(Properties("same_place", moves=("operand",), is_identity=True))
def copy(operand: Value) -> Value:
    """The operand.

    Shapes: any shape, including tuples and tokens.

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
    """Compare lhs with rhs; returns pred. Floats compare by IEEE (a NaN equals nothing) or by total order.

    Shapes: one shape for both operands; any element type; pred of the same extents.
    TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < inf < +NaN. Complex numbers compare by real, then imaginary part.
    Raises: rank_mismatch; dimension_mismatch; element_type_mismatch; invalid_attribute for a type that does not fit.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.lt), [1.0, 2.0], [2.0, 2.0])
    array([ True, False])

    Source: Operation Semantics, Element-wise comparison operations; StableHLO, compare.
    """


@op(Properties("same_place", denormals="flushed", mixes_precisions=True))
def clamp(min: Value, operand: Value, max: Value) -> Value:
    """The operand clamped to two bounds: min(max(min, operand), max), so `max` wins if the bounds cross.

    Shapes: bounds of the operand's shape, or scalars; any element type. NaN in any of the three gives NaN.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[()], xb.s32[3], xb.s32[()])(xb.clamp), 0, [-1, 5, 9], 6)
    array([0, 5, 6], dtype=int32)

    Source: Operation Semantics, Clamp.
    """


@op(Properties("same_place", moves=("on_true", "on_false"), chosen_by=("pred",), mixes_precisions=True))
def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    """Elements of on_true where pred is true, of on_false elsewhere, bit for bit.

    Shapes: on_true and on_false of one shape, pred of the same extents or a scalar; tuples with a scalar pred.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; non_scalar.

    >>> import xbuild as xb
    >>> chosen = xb.computation(xb.pred[4], xb.s32[4], xb.s32[4])(xb.select)
    >>> xb.evaluate(chosen, [True, False, False, True], [1, 2, 3, 4], [100, 200, 300, 400])
    array([  1, 200, 300,   4], dtype=int32)

    Source: Operation Semantics, Select.
    """
