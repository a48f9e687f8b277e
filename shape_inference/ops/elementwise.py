"""Shapes of elementwise ops, and tables of the element types that each op takes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection

from ..dims import array, element_type, same_type
from ..rules import infer, refuse
from ..types import (
    COMPLEX_OF,
    COMPONENT,
    PRIMITIVES,
    AnyShape,
    PrimitiveType,
    Shape,
    TupleShape,
    array_shape,
    compatible,
    pred,
)

Types = tuple[Collection[PrimitiveType], str]


def _of(*kinds: str) -> frozenset[PrimitiveType]:
    return frozenset(t for t in PRIMITIVES.values() if t.kind in kinds)


FLOAT: Types = _of("float"), "floating point"
UNSIGNED: Types = _of("unsigned"), "unsigned integer"
INTEGER: Types = _of("signed", "unsigned"), "integer"
BITS: Types = _of("pred", "signed", "unsigned"), "pred or integer"
INEXACT: Types = _of("float", "complex"), "floating point or complex"
NUMBER: Types = _of("signed", "unsigned", "float", "complex"), "integer, floating point or complex"
SIGNED_NUMBER: Types = _of("signed", "float", "complex"), "signed integer, floating point or complex"
REAL_NUMBER: Types = _of("signed", "unsigned", "float"), "integer or floating point"
ANY: Types = _of("pred", "signed", "unsigned", "float", "complex"), "an element type of arrays"

UNARY: dict[str, Types] = {
    "abs": SIGNED_NUMBER, "acos": INEXACT, "acosh": INEXACT, "asin": INEXACT, "asinh": INEXACT, "atanh": INEXACT,
    "cbrt": FLOAT, "ceil": FLOAT, "cosh": INEXACT, "cosine": INEXACT, "count_leading_zeros": INTEGER,
    "erf": FLOAT, "exponential": INEXACT, "exponential_minus_one": INEXACT, "floor": FLOAT, "imag": INEXACT,
    "is_finite": FLOAT, "log": INEXACT, "log_plus_one": INEXACT, "logistic": INEXACT, "negate": NUMBER, "not": BITS,
    "popcnt": INTEGER, "real": INEXACT, "round_nearest_afz": FLOAT, "round_nearest_even": FLOAT, "rsqrt": INEXACT,
    "sign": SIGNED_NUMBER, "sine": INEXACT, "sinh": INEXACT, "sqrt": INEXACT, "tan": INEXACT, "tanh": INEXACT,
}  # fmt: skip

BINARY: dict[str, Types] = {
    "add": ANY, "and": BITS, "atan2": INEXACT, "divide": NUMBER, "maximum": ANY,
    "minimum": ANY, "mulhi": INTEGER, "multiply": ANY, "or": BITS, "power": NUMBER, "remainder": REAL_NUMBER,
    "shift_left": INTEGER, "shift_right_arithmetic": INTEGER, "shift_right_logical": INTEGER, "subtract": NUMBER,
    "xor": BITS,
}  # fmt: skip

RESULT: dict[str, Callable[[PrimitiveType], PrimitiveType]] = {
    "abs": lambda t: COMPONENT.get(t, t),
    "real": lambda t: COMPONENT.get(t, t),
    "imag": lambda t: COMPONENT.get(t, t),
    "is_finite": lambda t: pred,
}


def _unary(opcode: str, allowed: Types) -> Callable[[AnyShape], Shape]:
    types, words = allowed
    result = RESULT.get(opcode)

    def rule(operand: AnyShape) -> Shape:
        shape = array("operand", operand)
        if shape.dtype not in types:
            element_type("operand", shape, types, words)
        return shape.with_dtype(result(shape.dtype)) if result else shape

    return rule


def _binary(allowed: Types) -> Callable[[AnyShape, AnyShape], Shape]:
    types, words = allowed

    def rule(lhs: AnyShape, rhs: AnyShape) -> Shape:
        shape = _common(lhs, rhs)
        if shape.dtype not in types:
            element_type("lhs", shape, types, words)
        return shape

    return rule


def _common(lhs: AnyShape, rhs: AnyShape) -> Shape:
    """The shape of a result of two operands of the same extents; of two float types the wider one is the result's."""
    if lhs is rhs and type(lhs) is Shape and lhs.layout is None:
        return lhs
    left, right = array("lhs", lhs), array("rhs", rhs)
    dtype = same_type("lhs", left, "rhs", right, mixed_floats=True)
    return same_dims("lhs", left, "rhs", right).with_dtype(dtype)


