"""Protocols of Python and NumPy on values: what follows from the shape works; the rest raises, with an alternative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape

from .diagnostics import MissingAttributeError, ValueUseError, caller, dressed_text, warn
from .hooks import forms

if TYPE_CHECKING:
    from .builder import Value


# ----------------------------------------------------------------------------
# NumPy's names: the op that a function records, the function of `xbuild` that a refusal names, other meanings.

# The functions that `array + value` and so on call, by the op that the operator of a value records.
_OPERATORS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "floor_divide": "floor_divide",
    "power": "power", "bitwise_and": "and_", "bitwise_or": "or_",
    "bitwise_xor": "xor", "left_shift": "shift_left", "equal": "eq", "not_equal": "ne",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip

# The replacements of functions whose op has another name, or a name that NumPy uses for another function.
_WAYS_OUT = {
    "absolute": "abs(x)", "fabs": "abs(x)", "negative": "-x", "positive": "+x", "invert": "~x", "logical_not": "~x",
    "logical_and": "x & y", "logical_or": "x | y", "logical_xor": "x ^ y", "isnan": "x != x",
    "isinf": "abs(x) == numpy.inf", "isfinite": "xb.is_finite(x)", "rint": "xb.round_nearest_even(x)",
    "round": "xb.round_nearest_even(x)", "around": "xb.round_nearest_even(x)", "trunc": "xb.convert(x, xb.s32)",
    "arcsin": "xb.asin(x)", "arccos": "xb.acos(x)", "arctan": "xb.atan(x)", "arctan2": "xb.atan2(y, x)",
    "arcsinh": "xb.asinh(x)", "arccosh": "xb.acosh(x)", "arctanh": "xb.atanh(x)", "float_power": "x ** y",
    "divmod": "x // y", "fmod": "xb.remainder(x, y)", "exp2": "2 ** x",
    "sum": "x.sum(axis=...)", "prod": "x.prod(axis=...)", "any": "x.any(axis=...)", "all": "x.all(axis=...)",
    "max": "x.max(axis=...)", "amax": "x.max(axis=...)", "min": "x.min(axis=...)", "amin": "x.min(axis=...)",
    "mean": "x.mean(axis=...)", "var": "x.var(axis=...)", "std": "x.std(axis=...)", "argmax": "x.argmax(axis=...)",
    "argmin": "x.argmin(axis=...)", "transpose": "x.T", "moveaxis": "xb.transpose(x, permutation)",
    "where": "xb.select(pred, on_true, on_false)",
    "clip": "xb.clamp(min, x, max)", "einsum": "xb.dot_general(x, y, ...)", "tensordot": "xb.dot_general(x, y, ...)",
    "vdot": "x @ y", "inner": "x @ y", "matmul": "x @ y", "dot": "x @ y", "flip": "xb.rev(x, dimensions)",
    "argsort": "xb.sort((x, places))[1]", "take": "x[indices]", "concatenate": "xb.concatenate([x, y], dimension)",
    "broadcast_to": "xb.broadcast_in_dim(x, sizes, dimensions)", "ravel": "x.ravel()",
    "stack": "xb.concatenate([xb.expand_dims(x, 0), xb.expand_dims(y, 0)], 0)",
    "vstack": "xb.concatenate([x, y], 0)", "hstack": "xb.concatenate([x, y], -1)", "shape": "x.shape.dims",
    "ndim": "x.ndim", "size": "x.size", "array_equal": "(x == y).all()", "copy": "x itself (a value never changes)",
    "zeros_like": "xb.broadcast(xb.constant(builder, 0.0), x.shape.dims)",
    "ones_like": "xb.broadcast(xb.constant(builder, 1.0), x.shape.dims)",
}  # fmt: skip


# The replacements of attributes of arrays that a value does not have.
_ATTRIBUTES = {
    "at": "use xb.dynamic_update_slice(x, y, starts) to write y into x: x.at[0].set(y) becomes "
    "xb.dynamic_update_slice(x, y, [0, 0]) with a y of rank 2; xb.scatter writes at many positions",
    **dict.fromkeys(
        ("item", "tolist", "numpy", "tobytes", "data", "block_until_ready", "device_get"),
        "the value is known only when the program runs: xb.evaluate(builder.build(x), ...) returns it",
    ),
    "clip": "use xb.clamp(low, x, high) instead", "round": "use xb.round_nearest_even(x) instead",
    "dot": "use x @ y instead", "matmul": "use x @ y instead", "copy": "use x itself (a value never changes)",
    "sort": "use xb.sort(x) instead", "argsort": "use xb.sort((x, places))[1] instead",
    "cumsum": "for a vector, use xb.scan(x, 0.0, lambda each, total: (each + total, each + total))[0]",
    "take": "use x[indices] instead", "repeat": "use xb.broadcast(x, sizes) to repeat a value",
    "fill": "values are immutable; xb.broadcast(xb.constant(builder, 1.0), sizes) creates a filled array",
    "conj": "use xb.conj(x) instead", "conjugate": "use xb.conj(x) instead",
    "real": "use xb.real(x) instead", "imag": "use xb.imag(x) instead",
    "view": "use xb.bitcast_convert(x, dtype) instead", "nbytes": "use x.shape.bytes instead",
    "itemsize": "use x.dtype.bits instead", "dims": "use x.shape.dims instead",
    "split": "use x[:n] and x[n:] instead", "build": "builder.build(x) returns the computation with the result x",
}  # fmt: skip


def attribute_hint(name: str) -> list[str]:
    """The hint for an attribute that a value does not have, if `xb` has something similar."""
    if name in _ATTRIBUTES:
        return [_ATTRIBUTES[name]]
    form = vars(forms.namespace).get(name)
    return [f"use xb.{name}(x, ...) instead"] if callable(form) else []


def way_out(name: str, method: str = "__call__") -> str:
    """The replacement in `xbuild` of a NumPy function, or of a method of a ufunc such as `numpy.add.reduce`."""
    if method != "__call__":
        return {
            "reduce": "xb.reduce reduces the elements", "accumulate": "xb.reduce_window computes running reductions",
        }.get(method, "xb.scatter combines updates at many positions")  # fmt: skip
    if name in _WAYS_OUT:
        return f"for a value, use {_WAYS_OUT[name]}"
    form = vars(forms.namespace).get(name)
    if callable(form) and form.__module__.startswith("xbuild."):
        return f"use xb.{name} instead"
    return "xb has no op of that name; xb.evaluate(computation, ...) returns NumPy arrays"


def _recording(name: str) -> Callable[..., Any]:
    return lambda *operands: getattr(forms, name)(*operands)


def _by_operator(name: str) -> Callable[..., Any]:
    """The operator of a value, or the reflected one if the first operand is not a value."""

    def record(lhs: Any, rhs: Any) -> Any:
        from .builder import Value

        return getattr(lhs, f"__{name}__")(rhs) if isinstance(lhs, Value) else getattr(rhs, f"__r{name}__")(lhs)

    return record


RECORDED: dict[str, Callable[..., Any]] = {name: _recording(op) for name, op in _OPERATORS.items()}
RECORDED |= {
    function: _by_operator(name)
    for function, name in (
        ("right_shift", "rshift"), ("divide", "truediv"), ("remainder", "mod"), ("matmul", "matmul"),
    )
}  # fmt: skip


def _kind(value: Any) -> str | None:
    dtype = getattr(value.instruction.shape, "dtype", None)
    return dtype.kind if dtype else None


def warn_of_division(value: Any) -> None:
    if _kind(value) in ("signed", "unsigned"):
        warn(
            "`/` on integers is XLA's divide, which rounds toward zero: 7 / 2 is 3. Use x.astype(xb.f32) / y for "
            "NumPy's quotient, x // y to round down, or xb.divide(x, y) for XLA's divide without this warning"
        )


def warn_of_remainder(value: Any) -> None:
    if _kind(value) in ("signed", "float"):
        warn(
            "`%` is XLA's remainder, which has the sign of the dividend: -7 % 2 is -1. Use x - (x // y) * y for "
            "the remainder of NumPy and Python, or xb.remainder(x, y) for XLA's remainder without this warning"
        )


def warn_of_ranks(lhs: Any, rhs: Any) -> None:
    if max(map(_rank, (lhs, rhs))) > 2:
        warn(
            "`@` is XlaBuilder's Dot, which contracts dimension 1 of lhs with dimension 0 of rhs at any rank. "
            "Use xb.dot_general(x, y, [-1], [-2], [0], [0]) for NumPy's product with one batch dimension, or "
            "xb.dot(x, y) for XlaBuilder's Dot without this warning"
        )


def _rank(operand: Any) -> int:
    shape = getattr(operand, "shape", ())
    return len(getattr(shape, "dims", shape))


# ----------------------------------------------------------------------------
# Protocols of Python and NumPy on values: those that follow from the shape work; others raise, with an alternative.

_FOLD = "x.sum(axis=0), x.max(), x.min(), x.any() and x.all() reduce the elements, as does xb.reduce(x, 0, xb.add)"
_NUMBERS = "xb.evaluate(builder.build(x), ...) runs the program and returns the number"
_NUMBER = f"x.astype(dtype), which is xb.convert, changes the element type; {_NUMBERS}"


def refusal(
    spelling: str, value: Any, kind: str, message: str, *hints: str, error_class: type[ValueUseError] = ValueUseError
) -> ValueUseError:
    """The error of a protocol that a value does not support, with its shape, its name and the user's line."""
    rows = [("value", f"{value.shape}  %{value.name}")]
    error = error_class(kind, dressed_text(f"{spelling}: {message} [{kind}]", rows, caller(), hints), hints)
    error.message, error.explained = message, True
    return error


