"""NumPy's names: the op that a function records, the function of `xbuild` that a refusal names, other meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .diagnostics import warn
from .hooks import forms

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
    "ndim": "x.ndim", "size": "x.size", "array_equal": "(x == y).all()", "copy": "x itself, which never changes",
    "zeros_like": "xb.broadcast(xb.constant(builder, 0.0), x.shape.dims)",
    "ones_like": "xb.broadcast(xb.constant(builder, 1.0), x.shape.dims)",
}  # fmt: skip


# The replacements of attributes of arrays that a value does not have.
_ATTRIBUTES = {
    "at": "xb.dynamic_update_slice(x, y, starts) gives x with y in it: x.at[0].set(y) is "
    "xb.dynamic_update_slice(x, y, [0, 0]) with a y of rank 2; xb.scatter updates many places",
    **dict.fromkeys(
        ("item", "tolist", "numpy", "tobytes", "data", "block_until_ready", "device_get"),
        "the value has no number until the program runs: xb.evaluate(builder.build(x), ...) gives it",
    ),
    "clip": "xb.clamp(low, x, high) is that of a value", "round": "xb.round_nearest_even(x) is that of a value",
    "dot": "x @ y is that of values", "matmul": "x @ y is that of values", "copy": "x itself never changes",
    "sort": "xb.sort(x) is that of a value", "argsort": "xb.sort((x, places))[1] is that of a value",
    "cumsum": "xb.scan(x, 0.0, lambda each, total: (each + total, each + total))[0] is that of a vector",
    "take": "x[indices] is that of a value", "repeat": "xb.broadcast(x, sizes) repeats a value",
    "fill": "a value never changes; xb.broadcast(xb.constant(builder, 1.0), sizes) gives a filled one",
    "conj": "xb.conj(x) is that of a value", "conjugate": "xb.conj(x) is that of a value",
    "real": "xb.real(x) is that of a value", "imag": "xb.imag(x) is that of a value",
    "view": "xb.bitcast_convert(x, dtype) is that of a value", "nbytes": "x.shape.bytes is that of a value",
    "itemsize": "x.dtype.bits is that of a value", "dims": "x.shape.dims is that of a value",
    "split": "x[:n] and x[n:] are parts of a value", "build": "builder.build(x) is the computation with the result x",
}  # fmt: skip


def attribute_hint(name: str) -> list[str]:
    """The hint for an attribute that a value does not have; none where nothing of `xb` is near."""
    if name in _ATTRIBUTES:
        return [_ATTRIBUTES[name]]
    form = vars(forms.namespace).get(name)
    return [f"xb.{name}(x, ...) records it"] if callable(form) else []


def way_out(name: str, method: str = "__call__") -> str:
    """The replacement in `xbuild` of a NumPy function, or of a method of a ufunc such as `numpy.add.reduce`."""
    if method != "__call__":
        return {
            "reduce": "xb.reduce folds the elements", "accumulate": "xb.reduce_window gives running folds",
        }.get(method, "xb.scatter combines updates at many places")  # fmt: skip
    if name in _WAYS_OUT:
        return f"{_WAYS_OUT[name]} is that of a value"
    form = vars(forms.namespace).get(name)
    if callable(form) and form.__module__.startswith("xbuild."):
        return f"xb.{name} records it"
    return "xb has no op of that name; xb.evaluate(computation, ...) gives arrays of NumPy"


def _recording(name: str) -> Callable[..., Any]:
    return lambda *operands: getattr(forms, name)(*operands)


def _by_operator(name: str) -> Callable[..., Any]:
    """The operator of a value, or the one with exchanged operands where the first operand is no value."""

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
            "`/` of integers is XLA's divide, which cuts towards zero: 7 / 2 is 3. x.astype(xb.f32) / y is the "
            "quotient of NumPy, x // y is rounded down, and xb.divide(x, y) is XLA's, without this warning"
        )


def warn_of_remainder(value: Any) -> None:
    if _kind(value) in ("signed", "float"):
        warn(
            "`%` is XLA's remainder, which has the sign of the dividend: -7 % 2 is -1. x - (x // y) * y is that of "
            "NumPy and Python, and xb.remainder(x, y) is XLA's, without this warning"
        )


def warn_of_ranks(lhs: Any, rhs: Any) -> None:
    if max(map(_rank, (lhs, rhs))) > 2:
        warn(
            "`@` is XlaBuilder's Dot, which contracts dimension 1 of lhs with dimension 0 of rhs at any rank. "
            "xb.dot_general(x, y, [-1], [-2], [0], [0]) is the product of NumPy for one batch dimension, and "
            "xb.dot(x, y) is XlaBuilder's, without this warning"
        )


def _rank(operand: Any) -> int:
    shape = getattr(operand, "shape", ())
    return len(getattr(shape, "dims", shape))
