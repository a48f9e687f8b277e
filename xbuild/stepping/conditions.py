"""Conditions on a value, such as `v > 3` and `any(isnan(v))`: how they are parsed, and decided from a summary.

Sections:

    Decision from the summary of a value
    Parser
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference.escaping import Harmless

from ..traces import Summary

# ----------------------------------------------------------------------------
# Decision from the summary of a value
#
# Whether some element or every element meets a condition, if the summary tells.


class Undecided(Exception):
    """Raised if a summary does not decide a condition."""


@frozen
class Mask:
    """Whether a condition holds for some element, and for every element; None if that is unknown."""

    some: bool | None
    every: bool | None


@frozen
class ArraySummary:
    """What a summary knows of an array: the range of its finite elements, if any, and the counts of other elements.

    `low` and `high` are elements of the array; `is_real` is False for a complex array.
    """

    low: float | None
    high: float | None
    mean: float | None
    nans: int
    infs: int
    size: int
    is_real: bool = True
    is_low_known: bool = True


def array_summary(summary: Summary) -> ArraySummary:
    is_real = not summary.type.startswith("c")
    size = prod(summary.dims)
    return ArraySummary(summary.low, summary.high, summary.mean, summary.nans, summary.infs, size, is_real)


def is_summary(value: Any) -> bool:
    """Whether only a summary of a value is known."""
    return isinstance(value, ArraySummary | Mask)


def call_on_summary(name: str, operand: ArraySummary | Mask) -> Any:
    """The result of a function on a summarized value; raises Undecided if the summary does not tell."""
    if isinstance(operand, Mask):
        if name not in ("any", "all", "max", "min"):
            raise Undecided
        return _require_known(operand.some if name in ("any", "max") else operand.every)
    if name in _MASKS:
        return _MASKS[name](operand)
    if name == "abs":
        return _magnitudes(operand)
    if name in ("max", "min", "mean"):
        return _statistic(name, operand)
    raise Undecided


_MASKS: dict[str, Callable[[ArraySummary], Mask]] = {
    "isnan": lambda told: Mask(told.nans > 0, told.nans == told.size),
    "isinf": lambda told: Mask(told.infs > 0, told.infs == told.size),
    "isfinite": lambda told: Mask(told.nans + told.infs < told.size, not told.nans + told.infs),
}


def _require_known(value: bool | None) -> bool:
    if value is None:
        raise Undecided
    return value


def _statistic(name: str, told: ArraySummary) -> Any:
    """The largest element, the smallest or the mean; NaN if an element is; raises Undecided if one is infinite."""
    if told.nans:
        return np.nan
    found = {"max": told.high, "min": told.low if told.is_low_known else None, "mean": told.mean}[name]
    if told.infs or found is None or not told.is_real:
        raise Undecided
    return found


def _magnitudes(told: ArraySummary) -> ArraySummary:
    if told.low is None or told.high is None or not told.is_real:
        return evolve(told, is_real=True)
    ends = sorted((abs(told.low), abs(told.high)))
    is_one_sided = told.low >= 0 or told.high <= 0
    mean = abs(told.mean) if is_one_sided and told.mean is not None else None
    return evolve(told, low=ends[0], high=ends[1], mean=mean, is_low_known=told.is_low_known and is_one_sided)


def truth_of_mask(value: Any) -> bool | None:
    """The truth of a mask in a Boolean expression: whether it holds for some element."""
    if not isinstance(value, Mask):
        raise Undecided
    return value.some


def negate_mask(value: Any) -> bool:
    """`not` of a mask: whether the mask holds for no element."""
    return not _require_known(truth_of_mask(value))


_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def compare_summary(left: Any, how: str, right: Any) -> Mask:
    """The mask of the comparison of a summarized value with a number."""
    if isinstance(right, ArraySummary) and not is_summary(left):
        left, how, right = right, _SWAPPED[how], left
    if not isinstance(left, ArraySummary) or is_summary(right) or np.ndim(right) or not left.is_real or right != right:
        raise Undecided
    if how in ("==", "!="):
        equal = _equal(left, float(right))
        return equal if how == "==" else Mask(_opposite(equal.every), _opposite(equal.some))
    return _ordered(left, how, float(right))


def _opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def _equal(told: ArraySummary, number: float) -> Mask:
    """The mask of `== number`, from the ends of the range, which are elements; the other elements are unknown."""
    ends = [each for each in (told.low if told.is_low_known else None, told.high) if each is not None]
    if np.isinf(number):
        return Mask(None if told.infs else False, False if told.infs < told.size else None)
    outside = (
        told.high is None or number > told.high or (told.low is not None and told.is_low_known and number < told.low)
    )
    some = True if number in ends else False if outside else None
    is_all = told.low == told.high == number and told.is_low_known and not told.nans + told.infs
    others = told.nans + told.infs or any(each != number for each in ends)
    return Mask(some, True if is_all else False if others else None)


def _ordered(told: ArraySummary, how: str, number: float) -> Mask:
    holds: Callable[[float], bool] = {
        "<": lambda x: x < number, "<=": lambda x: x <= number, ">": lambda x: x > number, ">=": lambda x: x >= number,
    }[how]  # fmt: skip
    upward = how[0] == ">"
    best, worst = (told.high, told.low) if upward else (told.low, told.high)
    known = {"best": upward or told.is_low_known, "worst": not upward or told.is_low_known}
    some: bool | None = best is not None and holds(best)
    if not some and (told.infs or not known["best"]):
        some = None
    every: bool | None = worst is None or holds(worst)
    if told.nans or (not every and known["worst"]):
        every = False
    elif told.infs or not known["worst"]:
        every = None
    return Mask(some, every)


# ----------------------------------------------------------------------------
# Parser
#
# Conditions such as `v > 3` and `any(isnan(v))`, and expressions such as `v[0:2]`.

LONGEST = 1000
"""The maximum number of characters of a condition."""

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
    """Raised if a text is not a condition; the message states the reason."""


def condition(text: str) -> Callable[[Any], bool | None]:
    """The function that tells whether a condition holds for some element of a value `v`; False if it does not apply.

    The function returns None for a value that is only summarized, if the summary does not decide the condition.

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
            return told.some if isinstance(told, Mask) else bool(np.any(told))
        except Undecided:
            return None
        except ConditionError:
            return False

    return holds


