"""Parser of typed conditions on a value, such as `v > 3` and `any(isnan(v))`, and of expressions such as `v[0:2]`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from shape_inference.escaping import Harmless

from ..traces import Summary
from . import figures
from .figures import Undecided

LONGEST = 1000
"""The greatest number of characters of a condition."""

_CALLS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs, "all": np.all, "any": np.any, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "max": np.max, "mean": np.mean, "min": np.min, "sum": np.sum,
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
_SPELLED: dict[Any, str] = {
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip


class ConditionError(Harmless):
    """Raised where a text is no condition; the message states the reason."""


def condition(text: str) -> Callable[[Any], bool | None]:
    """The function that decides whether a condition holds for some element of a value `v`; False where it does not fit.

    The function gives None for a value that is not kept in full and whose summary does not decide the condition.

    >>> import numpy as np
    >>> condition("v > 3")(np.array([1, 5])), condition("max(abs(v)) < 1")(np.array([0.5, -2.0]))
    (True, False)
    """
    found = expression(text)

    def holds(value: Any) -> bool | None:
        if value is None:
            return None
        try:
            told = found(value)
            return told.some if isinstance(told, figures.Mask) else bool(np.any(told))
        except Undecided:
            return None
        except ConditionError:
            return False

    return holds


def expression(text: str) -> Callable[[Any], Any]:
    """The function that computes an expression of a value `v`; raises ConditionError, at parsing or at the call.

    For a summary, the function computes the result from its figures; it raises Undecided where they do not suffice.

    >>> import numpy as np
    >>> expression("v[0] + 1")(np.array([[1, 2], [3, 4]]))
    array([2, 3])
    """
    if len(text) > LONGEST:
        raise ConditionError(f"a text of {len(text):,} letters is no condition: {LONGEST:,} are the most")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"{text!r} cannot be read: {getattr(error, 'msg', error)}") from None
    _check(tree.body, text)

    def found(value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic | Summary):
            raise ConditionError("the value is not kept as an array here")
        try:
            with np.errstate(all="ignore"):
                return _made(tree.body, figures.of(value) if isinstance(value, Summary) else _read_only(value))
        except Undecided:
            raise _Undecided(f"{text!r} cannot be decided: the value is not kept whole, and {value}") from None
        except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError, RecursionError) as error:
            dims = list(value.dims if isinstance(value, Summary) else value.shape)
            raise ConditionError(f"{text!r} does not fit a value of extents {dims}: {error}") from None

    return found


class _Undecided(Undecided, ConditionError):
    """The ConditionError that is raised where the figures of a summary do not decide an expression."""


def _read_only(value: Any) -> Any:
    found = value.view() if isinstance(value, np.ndarray) else value
    if isinstance(found, np.ndarray):
        found.flags.writeable = False
    return found


def _made(node: ast.expr, v: Any) -> Any:
    """The result of a node of the syntax tree, which `_check` has accepted."""
    match node:
        case ast.Name():
            return v
        case ast.Constant(value=number):
            return number
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            return (
                figures.call(name, given, _CALLS[name])
                if figures.is_one(given := _made(inner, v))
                else _CALLS[name](given)
            )
        case ast.UnaryOp(op=op, operand=inner):
            return _negated(_made(inner, v)) if isinstance(op, ast.Not) else _UNARY[type(op)](_plain(_made(inner, v)))
        case ast.BinOp(left=left, op=binary, right=right):
            return _BINARY[type(binary)](_plain(_made(left, v)), _plain(_made(right, v)))
        case ast.BoolOp(op=both, values=parts):
            return _joined(isinstance(both, ast.And), [_made(part, v) for part in parts])
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared([_made(each, v) for each in (left, *others)], [_COMPARED[type(each)] for each in ops])
        case ast.Subscript(value=inner, slice=index):
            return _kept(_made(inner, v))[_index(index, v)]
    raise TypeError(f"{type(node).__name__} is not allowed")


def _kept(value: Any) -> Any:
    """The value, if it has elements; raises Undecided for a summary."""
    if figures.is_one(value):
        raise Undecided
    return value


def _plain(value: Any) -> Any:
    """The value as a number or an array of numbers; truth values become 0 and 1."""
    value = _kept(value)
    return value.astype(np.int64) if isinstance(value, np.ndarray | np.generic) and value.dtype == bool else value


def _negated(value: Any) -> Any:
    return figures.negated(value) if figures.is_one(value) else operator.not_(value)


def _joined(is_and: bool, parts: list[Any]) -> Any:
    """`and` or `or` of parts, as in Python; a part that decides the result alone does so beside undecided parts."""
    if not any(map(figures.is_one, parts)):
        for part in parts:
            if bool(part) is not is_and:
                return part
        return parts[-1]
    told = [figures.truth(part) if figures.is_one(part) else bool(part) for part in parts]
    if (not is_and) in told:
        return not is_and
    if None in told:
        raise Undecided
    return is_and


def _compared(values: list[Any], how: list[Callable[[Any, Any], Any]]) -> Any:
    found = []
    for left, right, compare in zip(values, values[1:], how, strict=False):
        if figures.is_one(left) or figures.is_one(right):
            found.append(figures.compared(left, _SPELLED[compare], right))
        else:
            found.append(compare(left, right))
    return found[0] if len(found) == 1 else _joined(True, found)


def _index(node: ast.expr, v: Any, alone: bool = True) -> Any:
    """The index of a subscript: numbers, slices of numbers, or a mask where a condition holds."""
    if isinstance(node, ast.Tuple):
        return tuple(_index(each, v, alone=False) for each in node.elts)
    if isinstance(node, ast.Slice):
        return slice(
            *(None if each is None else _whole(_made(each, v)) for each in (node.lower, node.upper, node.step))
        )
    found = _made(node, v)
    if alone and isinstance(found, np.ndarray) and found.dtype == bool and found.shape == np.shape(v):
        return found
    return _whole(found)


def _whole(value: Any) -> int:
    if isinstance(value, np.ndarray) or figures.is_one(value):
        raise TypeError("an index is a number, a slice, or a condition on v")
    return operator.index(value)


def _check(tree: ast.expr, text: str) -> None:
    """Raise ConditionError unless a tree has only numbers, `v`, operators and calls of known functions of one value."""
    names = ", ".join(sorted(_CALLS))
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ConditionError(
                f"{text!r} cannot be read: {type(node).__name__} is not allowed; v, numbers, {names} are"
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise ConditionError(f"{text!r} cannot be read: {node.value!r} is no number")
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 1 << 64:
            raise ConditionError(f"{text!r} cannot be read: a number is larger than any value's")
        if isinstance(node, ast.Call) and (
            not isinstance(node.func, ast.Name) or node.keywords or len(node.args) != 1 or node.func.id not in _CALLS
        ):
            called = node.func.id if isinstance(node.func, ast.Name) else "what is called"
            raise ConditionError(
                f"{text!r} cannot be read: {called} is no function of one value; there are {names}, as in max(v)"
            )
    _check_places(tree, text, names)


def _check_places(tree: ast.expr, text: str, names: str) -> None:
    """Raise ConditionError unless tuples and slices are indices, functions are called, and every other name is `v`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    indices = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    inside = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Tuple) for each in node.elts}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id != "v":
            raise ConditionError(
                f"{text!r} cannot be read: {node.id!r} is not known; v is the value, and there are {names}"
            )
        if isinstance(node, ast.Tuple | ast.Slice) and id(node) not in (
            indices if isinstance(node, ast.Tuple) else indices | inside
        ):
            raise ConditionError(f"{text!r} cannot be read: a tuple stands only in brackets, as in v[0, 1:3]")


_ALLOWED = (
    ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.Subscript, ast.Tuple,
    ast.Slice, ast.Load, ast.And, ast.Or, *_UNARY, *_BINARY, *_COMPARED,
)  # fmt: skip
