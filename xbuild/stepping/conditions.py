"""Conditions on a value, as they are typed: `v > 3`, `any(isnan(v))`; and what to show of one: `v[0:2]`, `max(v)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference.escaping import Harmless

_CALLS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "all": np.all, "any": np.any, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "max": np.max, "mean": np.mean, "min": np.min, "sum": np.sum,
}  # fmt: skip
_ALLOWED = (
    ast.Expression, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.Subscript,
    ast.Tuple, ast.Slice, ast.Load, ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.Mod, ast.FloorDiv, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


class ConditionError(Harmless):
    """A text is no condition; the message says why."""


def condition(text: str) -> Callable[[Any], bool]:
    """Whether a condition holds of a value `v`, for any element of it; never of a value that it does not fit.

    >>> import numpy as np
    >>> condition("v > 3")(np.array([1, 5])), condition("max(abs(v)) < 1")(np.array([0.5, -2.0]))
    (True, False)
    """
    found = expression(text)

    def holds(value: Any) -> bool:
        try:
            return bool(np.any(found(value)))
        except ConditionError:
            return False

    return holds


def expression(text: str) -> Callable[[Any], Any]:
    """What a text makes of a value `v`; ConditionError, then or when it is called, where it makes nothing of it.

    >>> import numpy as np
    >>> expression("v[0] + 1")(np.array([[1, 2], [3, 4]]))
    array([2, 3])
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"{text!r} cannot be read: {getattr(error, 'msg', error)}") from None
    _check(tree, text)
    code = compile(tree, "<condition>", "eval")

    def found(value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            raise ConditionError("the value is not kept as an array here")
        try:
            with np.errstate(all="ignore"):
                return eval(code, {"__builtins__": {}, **_CALLS, "v": value})
        except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
            raise ConditionError(f"{text!r} does not fit a value of extents {list(value.shape)}: {error}") from None

    return found


def _check(tree: ast.AST, text: str) -> None:
    """Only numbers, `v`, operators and the functions of the table."""
    names = ", ".join(sorted(_CALLS))
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ConditionError(
                f"{text!r} cannot be read: {type(node).__name__} is not allowed; v, numbers, {names} are"
            )
        if isinstance(node, ast.Name) and node.id != "v" and node.id not in _CALLS:
            raise ConditionError(
                f"{text!r} cannot be read: {node.id!r} is not known; v is the value, and there are {names}"
            )
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
            raise ConditionError(f"{text!r} cannot be read: {node.value!r} is no number")
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
            raise ConditionError(f"{text!r} cannot be read: functions are called by name, as in max(v)")
