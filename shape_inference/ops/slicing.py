"""Shapes of slice, dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

from ..dims import array, integer, length, same_type, sizes
from ..rules import infer, refuse
from ..types import AnyShape, Dims, Shape, array_shape


@infer
def slice(operand: AnyShape, *, start_indices: Dims, limit_indices: Dims, strides: Dims) -> Shape:
    shape = array("operand", operand)
    rank = f"dimension of operand {shape}"
    length("start_indices", start_indices, shape.rank, rank)
    length("limit_indices", limit_indices, shape.rank, rank)
    strides = strides or (1,) * shape.rank
    length("strides", strides, shape.rank, rank)
    for dim, (start, limit, stride) in enumerate(zip(start_indices, limit_indices, strides, strict=True)):
        if not 0 <= start <= limit <= shape.dims[dim] or stride < 1:
            _outside(shape, dim, start, limit, stride)
    extents = tuple([-((a - b) // s) for a, b, s in zip(start_indices, limit_indices, strides, strict=True)])
    if not shape.dynamic:
        return array_shape(shape.dtype, extents)
    return _flagged(shape, extents, [size != 1 for size in extents])


def _outside(shape: Shape, dim: int, start: int, limit: int, stride: int) -> None:
    """Refuse the stride, the limit or the start of one dimension of a slice."""
    if stride < 1:
        refuse(
            "non_positive",
            f"the stride in dimension {dim} of operand {shape} must be at least 1, got {stride}",
            "xb.reverse reverses a dimension",
        )
    size = shape.dims[dim]
    at_limit = not 0 <= limit <= size
    which, index, expected = ("limit", limit, f"0..{size}") if at_limit else ("start", start, f"0..{limit}")
    refuse(
        "index_out_of_range",
        f"{which}_indices[{dim}]={index} is out of range for dimension {dim} of operand {shape}; expected {expected} "
        f"(start {start}, limit {limit})",
    )


def _flagged(shape: Shape, extents: Dims, kept: Sequence[bool]) -> Shape:
    """An array shape of these extents; a dimension is dynamic if it is so in the operand and in `kept`."""
    flags = tuple(was and keep for was, keep in zip(shape.dynamic, kept, strict=True))
    return Shape(shape.dtype, extents, flags) if any(flags) else array_shape(shape.dtype, extents)


@infer
def dynamic_slice(operand: AnyShape, start_indices: Sequence[AnyShape], *, dynamic_slice_sizes: Dims) -> Shape:
    shape = array("operand", operand)
    _starts(shape, start_indices)
    length("dynamic_slice_sizes", dynamic_slice_sizes, shape.rank, f"dimension of operand {shape}")
    for dim, size in enumerate(dynamic_slice_sizes):
        if not 0 <= size <= shape.dims[dim]:
            sizes("dynamic_slice_sizes", dynamic_slice_sizes)
            refuse(
                "index_out_of_range",
                f"dynamic_slice_sizes[{dim}]={size} exceeds the extent {shape.dims[dim]} of dimension {dim} of operand "
                f"{shape}",
            )
    if not shape.dynamic:
        return array_shape(shape.dtype, dynamic_slice_sizes)
    whole = [size == bound != 1 for size, bound in zip(dynamic_slice_sizes, shape.dims, strict=True)]
    return _flagged(shape, dynamic_slice_sizes, whole)


@infer
def dynamic_update_slice(operand: AnyShape, update: AnyShape, start_indices: Sequence[AnyShape]) -> Shape:
    shape, new = array("operand", operand), array("update", update)
    if new.rank != shape.rank:
        refuse("rank_mismatch", f"operand is {shape} and update is {new}: ranks {shape.rank} and {new.rank} differ")
    same_type("operand", shape, "update", new, mixed_floats=True)
    for dim, (size, room) in enumerate(zip(new.dims, shape.dims, strict=True)):
        if size > room:
            refuse(
                "index_out_of_range",
                f"the extent {size} of dimension {dim} of update {new} exceeds the extent {room} in operand {shape}",
            )
    _starts(shape, start_indices)
    return shape


def _starts(operand: Shape, start_indices: Sequence[AnyShape]) -> None:
    """Refuse start indices other than an integer scalar of one type for each dimension, or a single vector."""
    arrays = [array(f"start_indices[{number}]", each) for number, each in enumerate(start_indices)]
    if len(arrays) == 1 and arrays[0].dims:
        _vector(operand, arrays[0])
    elif len(arrays) != operand.rank:
        refuse(
            "arity_mismatch",
            f"expected one start index for each dimension of operand {operand} ({operand.rank}), or one vector of that "
            f"length, got {len(arrays)} start_indices",
        )
    for number, each in enumerate(arrays):
        name = f"start_indices[{number}]"
        if each.dims and len(arrays) > 1:
            refuse("non_scalar", f"expected a scalar for {name}, got {each}")
        integer(name, each)
        if each.dtype is not arrays[0].dtype:
            same_type("start_indices[0]", arrays[0], name, each)


def _vector(operand: Shape, starts: Shape) -> None:
    if starts.rank != 1:
        refuse(
            "rank_mismatch",
            f"expected scalars or one vector for start_indices, got {starts} of rank {starts.rank}",
        )
    if starts.dims[0] != operand.rank:
        refuse("dimension_mismatch", f"start_indices is {starts}, but operand {operand} has rank {operand.rank}")


def check_index(operand: Shape, dim: int, index: int) -> int:
    """A Python index of a dimension as a non-negative index."""
    size = operand.dims[dim]
    if not -size <= index < size:
        expected = f"expected {-size}..{size - 1}" if size else "its extent is 0"
        refuse(
            "index_out_of_range", f"index {index} is out of range for dimension {dim} of operand {operand}; {expected}"
        )
    return index % size


def _is_int(bound: Any) -> bool:
    try:
        operator.index(bound)
    except TypeError:
        return False
    return True


def check_span(operand: Shape, dim: int, span: builtins.slice) -> tuple[int, int, int]:
    """A Python slice of a dimension as start, limit and stride; bounds out of range are clamped, as in Python."""
    given = f"the slice {span.start}:{span.stop}:{span.step} of dimension {dim} of operand {operand}"
    for bound in (span.start, span.stop, span.step):
        if bound is not None and not _is_int(bound):
            refuse(
                "invalid_attribute",
                f"expected ints in {given}, got {bound!r}",
                "if the start is known only at run time, use xb.dynamic_slice(x, starts, sizes); "
                "if the end is known only at run time, use xb.set_dimension_size(x, n, dim)",
            )
    if span.step is not None and span.step < 1:
        refuse(
            "non_positive",
            f"expected a step of at least 1 in {given}, got {span.step}",
            f"xb.reverse(x, ({dim},)) reverses the dimension",
        )
    start, stop, step = span.indices(operand.dims[dim])
    return start, max(start, stop), step
