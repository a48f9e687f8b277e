"""Indices beyond slices and ints: new dimensions, and the elements of one dimension at many places."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shape_inference import Shape, TupleShape, pred, refuse, s32
from shape_inference.dims import array, dimension
from shape_inference.ops.slicing import check_index, check_span

from .. import ops
from ..core.builder import Value, stands_for
from .support import (
    as_list,
    as_value,
    as_values,
    dressed,
    dtype_of,
    like,
    normalize_dimensions,
    rank_of,
    require_value,
    shape_of,
)

__all__ = ["dynamic_slice", "dynamic_update_slice", "index", "slice", "slice_in_dim"]


# ----------------------------------------------------------------------------
# Indices beyond slices and ints: new dimensions, and the elements of one dimension at many places.

_WHOLE = builtins.slice(None)


def _check_places(part: Any, dim: int, shape: Shape) -> None:
    """Refuse a list of places that has other elements than integers, or places that are not there."""
    shown = f"a value {part.shape}" if isinstance(part, Value) else repr(part)
    is_mask = dtype_of(part) is pred if isinstance(part, Value) else np.asarray(part).dtype == np.bool_
    if is_mask:
        refuse(
            "invalid_attribute",
            f"index {shown} for dimension {dim} of {shape} is a mask; the number of elements that a mask selects "
            "is known only when the program runs, but extents are fixed",
            "xb.select(mask, x, 0.0) keeps the extents, and xb.select(mask, x, 0.0).sum() sums the selected elements",
        )
    dtype = dtype_of(part) if isinstance(part, Value) else None
    is_integer = dtype.is_integer if dtype is not None else not isinstance(part, Value) and _is_integer(part)
    if not is_integer:
        refuse("invalid_attribute", f"index {shown} for dimension {dim} of {shape}: expected integers")
    if not isinstance(part, Value):
        _check_range(np.asarray(part), dim, shape)


def _is_integer(part: Any) -> bool:
    try:
        found = np.asarray(part)
    except ValueError:
        return False
    return found.dtype.kind in "iu" or found.size == 0


def _check_range(places: Any, dim: int, shape: Shape) -> None:
    size = shape.dims[dim]
    outside = places[(places < -size) | (places >= size)]
    if outside.size:
        legal = f"expected {-size}..{size - 1}" if size else "its extent is 0"
        refuse("index_out_of_range", f"index {outside.flat[0]} is out of range for dimension {dim} of {shape}; {legal}")


def _index_with_list(
    value: Value, shape: Shape, parts: Sequence[Any], basic: Callable[..., Value], name: str | None
) -> Value:
    """The part of an array whose index has lists of integers or None: the slices first, then the list, then None."""
    given = [part for part in parts if part is not None]
    lists = [dim for dim, part in enumerate(given) if _takes(part)]
    if len(lists) > 1:
        refuse(
            "invalid_attribute",
            f"index has lists of integers for dimensions {lists} of {shape}; only one list is supported",
            "xb.gather(x, start_indices, ...) selects elements along several dimensions",
        )
    found = basic(value, shape, [_WHOLE if _takes(part) else part for part in given], None)
    if lists:
        place = sum(isinstance(part, builtins.slice) for part in given[: lists[0]])
        found = _take(found, given[lists[0]], place)
    return ops.reshape(found, new_sizes=_sizes(parts, array("value", found.shape).dims), name=name)


def _takes(part: Any) -> bool:
    return not isinstance(part, builtins.slice) and _rank(part) > 0


def _rank(part: Any) -> int:
    return array("index", part.shape).rank if isinstance(part, Value) else np.ndim(part)


def _sizes(parts: Sequence[Any], dims: Sequence[int]) -> list[int]:
    """The extents of the result, with 1 for each None."""
    rest, sizes = iter(dims), []
    for part in parts:
        count = 1 if isinstance(part, builtins.slice) else 0 if part is None else _rank(part)
        sizes += [1] if part is None else [next(rest) for _ in range(count)]
    return sizes


def _from_the_end(places: Value, size: int) -> Value:
    """Places with negative ones counted from the end."""
    dtype = array("index", places.shape).dtype
    if dtype.kind != "signed":
        return places
    if dtype.bits < 32:  # which may not hold the extent
        places, dtype = ops.convert(places, new_element_type=s32), s32
    zero, whole = (like(as_value(places.builder, number, dtype), places, number) for number in (0, size))
    return ops.select(ops.compare(places, zero, direction="LT"), ops.add(places, whole), places)


def _take(value: Value, places: Any, dim: int) -> Value:
    """The elements of one dimension at these places, in the dimensions of `places`."""
    shape = array("value", value.shape)
    size = shape.dims[dim]
    if isinstance(places, Value):
        starts = _from_the_end(places, size)
    else:
        found = np.asarray(places, np.int64)
        starts = as_value(value.builder, np.where(found < 0, found + size, found).astype(np.int32))
    rank = array("places", starts.shape).rank
    return ops.gather(
        value,
        starts,
        offset_dims=(*range(dim), *range(dim + rank, shape.rank - 1 + rank)),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        index_vector_dim=rank,
        slice_sizes=tuple(1 if n == dim else extent for n, extent in enumerate(shape.dims)),
    )


# ----------------------------------------------------------------------------
# Convenience forms of slice, dynamic_slice and dynamic_update_slice, and Python's indexing of values.


@dressed
def slice(
    operand: Value,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Take every stride-th element from start to limit (exclusive) in each dimension.

    Raises: the same errors as xb.ops.slice.

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
    """Slice one dimension, and keep all elements of the other dimensions.

    Raises: dimension_out_of_range; also the same errors as xb.ops.slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> xb.slice_in_dim(x, 1, 7, stride=2, dimno=1).shape
    f32[10,3]

    Source: xla_builder.h, SliceInDim.
    """
    shape = array("operand", shape_of(operand))
    at = dimension(f"dimno={dimno}", normalize_dimensions(dimno, shape.rank), "operand", shape)
    start, limit, strides = [0] * shape.rank, list(shape.dims), [1] * shape.rank
    start[at], limit[at], strides[at] = start_index, limit_index, stride
    return ops.slice(operand, start_indices=start, limit_indices=limit, strides=strides, name=name)


@dressed
def dynamic_slice(operand: Value, start_indices: Any, slice_sizes: Sequence[int], *, name: str | None = None) -> Value:
    """Take the window of these sizes at `start_indices`, shifted to lie inside the operand.

    The start indices are a list of scalar values and ints, or one vector. Ints take the type of the other indices, or
    s32.
    Raises: the same errors as xb.ops.dynamic_slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[10, 8])
    >>> i = xb.parameter(builder, number=1, shape=xb.s32[()])
    >>> xb.dynamic_slice(x, (i, 0), (3, 8)).shape
    f32[3,8]

    Source: Operation Semantics, DynamicSlice.
    """
    return ops.dynamic_slice(
        require_value(operand), _starts(operand, start_indices), dynamic_slice_sizes=slice_sizes, name=name
    )


@dressed
def dynamic_update_slice(operand: Value, update: Any, start_indices: Any, *, name: str | None = None) -> Value:
    """Write `update` (a value or a NumPy array) over the window that begins at `start_indices`.

    The start indices are as in `dynamic_slice`.
    Raises: the same errors as xb.ops.dynamic_update_slice.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[10])
    >>> xb.dynamic_update_slice(x, xb.slice(x, (0,), (2,)), [3]).shape
    f32[10]

    Source: Operation Semantics, DynamicUpdateSlice.
    """
    _, new = as_values((require_value(operand), update))
    return ops.dynamic_update_slice(operand, new, _starts(operand, start_indices), name=name)


def _starts(operand: Value, start_indices: Any) -> list[Value]:
    """The starts as values of one type: ints take the type of the first value among them, or s32."""
    return as_values(as_list(start_indices), builder=require_value(operand).builder)


@dressed
def index(value: Value, index: Any, *, name: str | None = None) -> Value:
    """Return `value[index]`: an element of a tuple, or the part of an array that NumPy's basic indexing selects.

    Each dimension takes an int (negative ints count from the end), a slice of ints with a positive step, or a scalar
    integer value. A scalar value is clamped like a start index of dynamic_slice. An int or a scalar value removes its
    dimension. `...` covers all other dimensions, and None adds a dimension of extent 1. One dimension may have a list,
    array or value with integer elements, which select elements of the dimension. Negative numbers in a list or
    array count from the end; those in a value are clamped. Records the ops that are
    needed: a slice, a dynamic_slice, a gather with a reshape, or a get_tuple_element.
    Raises: index_out_of_range; non_positive if a step is not positive; rank_mismatch if there are too many indices;
    invalid_attribute for any other invalid index.

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
    parts = _expand_index(found, index)
    if any(_is_list(part) for part in parts) or any(part is None for part in parts):
        return _index_with_list(value, found, parts, _basic, name)
    return _basic(value, found, parts, name)


