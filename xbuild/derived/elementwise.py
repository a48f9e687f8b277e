"""Names that are an elementwise op in XlaBuilder and a fold along an axis in NumPy: max and min.

Sections:

    max and min
    Other elementwise ops
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from shape_inference import refuse

from .. import ops
from ..core.builder import Value, stands_for
from ..core.diagnostics import ValueUseError, caller, dressed_text, warn
from ..core.op import OPS
from .support import align_operands, as_value, as_values, builder_among, dressed, dtype_of, like, rank_of

__all__ = [
    "add",
    "and_",
    "atan2",
    "clamp",
    "clz",
    "compare",
    "complex",
    "conj",
    "cos",
    "div",
    "divide",
    "eq",
    "exp",
    "expm1",
    "floor_divide",
    "ge",
    "gt",
    "le",
    "log1p",
    "lt",
    "max",
    "maximum",
    "min",
    "minimum",
    "mul",
    "mulhi",
    "multiply",
    "ne",
    "neg",
    "or_",
    "population_count",
    "pow",
    "power",
    "reciprocal",
    "rem",
    "remainder",
    "round",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sin",
    "square",
    "sub",
    "subtract",
    "xor",
]


# ----------------------------------------------------------------------------
# max and min
#
# An elementwise op in XlaBuilder, and a fold along an axis in NumPy.


def _between_two(form: Callable[..., Value], method: str) -> Callable[..., Value]:
    """An elementwise form of two operands whose name NumPy uses for a reduction along an axis.

    It refuses a call without a second operand, and warns of an int that could be an axis.
    """

    def compared(
        lhs: Any,
        rhs: Any = None,
        broadcast_dimensions: Sequence[int] | None = None,
        *,
        name: str | None = None,
        **of_a_fold: Any,
    ) -> Value:
        if rhs is None or of_a_fold:
            _refuse_fold(lhs, method)
        rank = rank_of(lhs) if type(rhs) is int else None
        if rank and -rank <= rhs < rank:
            warn(
                f"xb.{method}(x, {rhs}) compares each element with {rhs}. Use x.{method}(axis={rhs}) for the {method} "
                f"along axis {rhs}, or xb.{form.__name__}(x, {rhs}) to compare without this warning"
            )
        return form(lhs, rhs, broadcast_dimensions, name=name)

    compared.__name__ = compared.__qualname__ = form.__name__
    compared.__module__ = form.__module__
    compared.__doc__ = (form.__doc__ or "").replace(f"xb.{form.__name__}(", f"xb.{method}(")
    return compared


def _refuse_fold(operand: Any, method: str) -> NoReturn:
    message = "expected 2 operands, got 1"
    hint = f"x.{method}(axis=...) computes the {method} of the elements of x and also takes keepdims="
    rows = [("lhs", f"{operand.shape}  %{operand.name}")] if isinstance(operand, Value) else []
    text = dressed_text(f"{method}: {message} [arity_mismatch]", rows, caller(), [hint])
    error = ValueUseError("arity_mismatch", text, [hint])
    error.message, error.explained = message, True
    raise error


# ----------------------------------------------------------------------------
# Other elementwise ops
#
# Implicit broadcasting, numbers as operands, XlaBuilder's names.

Operand: TypeAlias = Any
"""A value, a number, a list of numbers or an array."""


def _binary(strict: Callable[..., Value], dtype: str = "s32") -> Callable[..., Value]:
    schema = OPS[strict.__name__.strip("_")]
    broadcast = _broadcast(strict)

    def form(
        lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = None, *, name: str | None = None
    ) -> Value:
        if (
            broadcast_dimensions is None
            and type(lhs) is type(rhs) is Value
            and lhs.instruction.shape is rhs.instruction.shape
        ):
            return lhs.builder.record(schema, (lhs, rhs), None, {}, name)  # the op, without its general way in
        return broadcast(lhs, rhs, broadcast_dimensions, name=name)

    form.__name__ = form.__qualname__ = strict.__name__
    form.__doc__ = _DOCUMENTATION.format(
        sentence=(strict.__doc__ or "").partition("\n")[0],
        name=strict.__name__,
        dtype=dtype,
        result={"complex": "c64"}.get(strict.__name__, dtype),
    )
    return form


_DOCUMENTATION = """{sentence}

    Shapes: a scalar fits any shape. If the operands have equal rank, an extent of 1 stretches to the extent of the
    other operand. If an operand has a lower rank, broadcast_dimensions (strictly ascending) maps the dimensions of this
    operand to those of the result, and extents of 1 in this operand also stretch. Records a reshape and a
    broadcast where necessary, then the op. A Python number or list takes the element type of the other operand; an
    array keeps its own.
    Raises: rank_mismatch, dimension_mismatch, dimension_out_of_range, bad_order, duplicate_dimension,
    attribute_length_mismatch, invalid_attribute or element_type_mismatch; also the same errors as xb.ops.{name}.

    >>> import xbuild as xb
    >>> builder = xb.Builder("b")
    >>> x = xb.parameter(builder, number=0, shape=xb.{dtype}[2, 3])
    >>> y = xb.parameter(builder, number=1, shape=xb.{dtype}[3])
    >>> xb.{name}(x, y, broadcast_dimensions=[1]).shape, xb.{name}(x, 2).shape
    ({result}[2,3], {result}[2,3])

    Source: Operation Semantics, Element-wise binary arithmetic operations; Broadcasting semantics.
    """


def _broadcast(strict: Callable[..., Value]) -> Callable[..., Value]:
    def form(
        lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = None, *, name: str | None = None
    ) -> Value:
        return strict(*align_operands(lhs, rhs, broadcast_dimensions), name=name)

    form.__name__ = strict.__name__
    return dressed(form)


add = _binary(ops.add)
and_ = _binary(ops.and_)
atan2 = _binary(ops.atan2, "f32")
complex = _binary(ops.complex, "f32")
divide = _binary(ops.divide)
maximum = _binary(ops.maximum)
minimum = _binary(ops.minimum)
mulhi = _binary(ops.mulhi)
multiply = _binary(ops.multiply)
or_ = _binary(ops.or_)
power = _binary(ops.power)
remainder = _binary(ops.remainder)
shift_left = _binary(ops.shift_left)
shift_right_arithmetic = _binary(ops.shift_right_arithmetic)
shift_right_logical = _binary(ops.shift_right_logical)
subtract = _binary(ops.subtract)
xor = _binary(ops.xor)

Direction: TypeAlias = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]


@dressed
def compare(
    lhs: Operand,
    rhs: Operand,
    direction: Direction,
    broadcast_dimensions: Sequence[int] | None = None,
    *,
    type: Literal["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"] | None = None,
    name: str | None = None,
) -> Value:
    """Compare lhs with rhs, and return pred. Operands broadcast like those of xb.add.

    Raises: the same errors as xb.add and xb.ops.compare.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3])
    >>> xb.compare(x, 0.5, "LT").shape
    pred[2,3]

    Source: Operation Semantics, Element-wise comparison operations.
    """
    left, right = align_operands(lhs, rhs, broadcast_dimensions)
    return ops.compare(left, right, direction=direction, type=type, name=name)


def _comparison(direction: Direction, words: str) -> Callable[..., Value]:
    def form(
        lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = None, *, name: str | None = None
    ) -> Value:
        return compare(lhs, rhs, direction, broadcast_dimensions, name=name)

    form.__name__ = form.__qualname__ = direction.lower()
    form.__doc__ = f"""Return whether lhs is {words} rhs, as pred. Operands broadcast like those of xb.add.

    Raises: the same errors as xb.compare.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 3])
    >>> xb.{direction.lower()}(x, 0.5).shape
    pred[2,3]

    Source: Operation Semantics, Element-wise comparison operations.
    """
    return form


eq = _comparison("EQ", "equal to")
ne = _comparison("NE", "not equal to")
lt = _comparison("LT", "less than")
le = _comparison("LE", "less than or equal to")
gt = _comparison("GT", "greater than")
ge = _comparison("GE", "greater than or equal to")


@dressed
def clamp(min: Operand, operand: Operand, max: Operand, *, name: str | None = None) -> Value:
    """Return min(max(min, operand), max). A number takes the element type of the first value.

    Raises: the same errors as xb.ops.clamp.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
    >>> xb.clamp(0, x, 6).shape
    f32[3]

    Source: Operation Semantics, Clamp.
    """
    return ops.clamp(*as_values((min, operand, max)), name=name)


@dressed
def select(pred: Operand, on_true: Operand, on_false: Operand, *, name: str | None = None) -> Value:
    """Take elements from on_true where pred is true, and from on_false elsewhere. A scalar is broadcast.

    Raises: the same errors as xb.ops.select.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
    >>> xb.select(xb.lt(x, 0), 0, x).shape
    f32[3]

    Source: Operation Semantics, Select.
    """
    if type(pred) is type(on_true) is type(on_false) is Value:
        return ops.select(pred, on_true, on_false, name=name)
    builder = builder_among((pred, on_true, on_false))
    on_true, on_false, pred = map(stands_for, (on_true, on_false, pred))
    model = next((each for each in (on_true, on_false, pred) if isinstance(each, Value)), None)
    dtype = dtype_of(on_true) or dtype_of(on_false)
    arms = [like(as_value(builder, arm, dtype), model, arm) for arm in (on_true, on_false)]
    return ops.select(as_value(builder, pred), *arms, name=name)


@dressed
def floor_divide(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Value:
    """Return lhs / rhs rounded down, like JAX's floor_divide and Python's `//`.

    Operands broadcast like those of xb.add.
    Division by zero returns -2 for signed integers (-1 if lhs is zero), the largest unsigned integer for unsigned
    integers, and an infinity or NaN for floats.
    Raises: element_type_unsupported for complex numbers and pred; also the same errors as xb.add.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.s32[3])
    >>> xb.floor_divide(x, 2).shape
    s32[3]

    Source: jax.numpy.floor_divide; CPython, float_divmod.
    """
    left, right = align_operands(lhs, rhs, None)
    kind = getattr(dtype_of(left), "kind", None)
    if kind in ("complex", "pred"):
        refuse(
            "element_type_unsupported", f"lhs is {left.shape}, but floor division is not defined for {kind} elements"
        )
    rest = None if kind == "unsigned" else ops.remainder(left, right)
    if rest is None:
        return ops.divide(left, right, name=name)
    return _floored_floats(left, right, rest, name) if kind == "float" else _floored_integers(left, right, rest, name)


def _floored_integers(lhs: Value, rhs: Value, rest: Value, name: str | None) -> Value:
    quotient = ops.divide(lhs, rhs)
    is_above = and_(ne(ops.sign(lhs), ops.sign(rhs)), ne(rest, 0))
    return select(is_above, quotient - 1, quotient, name=name)


def _floored_floats(lhs: Value, rhs: Value, rest: Value, name: str | None) -> Value:
    """Floored division as in CPython's float_divmod: the dividend without its remainder, divided, then rounded."""
    quotient = ops.divide(select(eq(rhs, 0), lhs, ops.subtract(lhs, rest)), rhs)
    is_above = and_(ne(rest, 0), ne(ops.sign(rhs), ops.sign(rest)))
    return ops.round_nearest_afz(select(is_above, quotient - 1, quotient), name=name)