def expression(text: str) -> Callable[[Any], Any]:
    """The function that computes an expression of a value `v`; raises ConditionError, when parsed or called.

    For a summary, the function computes the result from it; it raises Undecided if the summary does not tell.

    >>> import numpy as np
    >>> expression("v[0] + 1")(np.array([[1, 2], [3, 4]]))
    array([2, 3])
    """
    if len(text) > LONGEST:
        raise ConditionError(f"the condition has {len(text):,} characters; the limit is {LONGEST:,}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"{text!r} cannot be read: {getattr(error, 'msg', error)}") from None
    _check(tree.body, text)

    def found(value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic | Summary):
            raise ConditionError("the value was not recorded as an array")
        try:
            with np.errstate(all="ignore"):
                return _evaluate(tree.body, array_summary(value) if isinstance(value, Summary) else _read_only(value))
        except Undecided:
            raise _Undecided(f"{text!r} is undecided: the trace holds only a summary of the value, {value}") from None
        except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError, RecursionError) as error:
            dims = list(value.dims if isinstance(value, Summary) else value.shape)
            raise ConditionError(f"{text!r} does not apply to a value with dimensions {dims}: {error}") from None

    return found


class _Undecided(Undecided, ConditionError):
    """The ConditionError that is raised if a summary does not decide an expression."""


def _read_only(value: Any) -> Any:
    found = value.view() if isinstance(value, np.ndarray) else value
    if isinstance(found, np.ndarray):
        found.flags.writeable = False
    return found


def _evaluate(node: ast.expr, v: Any) -> Any:
    """The result of a node of the syntax tree, which `_check` has accepted."""
    match node:
        case ast.Name():
            return v
        case ast.Constant(value=number):
            return number
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            operand = _evaluate(inner, v)
            return call_on_summary(name, operand) if is_summary(operand) else _CALLS[name](operand)
        case ast.UnaryOp(op=op, operand=inner):
            return (
                _negate(_evaluate(inner, v))
                if isinstance(op, ast.Not)
                else _UNARY[type(op)](_as_number(_evaluate(inner, v)))
            )
        case ast.BinOp(left=left, op=binary, right=right):
            return _BINARY[type(binary)](_as_number(_evaluate(left, v)), _as_number(_evaluate(right, v)))
        case ast.BoolOp(op=both, values=parts):
            return _combine(isinstance(both, ast.And), [_evaluate(part, v) for part in parts])
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compare_all(
                [_evaluate(each, v) for each in (left, *others)], [_COMPARED[type(each)] for each in ops]
            )
        case ast.Subscript(value=inner, slice=index):
            return _require_elements(_evaluate(inner, v))[_index(index, v)]
    raise TypeError(f"{type(node).__name__} is not allowed")