def _basic(value: Value, shape: Shape, parts: list[Any], name: str | None) -> Value:
    """The part of an array for an int, a slice or a scalar value for each dimension."""
    *steps, last = _steps(shape, parts) or [partial(ops.reshape, new_sizes=shape.dims)]
    for step in steps:
        value = step(value)
    return last(value, name=name)


def _element(value: Value, shape: TupleShape, index: Any, name: str | None) -> Value:
    if not _is_int(index):
        refuse("invalid_attribute", f"index {index!r} of {shape}: expected an int to select an element of a tuple")
    count = len(shape)
    if not -count <= index < count:
        legal = f"expected {-count}..{count - 1}" if count else "the tuple is empty"
        refuse("index_out_of_range", f"index {index} is out of range for {shape}; {legal}")
    return ops.get_tuple_element(value, index=int(index) % count, name=name)


def _is_int(index: Any) -> bool:
    return isinstance(index, int | np.integer) and not isinstance(index, bool)


def _is_list(part: Any) -> bool:
    """Whether a part of an index is a list of integers: a Python list, an array, or a value that is no scalar."""
    return isinstance(part, list | np.ndarray) or (isinstance(part, Value) and rank_of(part) != 0)


def _expand_index(shape: Shape, index: Any) -> list[Any]:
    """The index with one part for each dimension, and None for each new one."""
    parts = [stands_for(part) for part in (index if isinstance(index, tuple) else (index,))]
    places = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        refuse("invalid_attribute", f"index {index!r} has {len(places)} ellipses; only one is allowed")
    count = sum(part is not None and part is not Ellipsis for part in parts)
    if count > shape.rank:
        refuse("rank_mismatch", f"expected at most {shape.rank} indices for {shape}, got {count}")
    place = places[0] if places else len(parts)
    parts[place : place + 1] = [builtins.slice(None)] * (shape.rank - count)
    for dim, part in enumerate(each for each in parts if each is not None):
        if _is_list(part):
            _check_places(part, dim, shape)
        elif not (_is_int(part) or isinstance(part, builtins.slice | Value)):
            refuse(
                "invalid_attribute",
                f"index {part!r} for dimension {dim} of {shape}: expected an int, a slice, `...`, None, a scalar "
                "value or a list of integers",
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
