"""Broadcasting of values to other extents, and padding to the bounds of a dynamic dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import Dims, Shape, ShapeError, s32
from shape_inference.broadcasting import broadcasting
from shape_inference.ops.shaping import check_broadcast_in_dim

from ... import ops
from ...core.attributes import reader
from ...core.builder import Value
from .arguments import as_values, shape_of
from .operands import as_value

_read = reader("broadcast_dimensions", Dims)


def into(operand: Value, sizes: Dims, dimensions: Dims, name: str | None = None) -> Value:
    """XlaBuilder's BroadcastInDim: a reshape, where an extent of 1 must stretch, and a broadcast."""
    found = check_broadcast_in_dim(shape_of(operand), sizes, dimensions)
    kept = [i for i, (dim, size) in enumerate(zip(dimensions, found.dims, strict=True)) if size == sizes[dim]]
    if len(kept) < found.rank:
        operand = ops.reshape(operand, new_sizes=tuple(found.dims[i] for i in kept))
    return ops.broadcast(operand, sizes=sizes, dimensions=tuple(dimensions[i] for i in kept), name=name)


def aligned(lhs: Any, rhs: Any, broadcast_dimensions: Sequence[int] | None) -> tuple[Value, Value]:
    """Both operands broadcast to the same extents; operands that are no arrays stay, and the op refuses them."""
    left, right = as_values((lhs, rhs))
    a, b = left.shape, right.shape
    if not isinstance(a, Shape) or not isinstance(b, Shape) or (broadcast_dimensions is None and a.dims == b.dims):
        return left, right
    given = None if broadcast_dimensions is None else _read(broadcast_dimensions)
    try:
        sizes, of_lhs, of_rhs = broadcasting(a, b, given)
    except ShapeError as error:
        error.hints += tuple(_call_that_fits(error.hints))
        raise
    return _stretched(left, sizes, of_lhs, right, of_rhs), _stretched(right, sizes, of_rhs, left, of_lhs)


def _call_that_fits(hints: Sequence[str]) -> Iterator[str]:
    """The hint with the call for dimensions that fit, since an operator takes none."""
    for hint in hints[:1]:
        if hint.endswith(" fits"):
            yield f"not by an operator, but by a function: xb.add(x, y, {hint.removesuffix(' fits')})"


def _stretched(value: Value, sizes: Dims, places: Dims, other: Value, others: Dims) -> Value:
    """The value broadcast to these extents; along a dynamic dimension of the other operand it gets the same size."""
    shape, model = value.shape, other.shape
    assert isinstance(shape, Shape)
    assert isinstance(model, Shape)
    if shape.dims == sizes:
        return value
    own = {place for place, size in zip(places, shape.dims, strict=True) if size == sizes[place]}
    value = into(value, sizes, places) if places else ops.broadcast(value, sizes=sizes, dimensions=())
    for dim in range(model.rank if model.dynamic else 0):
        if model.dynamic[dim] and others[dim] not in own:
            value = ops.set_dimension_size(value, ops.get_dimension_size(other, dimension=dim), dimension=others[dim])
    return value


def like(value: Value, model: Value | None, given: Any) -> Value:
    """A scalar number broadcast to the extents of the model; any other value unchanged."""
    if isinstance(given, Value) or model is None or not isinstance(model.shape, Shape) or np.ndim(given):
        return value
    return _stretched(value, model.shape.dims, (), model, tuple(range(model.shape.rank)))


def filled_up(operand: Value, shape: Shape, dimension: int, name: str | None = None) -> Value:
    """The value padded with zeros to the bound of one dynamic dimension; other dimensions stay dynamic."""
    whole = ops.broadcast(as_value(operand.builder, 0, shape.dtype), sizes=shape.dims, dimensions=())
    for dim, is_dynamic in enumerate(shape.dynamic):
        if is_dynamic and dim != dimension:
            size = ops.get_dimension_size(operand, dimension=dim)
            whole = ops.set_dimension_size(whole, size, dimension=dim)
    starts = [as_value(operand.builder, 0, s32)] * shape.rank
    return ops.dynamic_update_slice(whole, operand, starts, name=name)