def _require_elements(value: Any) -> Any:
    """The value, if it has elements; raises Undecided for a summary."""
    if is_summary(value):
        raise Undecided
    return value


def _as_number(value: Any) -> Any:
    """The value as a number or an array of numbers; truth values become 0 and 1."""
    value = _require_elements(value)
    return value.astype(np.int64) if isinstance(value, np.ndarray | np.generic) and value.dtype == bool else value


def _negate(value: Any) -> Any:
    return negate_mask(value) if is_summary(value) else operator.not_(value)


def _combine(is_and: bool, parts: list[Any]) -> Any:
    """`and` or `or` of parts, as in Python; one part can decide the result although others are undecided."""
    if not any(map(is_summary, parts)):
        for part in parts:
            if bool(part) is not is_and:
                return part
        return parts[-1]
    truths = [truth_of_mask(part) if is_summary(part) else bool(part) for part in parts]
    if (not is_and) in truths:
        return not is_and
    if None in truths:
        raise Undecided
    return is_and


def _compare_all(values: list[Any], how: list[Callable[[Any, Any], Any]]) -> Any:
    found = []
    for left, right, compare in zip(values, values[1:], how, strict=False):
        if is_summary(left) or is_summary(right):
            found.append(compare_summary(left, _SPELLED[compare], right))
        else:
            found.append(compare(left, right))
    return found[0] if len(found) == 1 else _combine(True, found)


def _index(node: ast.expr, v: Any, is_only: bool = True) -> Any:
    """The index of a subscript: numbers, slices of numbers, or a mask where a condition holds."""
    if isinstance(node, ast.Tuple):
        return tuple(_index(each, v, is_only=False) for each in node.elts)
    if isinstance(node, ast.Slice):
        return slice(
            *(None if each is None else _to_integer(_evaluate(each, v)) for each in (node.lower, node.upper, node.step))
        )
    found = _evaluate(node, v)
    if is_only and isinstance(found, np.ndarray) and found.dtype == bool and found.shape == np.shape(v):
        return found
    return _to_integer(found)


def _to_integer(value: Any) -> int:
    if isinstance(value, np.ndarray) or is_summary(value):
        raise TypeError("an index must be a number, a slice, or a condition on v")
    return operator.index(value)


def _check(tree: ast.expr, text: str) -> None:
    """Raise ConditionError unless a tree has only numbers, `v`, operators and calls of known functions of one value."""
    names = ", ".join(sorted(_CALLS))
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ConditionError(
                f"{text!r} cannot be read: {type(node).__name__} is not allowed; use v, numbers, {names}"
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise ConditionError(f"{text!r} cannot be read: {node.value!r} is not a number")
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 1 << 64:
            raise ConditionError(f"{text!r} cannot be read: a number is larger than any value can be")
        if isinstance(node, ast.Call) and (
            not isinstance(node.func, ast.Name) or node.keywords or len(node.args) != 1 or node.func.id not in _CALLS
        ):
            called = node.func.id if isinstance(node.func, ast.Name) else "the call"
            raise ConditionError(
                f"{text!r} cannot be read: {called} is not a known function of one value; use {names}, as in max(v)"
            )
    _check_places(tree, text, names)


def _check_places(tree: ast.expr, text: str, names: str) -> None:
    """Raise ConditionError unless tuples and slices are indices, functions are called, and every other name is `v`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    indices = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    inside = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Tuple) for each in node.elts}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id != "v":
            raise ConditionError(f"{text!r} cannot be read: unknown name {node.id!r}; use v for the value, and {names}")
        if isinstance(node, ast.Tuple | ast.Slice) and id(node) not in (
            indices if isinstance(node, ast.Tuple) else indices | inside
        ):
            raise ConditionError(f"{text!r} cannot be read: a tuple is allowed only in brackets, as in v[0, 1:3]")


_ALLOWED = (
    ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.Subscript, ast.Tuple,
    ast.Slice, ast.Load, ast.And, ast.Or, *_UNARY, *_BINARY, *_COMPARED,
)  # fmt: skip
