"""Comfortable forms of slice, dynamic_slice and dynamic_update_slice, and Python's indexing of values."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shape_inference import Shape, TupleShape, refuse
from shape_inference.dims import array, dimension
from shape_inference.ops.slicing import check_index, check_span

from .. import ops
from ..core.builder import Value, stands_for
from .support.arguments import as_list, as_values, known, shape_of
from .support.axes import counted, rank_of
from .support.dressing import dressed
from .support.taking import check_places, indexed

__all__ = ["dynamic_slice", "dynamic_update_slice", "index", "slice", "slice_in_dim"]


@dressed
def slice(
    operand: Value,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value:
    """The elements from start to limit (exclusive) of each dimension, each stride-th of them.

    Raises: as xb.ops.slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> xb.slice(x, (2, 0), (5, 8), (1, 3)).shape
    f32[3,3]

    Source: Operation Semantics, Slice.
    """
    return ops.slice(
        operand,
        start_indices=start_indices,
        limit_indices=limit_indices,
        strides=() if strides is None else strides,
        name=name,
    )


@dressed
def slice_in_dim(
    operand: Value, start_index: int, limit_index: int, stride: int = 1, dimno: int = 0, *, name: str | None = None
) -> Value:
    """A slice of one dimension, the others whole.

    Raises: as xb.ops.slice; dimension_out_of_range.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> xb.slice_in_dim(x, 1, 7, stride=2, dimno=1).shape
    f32[10,3]

    Source: xla_builder.h, SliceInDim.
    """
    shape = array("operand", shape_of(operand))
    at = dimension(f"dimno={dimno}", counted(dimno, shape.rank), "operand", shape)
    start, limit, strides = [0] * shape.rank, list(shape.dims), [1] * shape.rank
    start[at], limit[at], strides[at] = start_index, limit_index, stride
    return ops.slice(operand, start_indices=start, limit_indices=limit, strides=strides, name=name)


@dressed
def dynamic_slice(operand: Value, start_indices: Any, slice_sizes: Sequence[int], *, name: str | None = None) -> Value:
    """The window of these sizes at `start_indices`: a list of scalar values and ints, or one vector; moved inside.

    Ints take the type of the values beside them, or s32.
    Raises: as xb.ops.dynamic_slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> i = xb.parameter(builder, number=1, shape=xb.s32[()])
    >>> xb.dynamic_slice(x, (i, 0), (3, 8)).shape
    f32[3,8]

    Source: Operation Semantics, DynamicSlice.
    """
    return ops.dynamic_slice(
        known(operand), _starts(operand, start_indices), dynamic_slice_sizes=slice_sizes, name=name
    )


@dressed
def dynamic_update_slice(operand: Value, update: Any, start_indices: Any, *, name: str | None = None) -> Value:
    """The operand with `update`, a value or a NumPy array, in place of its elements from `start_indices` on.

    The start indices are those of `dynamic_slice`.
    Raises: as xb.ops.dynamic_update_slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.dynamic_update_slice(x, xb.slice(x, (0,), (2,)), [3]).shape
    f32[10]

    Source: Operation Semantics, DynamicUpdateSlice.
    """
    _, new = as_values((known(operand), update))
    return ops.dynamic_update_slice(operand, new, _starts(operand, start_indices), name=name)


def _starts(operand: Value, start_indices: Any) -> list[Value]:
    """The starts as values of one type: ints take the type of the first value among them, or s32."""
    return as_values(as_list(start_indices), builder=known(operand).builder)


@dressed
def index(value: Value, index: Any, *, name: str | None = None) -> Value:
    """`value[index]`: an element of a tuple, or NumPy's basic indexing of an array.

    For each dimension an int (the dimension goes; negative counts from the end), a slice of ints with a positive step,
    or a scalar integer value (the dimension goes; moved inside as dynamic_slice does); `...` stands for all that are
    left, None for a new dimension of extent 1. For one dimension a list, array or value of integers: its elements are
    taken at these places (negative ones count from the end; of a value they are moved inside). Records the slice,
    dynamic_slice, gather and reshape that it takes, or get_tuple_element.
    Raises: index_out_of_range; non_positive for a step; rank_mismatch for too many; invalid_attribute for all else.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> x[-1].shape, x[2:5, ::3].shape, x[..., 0].shape, x[None, [0, -1]].shape
    (f32[8], f32[3,3], f32[10], f32[1,2,8])

    Source: NumPy, Basic indexing; Operation Semantics, Slice, DynamicSlice, Reshape, GetTupleElement.
    """
    shape = shape_of(value)
    if isinstance(shape, TupleShape):
        return _element(value, shape, index, name)
    found = array("value", shape)
    parts = _whole(found, index)
    if any(_is_list(part) for part in parts) or any(part is None for part in parts):
        return indexed(value, found, parts, _basic, name)
    return _basic(value, found, parts, name)


def _basic(value: Value, shape: Shape, parts: list[Any], name: str | None) -> Value:
    """The part of an array for an int, a slice or a scalar value for each dimension."""
    *steps, last = _steps(shape, parts) or [partial(ops.reshape, new_sizes=shape.dims)]
    for step in steps:
        value = step(value)
    return last(value, name=name)


def _element(value: Value, shape: TupleShape, index: Any, name: str | None) -> Value:
    if not _is_int(index):
        refuse("invalid_attribute", f"index {index!r} of {shape}; an int chooses an element of a tuple")
    count = len(shape)
    if not -count <= index < count:
        legal = f"legal are {-count}..{count - 1}" if count else "it has no element"
        refuse("index_out_of_range", f"index {index} of {shape}, which has {count} elements; {legal}")
    return ops.get_tuple_element(value, index=int(index) % count, name=name)


def _is_int(index: Any) -> bool:
    return isinstance(index, int | np.integer) and not isinstance(index, bool)


def _is_list(part: Any) -> bool:
    """Whether a part of an index is a list of integers: a Python list, an array, or a value that is no scalar."""
    return isinstance(part, list | np.ndarray) or (isinstance(part, Value) and rank_of(part) != 0)


def _whole(shape: Shape, index: Any) -> list[Any]:
    """The index with one part for each dimension, and None for each new one."""
    parts = [stands_for(part) for part in (index if isinstance(index, tuple) else (index,))]
    places = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        refuse(
            "invalid_attribute", f"index {index!r} has {len(places)} ellipses; one can stand for all that is left out"
        )
    count = sum(part is not None and part is not Ellipsis for part in parts)
    if count > shape.rank:
        refuse("rank_mismatch", f"{count} indices for {shape} of rank {shape.rank}")
    place = places[0] if places else len(parts)
    parts[place : place + 1] = [builtins.slice(None)] * (shape.rank - count)
    for dim, part in enumerate(each for each in parts if each is not None):
        if _is_list(part):
            check_places(part, dim, shape)
        elif not (_is_int(part) or isinstance(part, builtins.slice | Value)):
            refuse(
                "invalid_attribute",
                f"index {part!r} for dimension {dim} of {shape}; an int, a slice, `...`, None, a scalar value or a "
                "list of integers is wanted",
            )
    return parts


def _steps(shape: Shape, parts: list[Any]) -> list[Callable[..., Value]]:
    """The steps to record: a slice for static indices, a dynamic_slice for values, a reshape for dropped dimensions."""
    steps: list[Callable[..., Value]] = []
    spans = [_span(shape, dim, part) for dim, part in enumerate(parts)]
    if spans != [(0, size, 1) for size in shape.dims]:
        start, limit, strides = zip(*spans, strict=True)
        steps.append(partial(ops.slice, start_indices=start, limit_indices=limit, strides=strides))
    sizes = [1 if isinstance(part, Value) else -((a - b) // s) for part, (a, b, s) in zip(parts, spans, strict=True)]
    if any(isinstance(part, Value) for part in parts):
        starts = [part if isinstance(part, Value) else 0 for part in parts]
        steps.append(partial(dynamic_slice, start_indices=starts, slice_sizes=sizes))
    if not all(isinstance(part, builtins.slice) for part in parts):
        kept = [size for part, size in zip(parts, sizes, strict=True) if isinstance(part, builtins.slice)]
        steps.append(partial(ops.reshape, new_sizes=kept))
    return steps


def _span(shape: Shape, dim: int, part: Any) -> tuple[int, int, int]:
    if isinstance(part, Value):
        return 0, shape.dims[dim], 1
    if isinstance(part, builtins.slice):
        return check_span(shape, dim, part)
    start = check_index(shape, dim, int(part))
    return start, start + 1, 1