def square(operand: Value, *, name: str | None = None) -> Value:
    """Return operand * operand.

    >>> import xbuild as xb
    >>> xb.square(xb.constant(xb.Builder("b"), 3.0))
    %multiply.2: f32[]

    Source: XlaBuilder's math library, Square.
    """
    return ops.multiply(operand, operand, name=name)


def reciprocal(operand: Value, *, name: str | None = None) -> Value:
    """Return 1 / operand.

    >>> import xbuild as xb
    >>> xb.reciprocal(xb.constant(xb.Builder("b"), 4.0))
    %divide.3: f32[]

    Source: XlaBuilder's math library, Reciprocal.
    """
    return divide(1, operand, name=name)


def conj(operand: Value, *, name: str | None = None) -> Value:
    """Return the complex conjugate.

    >>> import xbuild as xb
    >>> xb.conj(xb.constant(xb.Builder("b"), 1 + 2j)).shape
    c64[]

    Source: XlaBuilder's math library, Conj.
    """
    return ops.complex(ops.real(operand), ops.negate(ops.imag(operand)), name=name)


clz = ops.count_leading_zeros
cos = ops.cosine
exp = ops.exponential
expm1 = ops.exponential_minus_one
log1p = ops.log_plus_one
neg = ops.negate
population_count = ops.popcnt
round = ops.round_nearest_afz
sin = ops.sine

div, mul, pow, rem, sub = divide, multiply, power, remainder, subtract
max, min = _between_two(maximum, "max"), _between_two(minimum, "min")