def missing_attribute(value: Any, name: str) -> ValueUseError:
    """The error of an attribute that a value does not have, with the form that does the same."""
    message, hint = f"a Value has no attribute {name!r}", attribute_hint(name)
    if not isinstance(value.shape, Shape):
        message += f": the value is {value.shape}, which is not an array"
    elif value.shape.is_dynamic:
        message += f", since {value.shape} has a dynamic dimension"
    return refusal(f"x.{name}", value, "not_concrete", message, *hint, error_class=MissingAttributeError)


@frozen
class _Refused:
    """A special method that a value refuses."""

    spelling: str
    message: str
    hints: tuple[str, ...]
    kind: str = "not_concrete"


def _needs(what: str) -> str:
    return f"Python needs {what} now, but the value is known only when the program runs"


_REFUSED = {
    "__bool__": _Refused(
        "bool", _needs("a truth value"),
        (
            "instead of `if` and `while`, use xb.select(pred, x, y) to choose elements, xb.conditional(pred, x, "
            "on_true, y, on_false) to choose a branch, or xb.while_(init, condition, body) to loop",
            "instead of and, or, not, min and max, use &, |, ~, xb.minimum and xb.maximum; write a < x < b as "
            "(a < x) & (x < b)",
            "to test whether two names refer to the same value, use `x is y`; `in`, list.index and list.remove use ==",
        ),
    ),
    "__contains__": _Refused(
        "in", _needs("a truth value"), ("(x == item).any() computes the answer in the program",)
    ),
    "__int__": _Refused("int", _needs("an int"), (_NUMBER,)),
    "__float__": _Refused(
        "float", _needs("a number"), ("xb.exp, xb.sqrt, xb.floor and so on replace the functions of math", _NUMBER)
    ),
    "__complex__": _Refused("complex", _needs("a number"), ("xb.complex(real, imag) builds complex elements", _NUMBER)),
    "__index__": _Refused(
        "index", _needs("an int"),
        (
            "x[n] and xb.dynamic_slice accept a scalar value as a start, and xb.while_ can use one as its trip count",
            "extents are known when the program is built: use x.shape.dims",
        ),
    ),
    "__round__": _Refused(
        "round", _needs("a number"),
        ("xb.round_nearest_even rounds like Python, and xb.round_nearest_afz rounds halves away from zero",),
    ),
    "__floor__": _Refused("floor", _needs("an int"), ("use xb.floor(x) instead",)),
    "__ceil__": _Refused("ceil", _needs("an int"), ("use xb.ceil(x) instead",)),
    "__trunc__": _Refused("trunc", _needs("an int"), ("xb.convert(x, xb.s32) truncates toward zero",)),
    "__divmod__": _Refused(
        "divmod", "% is the remainder of a division that truncates, but // rounds down, so they do not form a pair",
        ("use q = x // y and x - q * y for Python's pair, or xb.divide and xb.remainder for XLA's",), "invalid_operand",
    ),
    "__setitem__": _Refused(
        "x[...] = y", "values are immutable",
        (
            "use xb.dynamic_update_slice(x, y, starts) to write y into x: for a matrix, x[0] = y becomes "
            "x = xb.dynamic_update_slice(x, y, [0, 0]), where y has one row and may be a list; xb.scatter writes at "
            "many positions, and xb.select(pred, y, x) writes where a pred is true",
        ),
        "immutable",
    ),
    "__delitem__": _Refused(
        "del x[...]", "values are immutable", ("build the remaining elements with xb.slice and xb.concatenate",),
        "immutable",
    ),
    "__delattr__": _Refused("del x.name", "values are immutable", (), "immutable"),
    "__array__": _Refused(
        "numpy.asarray", _needs("an array"),
        (
            "x is already a value; pass it to ops directly",
            "xb.evaluate(computation, ...) returns NumPy arrays",
        ),
    ),
}  # fmt: skip
_REFUSED["__rdivmod__"] = _REFUSED["__divmod__"]