def same_dims(first: str, a: Shape, second: str, b: Shape) -> Shape:
    """The shape of two operands of equal extents; a dimension is dynamic if it is dynamic in either operand."""
    if a.rank != b.rank:
        refuse("rank_mismatch", f"{first} is {a} and {second} is {b}: ranks {a.rank} and {b.rank} differ")
    for dim, (left, right) in enumerate(zip(a.dims, b.dims, strict=True)):
        if left != right:
            refuse(
                "dimension_mismatch",
                f"{first} is {a} and {second} is {b}: extents {left} and {right} of dimension {dim} differ",
            )
    if a.dynamic and b.dynamic:
        return Shape(a.dtype, a.dims, tuple(map(operator.or_, a.dynamic, b.dynamic)))
    return a if a.dynamic else b


for _opcode, _types in UNARY.items():
    infer.enter(_opcode, _unary(_opcode, _types))
for _opcode, _types in BINARY.items():
    infer.enter(_opcode, _binary(_types))


@infer
def compare(lhs: AnyShape, rhs: AnyShape, *, direction: str, type: str | None) -> Shape:
    shape = _common(lhs, rhs)
    legal = ORDERS[shape.dtype.kind]
    if type is not None and type not in legal:
        refuse("invalid_attribute", f"expected type {' or '.join(legal)} to compare {shape}, got {type!r}")
    return shape.with_dtype(pred)


ORDERS = {
    "pred": ("UNSIGNED",),
    "signed": ("SIGNED",),
    "unsigned": ("UNSIGNED",),
    "float": ("FLOAT", "TOTALORDER"),
    "complex": ("FLOAT",),
}


@infer
def complex(lhs: AnyShape, rhs: AnyShape) -> Shape:
    left, right = array("lhs", lhs), array("rhs", rhs)
    same_type("lhs", left, "rhs", right)
    element_type("lhs", left, COMPLEX_OF, "f32 or f64")
    return same_dims("lhs", left, "rhs", right).with_dtype(COMPLEX_OF[left.dtype])


@infer
def copy(operand: AnyShape) -> AnyShape:
    return operand


@infer
def clamp(min: AnyShape, operand: AnyShape, max: AnyShape) -> Shape:
    shape = array("operand", operand)
    for name, bound in (("min", array("min", min)), ("max", array("max", max))):
        same_type(name, bound, "operand", shape, mixed_floats=True)
        if bound.dims:
            same_dims(name, bound, "operand", shape)
    return shape


@infer
def select(pred: AnyShape, on_true: AnyShape, on_false: AnyShape) -> AnyShape:
    choice = array("pred", pred)
    if choice.dtype is not _PRED.dtype:
        refuse("element_type_mismatch", f"pred is {choice}, but its element type must be pred")
    if isinstance(on_true, TupleShape) or not isinstance(on_false, Shape):
        return _select_tuples(choice, on_true, on_false)
    left, right = array("on_true", on_true), array("on_false", on_false)
    dtype = same_type("on_true", left, "on_false", right, mixed_floats=True)
    result = same_dims("on_true", left, "on_false", right)
    if choice.dims:
        result = same_dims("pred", choice, "on_true", result)
    return result.with_dtype(dtype)


_PRED = array_shape(pred, ())


def _select_tuples(choice: Shape, on_true: AnyShape, on_false: AnyShape) -> AnyShape:
    if not compatible(on_true, on_false):
        refuse("element_type_mismatch", f"on_true is {on_true} and on_false is {on_false}; their shapes must be equal")
    if not isinstance(on_true, TupleShape):
        refuse("not_array", f"expected an array or a tuple for on_true, got {on_true}")
    if choice.dims:
        refuse("non_scalar", f"pred must be pred[] to select between tuples, got {choice}")
    return on_true
