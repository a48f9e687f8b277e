"""NumPy's functions by name: which op each records, or which function of `xbuild` a refusal names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .hooks import forms

# The functions that `array + value` and so on call, by the op that the operator of a value records.
_OPERATORS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "floor_divide": "floor_divide",
    "remainder": "remainder", "power": "power", "matmul": "dot", "bitwise_and": "and_", "bitwise_or": "or_",
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
    "sum": "xb.reduce(x, 0, xb.add)", "prod": "xb.reduce(x, 1, xb.mul)", "any": "xb.reduce(x, False, xb.or_)",
    "all": "xb.reduce(x, True, xb.and_)", "max": "xb.reduce(x, lowest, xb.max)", "amax": "xb.reduce(x, lowest, xb.max)",
    "min": "xb.reduce(x, highest, xb.min)", "amin": "xb.reduce(x, highest, xb.min)",
    "mean": "xb.reduce(x, 0, xb.add) / count", "where": "xb.select(pred, on_true, on_false)",
    "clip": "xb.clamp(min, x, max)", "einsum": "xb.dot_general(x, y, ...)", "tensordot": "xb.dot_general(x, y, ...)",
    "vdot": "xb.dot(x, y)", "inner": "xb.dot(x, y)", "flip": "xb.rev(x, dimensions)", "argsort": "xb.sort(x)",
    "take": "xb.gather(x, indices, ...)", "broadcast_to": "xb.broadcast_in_dim(x, sizes, dimensions)",
    "ravel": "xb.reshape(x, sizes)", "squeeze": "xb.reshape(x, sizes)", "expand_dims": "xb.reshape(x, sizes)",
    "stack": "xb.concatenate(values, dimension)", "vstack": "xb.concatenate(values, dimension)",
    "hstack": "xb.concatenate(values, dimension)", "shape": "x.shape.dims", "ndim": "x.shape.rank", "size": "x.shape",
    "array_equal": "xb.reduce(x == y, True, xb.and_)", "copy": "x itself, which never changes",
    "zeros_like": "xb.broadcast(xb.constant(builder, 0.0), x.shape.dims)",
    "ones_like": "xb.broadcast(xb.constant(builder, 1.0), x.shape.dims)",
}  # fmt: skip


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


def _shift_right(lhs: Any, rhs: Any) -> Any:
    from .builder import Value

    return lhs.__rshift__(rhs) if isinstance(lhs, Value) else rhs.__rrshift__(lhs)


RECORDED: dict[str, Callable[..., Any]] = {name: _recording(op) for name, op in _OPERATORS.items()}
RECORDED["right_shift"] = _shift_right
