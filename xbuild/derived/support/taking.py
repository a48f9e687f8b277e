"""Indices beyond slices and ints: new dimensions, and the elements of one dimension at many places."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape, pred, refuse, s32
from shape_inference.dims import array

from ... import ops
from ...core.builder import Value
from .arguments import dtype_of
from .extents import like
from .operands import as_value

_WHOLE = builtins.slice(None)


def check_places(part: Any, dim: int, shape: Shape) -> None:
    """Refuse a list of places that has other elements than integers, or places that are not there."""
    shown = f"a value {part.shape}" if isinstance(part, Value) else repr(part)
    is_mask = dtype_of(part) is pred if isinstance(part, Value) else np.asarray(part).dtype == np.bool_
    if is_mask:
        refuse(
            "invalid_attribute",
            f"index {shown} for dimension {dim} of {shape}: how many elements a mask chooses is known in the run "
            "alone, and extents are fixed",
            "xb.select(mask, x, 0.0) keeps the extents, and xb.select(mask, x, 0.0).sum() is the sum of the chosen",
        )
    dtype = dtype_of(part) if isinstance(part, Value) else None
    is_integer = dtype.is_integer if dtype is not None else not isinstance(part, Value) and _is_integer(part)
    if not is_integer:
        refuse("invalid_attribute", f"index {shown} for dimension {dim} of {shape}; integers are wanted")
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
        legal = f"legal are {-size}..{size - 1}" if size else "it has no element"
        refuse(
            "index_out_of_range", f"index {outside.flat[0]} for dimension {dim} of {shape}, which is {size}; {legal}"
        )


def indexed(value: Value, shape: Shape, parts: Sequence[Any], basic: Callable[..., Value], name: str | None) -> Value:
    """The part of an array whose index has lists of integers or None: the slices first, then the list, then None."""
    given = [part for part in parts if part is not None]
    lists = [dim for dim, part in enumerate(given) if _takes(part)]
    if len(lists) > 1:
        refuse(
            "invalid_attribute",
            f"index has lists of integers for dimensions {lists} of {shape}; one is taken",
            "xb.gather(x, start_indices, ...) takes elements at many places of several dimensions",
        )
    found = basic(value, shape, [_WHOLE if _takes(part) else part for part in given], None)
    if lists:
        place = sum(isinstance(part, builtins.slice) for part in given[: lists[0]])
        found = taken(found, given[lists[0]], place)
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


def taken(value: Value, places: Any, dim: int) -> Value:
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
