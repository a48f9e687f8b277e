"""Folds of arrays by a scalar computation, run as a ufunc, as array operations, or element by element."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from shape_inference import PRIMITIVES

from ..rules.limits import check_time, timed
from ..rules.region import AppliedComputation
from .flushing import flushed
from .functions import has_zero
from .lifting import narrowed
from .products import settled

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = tuple[Array, ...]

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
SIGNING = ("maximum", "minimum")
"""The ops whose zero result has a sign that depends on the signs of all zero operands."""

_FOR_PRED = {"add": np.logical_or, "multiply": np.logical_and}


def fold(region: AppliedComputation, operands: Arrays, init_values: Arrays, axes: tuple[int, ...]) -> Arrays:
    """Each operand reduced over `axes`, starting from its init value; one computation reduces several operands."""
    if region.reordering:
        return (_by_ufunc(region.reordering, operands[0], init_values[0], axes),)
    columns = tuple(_columns(operand, axes) for operand in operands)
    if region.lifted:
        if region.sequential:
            return _one_after_the_other(region.lifted, columns, init_values)
        if region.flushed:  # the init value is first paired with the same element as in NumPy's sums
            begun = tuple(map(_begun, init_values, columns))
            return tuple(column[0] for column in _halved(region.lifted, begun))
        return _one_after_the_other(region.lifted, _halved(region.lifted, columns), init_values)
    return _each_alone(region.scalar, columns, init_values)


def combine(region: AppliedComputation, values: Sequence[Array]) -> Array:
    """The elementwise fold, from left to right, of the equally shaped operands of a group of devices.

    Denormal numbers of a single operand are flushed as well, since XLA combines the operand with the identity.
    """
    first = values[0]
    if len(values) == 1:
        return np.asarray(flushed(first) if region.flushed else settled(first))
    if region.reordering and np.ndim(first):
        return _combined_by_ufunc(region.reordering, values)
    if region.lifted:
        return np.asarray(like(first, _fold_left(region.lifted, values)))
    stacked = np.stack([np.asarray(value) for value in values]).reshape(len(values), -1)
    folded = [_fold_left(region.scalar, column) for column in stacked.T]
    return np.array(folded, first.dtype).reshape(np.shape(first))


def with_signs(opcode: str, result: Array, any_of: Callable[[Callable[[Array], Array]], Array]) -> Array:
    """The result with the sign of zeros that XLA gives: +0 for a maximum over a +0, -0 for a minimum over a -0.

    The sign of NumPy's result depends on operand order. `any_of` maps a predicate to a mask of the results for which
    the predicate holds for any folded element.
    """
    if opcode not in SIGNING or result.dtype.kind != "f" or not has_zero(result):
        return result
    is_negative = opcode == "minimum"
    wrong = (result == 0) & (np.signbit(result) != is_negative)
    if not wrong.any():
        return result
    is_met = any_of(lambda each: (each == 0) & (np.signbit(each) == is_negative))
    return np.where(wrong & is_met, result.dtype.type(-0.0 if is_negative else 0.0), result)


def _combined_by_ufunc(opcode: str, values: Sequence[Array]) -> Array:
    ufunc, wide = ufunc_of(opcode, values[0].dtype), accumulator(opcode, values[0].dtype)
    total = values[0].astype(wide)
    for value in values[1:]:
        ufunc(total, value.astype(wide, copy=False), out=total)
    total = with_signs(opcode, total, lambda zero: np.logical_or.reduce([zero(each.astype(wide)) for each in values]))
    return narrowed(total, values[0].dtype)


def _fold_left(function: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    iterator = iter(values)
    total = next(iterator)
    for value in iterator:
        total = function(total, value)
    return total


def like(first: Any, value: Any) -> Any:
    """The value broadcast to the shape of `first`; a computation with a constant result returns a scalar."""
    return np.broadcast_to(value, np.shape(first)) if np.shape(value) != np.shape(first) else value


def ufunc_of(opcode: str, dtype: np.dtype[Any]) -> np.ufunc:
    return _FOR_PRED.get(opcode, _UFUNCS[opcode]) if dtype == np.bool_ else _UFUNCS[opcode]


def accumulator(opcode: str, dtype: np.dtype[Any]) -> Any:
    """The accumulator type: f32 for smaller floats, i64 for integers of less than 8 bits, else the type itself."""
    if dtype.isbuiltin == 1:
        return np.float32 if dtype.char == "e" else dtype
    return np.int64 if dtype in _SMALL_INTEGERS else np.float32


_SMALL_INTEGERS = frozenset(each.dtype for each in PRIMITIVES.values() if each.is_integer and each.bits < 8)


def _by_ufunc(opcode: str, operand: Array, init: Array, axes: tuple[int, ...]) -> Array:
    ufunc, wide = ufunc_of(opcode, operand.dtype), accumulator(opcode, operand.dtype)
    initial, column = np.asarray(init).astype(wide)[()], operand.astype(wide, copy=False)
    result = ufunc.reduce(column, axis=axes, dtype=wide, initial=initial) if axes else ufunc(column, initial)
    result = with_signs(opcode, np.asarray(result), lambda zero: zero(column).any(axes) | zero(initial))
    return narrowed(result, operand.dtype)


@cache
def reducer(opcode: str, dtype: np.dtype[Any], axes: tuple[int, ...]) -> Callable[[Array, Any], Any] | None:
    """What `fold` does with one array of a type that is its own accumulator; None for other types."""
    if accumulator(opcode, dtype) != dtype:
        return None
    reduce_all: Callable[..., Any] = ufunc_of(opcode, dtype).reduce
    if opcode not in SIGNING or dtype.kind != "f":
        return lambda operand, init: reduce_all(operand, axes, dtype, None, False, init)

    def reduce(operand: Array, init: Any) -> Any:
        result = reduce_all(operand, axes, dtype, None, False, init)
        return (
            with_signs(opcode, result, lambda zero: zero(operand).any(axes) | zero(init))
            if has_zero(result)
            else result
        )

    return reduce


def _columns(operand: Array, axes: tuple[int, ...]) -> Array:
    """The operand with the reduced axes merged into one leading axis."""
    kept = [axis for axis in range(operand.ndim) if axis not in axes]
    moved = operand.transpose([*axes, *kept])
    return moved.reshape(-1 if operand.size else _count(operand, axes), *(operand.shape[axis] for axis in kept))


def _count(operand: Array, axes: tuple[int, ...]) -> int:
    return int(np.prod([operand.shape[axis] for axis in axes], dtype=np.int64))


def _begun(init: Any, column: Array) -> Array:
    """The column with the init value prepended."""
    first = np.broadcast_to(np.asarray(init, column.dtype), (1, *column.shape[1:]))
    return np.concatenate([first, column])


def _halved(function: Any, columns: Arrays) -> Arrays:
    """Adjacent rows are combined until one is left, which keeps the order and takes log2(rows) steps."""
    while len(columns[0]) > 1:
        check_time()
        pairs = len(columns[0]) // 2 * 2
        joined = _apply(function, [c[0:pairs:2] for c in columns], [c[1:pairs:2] for c in columns])
        rest = [c[pairs:] for c in columns]
        columns = tuple(np.concatenate(both) if len(both[1]) else both[0] for both in zip(joined, rest, strict=True))
    return columns


def _one_after_the_other(function: Any, columns: Arrays, init_values: Arrays) -> Arrays:
    shape = columns[0].shape[1:]
    totals: Arrays = tuple(np.broadcast_to(np.asarray(init), shape) for init in init_values)
    for row in range(len(columns[0])):
        check_time()
        totals = _apply(function, totals, [c[row] for c in columns])
    return totals


def _apply(function: Any, left: Sequence[Array], right: Sequence[Array]) -> Arrays:
    """The results of the lifted computation, one array per operand with the operand's shape."""
    result = function(*left, *right)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(like(left[0], each)) for each in results)


def _each_alone(function: Any, columns: Arrays, init_values: Arrays) -> Arrays:
    shape = columns[0].shape[1:]
    results = [np.empty(shape, column.dtype) for column in columns]
    for index in itertools.product(*map(range, shape)):
        totals = tuple(np.asarray(init)[()] for init in init_values)
        for row in timed(range(len(columns[0]))):
            found = function(*totals, *(c[(row, *index)] for c in columns))
            totals = found if isinstance(found, tuple) else (found,)
        for result, total in zip(results, totals, strict=True):
            result[index] = total
    return tuple(results)
