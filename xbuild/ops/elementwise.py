"""Ops that act on each element alone: a row for each, and three that take more than a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from shape_inference.ops.elementwise import BINARY, UNARY

from ..builder import Value
from ..op import op


def _unary(opcode: str, sentence: str, example: str, source: str) -> Callable[[Value], Value]:
    def declaration(operand: Value) -> Value: ...

    return _declared(declaration, opcode, sentence, UNARY[opcode.strip("_")][1], example, source)


def _binary(opcode: str, sentence: str, example: str, source: str) -> Callable[[Value, Value], Value]:
    def declaration(lhs: Value, rhs: Value) -> Value: ...

    return _declared(declaration, opcode, sentence, BINARY[opcode.strip("_")][1], example, source)


def _declared(declaration: Callable[..., Value], opcode: str, sentence: str, types: str, example: str, source: str) -> Callable[..., Value]:
    """Declare the op of a row; its example is `shape(s): arguments -> printed result`."""
    shapes, arguments, result = (part.strip() for part in example.replace("->", ":").split(":"))
    declaration.__name__ = declaration.__qualname__ = opcode
    declaration.__doc__ = f"""{sentence}

    Shapes: one shape for all operands and the result; element types: {types}.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; element_type_unsupported.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation({shapes})(xb.{opcode}), {arguments})
    {result}

    Source: {source}.
    """
    return op(declaration)


_UNARY_FUNCTIONS = "Operation Semantics, Element-wise unary functions"
_ARITHMETIC = "Operation Semantics, Element-wise binary arithmetic operations"

abs = _unary("abs", "|x|; of a complex number its magnitude, of the smallest integer itself.",
             "xb.s32[2]: [-3, 4] -> array([3, 4], dtype=int32)", _UNARY_FUNCTIONS)  # fmt: skip
tanh = _unary("tanh", "The hyperbolic tangent.",
              "xb.f32[2]: [0.0, 1.0] -> array([0.       , 0.7615942], dtype=float32)", _UNARY_FUNCTIONS)  # fmt: skip
negate = _unary("negate", "-x; integers wrap, so the smallest stays.",
                "xb.s8[2]: [5, -128] -> array([  -5, -128], dtype=int8)", _UNARY_FUNCTIONS)  # fmt: skip
add = _binary("add", "lhs + rhs; integers wrap, pred gives or.",
              "xb.s32[2], xb.s32[2]: [1, 2], [10, 20] -> array([11, 22], dtype=int32)", _ARITHMETIC)  # fmt: skip
subtract = _binary("subtract", "lhs - rhs; integers wrap.",
                   "xb.s32[2], xb.s32[2]: [1, 2], [10, 20] -> array([ -9, -18], dtype=int32)", _ARITHMETIC)  # fmt: skip
multiply = _binary("multiply", "lhs * rhs; integers wrap, pred gives and.",
                   "xb.s32[2], xb.s32[2]: [1, 2], [10, 20] -> array([10, 40], dtype=int32)", _ARITHMETIC)  # fmt: skip
maximum = _binary("maximum", "The larger of the two; NaN if either is, +0 over -0.",
                  "xb.f32[2], xb.f32[2]: [1.0, 5.0], [3.0, 2.0] -> array([3., 5.], dtype=float32)", _ARITHMETIC)  # fmt: skip


@op
def compare(
    lhs: Value,
    rhs: Value,
    *,
    direction: Literal["EQ", "NE", "LT", "LE", "GT", "GE"],
    type: Literal["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"] | None = None,
) -> Value:
    """Whether lhs stands in this relation to rhs, as pred; floats by IEEE (a NaN equals nothing), or by total order.

    Shapes: one shape for both operands; any element type; pred of the same extents.
    TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < inf < +NaN. Complex numbers compare by real, then imaginary part.
    Raises: rank_mismatch; dimension_mismatch; element_type_mismatch; invalid_attribute for a type that does not fit.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.lt), [1.0, 2.0], [2.0, 2.0])
    array([ True, False])

    Source: Operation Semantics, Element-wise comparison operations; StableHLO, compare.
    """
    ...


@op
def clamp(min: Value, operand: Value, max: Value) -> Value:
    """The operand held between two bounds: min(max(min, operand), max), so `max` wins where the bounds cross.

    Shapes: bounds of the operand's shape, or scalars; any element type. NaN in any of the three gives NaN.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation(xb.s32[()], xb.s32[3], xb.s32[()])(xb.clamp), 0, [-1, 5, 9], 6)
    array([0, 5, 6], dtype=int32)

    Source: Operation Semantics, Clamp.
    """
    ...


@op
def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    """Elements of on_true where pred is true, of on_false elsewhere, bit for bit.

    Shapes: on_true and on_false of one shape, pred of the same extents or a scalar; tuples with a scalar pred.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; non_scalar.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> chosen = xb.computation(xb.pred[4], xb.s32[4], xb.s32[4])(xb.select)
    >>> evaluate(chosen, [True, False, False, True], [1, 2, 3, 4], [100, 200, 300, 400])
    array([  1, 200, 300,   4], dtype=int32)

    Source: Operation Semantics, Select.
    """
    ...