def _refusing(refused: _Refused) -> Callable[..., NoReturn]:
    def method(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise refusal(refused.spelling, self, refused.kind, refused.message, *refused.hints)

    return method


class Protocols:
    """The special methods of a value for Python's statements and functions, and for NumPy's."""

    __slots__ = ()

    def __len__(self: Any) -> int:
        shape: AnyShape = self.shape
        if isinstance(shape, TupleShape):
            return len(shape)
        if not isinstance(shape, Shape) or not shape.dims:
            raise refusal("len", self, "rank_too_small", f"{shape} has no dimensions")
        if shape.dynamic and shape.dynamic[0]:
            hint = "xb.get_dimension_size(x, dimension=0) returns the extent in a run"
            raise refusal("len", self, "not_concrete", f"dimension 0 of {shape} is dynamic", hint)
        return shape.dims[0]

    def __iter__(self: Any) -> Iterator[Value]:
        elements: list[Value] = self._elements(
            "iter", "x[n] selects one element; xb.scan and xb.while_ iterate over the elements"
        )
        return iter(elements)

    def __reversed__(self: Any) -> Iterator[Value]:
        elements: list[Value] = self._elements("reversed", "xb.rev(x, dimensions) reverses the elements")
        return reversed(elements)

    def _elements(self: Any, spelling: str, hint: str) -> list[Value]:
        """The elements of a tuple, each a value."""
        if not isinstance(self.shape, TupleShape):
            message = f"the value is {self.shape}, not a tuple; its elements are not separate values"
            raise refusal(spelling, self, "not_tuple", message, hint, _FOLD)
        return [forms.get_tuple_element(self, index=n) for n in range(len(self.shape))]

    def __format__(self, spec: str) -> str:
        if spec:
            hint = "{x!s:>20} formats its name and shape as text"
            raise refusal(f"format {spec!r}", self, "not_concrete", _needs("a number"), _NUMBERS, hint)
        return str(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Record operators such as `array + value`, which NumPy passes on as calls of ufuncs; refuse other ufuncs."""
        name = ufunc.__name__
        if method == "__call__" and not keywords and name in RECORDED:
            return RECORDED[name](*map(_scalar, inputs))
        spelling = name if method == "__call__" else f"{name}.{method}"
        hint = "y = array + x returns a value; out= is not supported" if "out" in keywords else way_out(name, method)
        raise refusal(f"numpy.{spelling}", self, "not_concrete", _needs("an array"), hint)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> NoReturn:
        name = function.__name__
        raise refusal(f"numpy.{name}", self, "not_concrete", _needs("an array"), way_out(name))


def _scalar(operand: Any) -> Any:
    """A NumPy scalar for an array of rank 0, which NumPy makes of its scalars to compare them."""
    return operand[()] if isinstance(operand, np.ndarray) and not operand.ndim else operand


def _set_nothing(self: Any, name: str, value: Any) -> NoReturn:
    hint = "name= and xb.scope name an op when it is recorded; ops such as xb.reshape and xb.convert return new values"
    raise refusal(f"x.{name} = ...", self, "immutable", "values are immutable", hint)


# These methods are set at run time, since type checkers would take their definitions as support of the protocol.
setattr(Protocols, "__setattr__", _set_nothing)  # noqa: B010
for _name, _refused in _REFUSED.items():
    setattr(Protocols, _name, _refusing(_refused))
