"""What each place of a window covers, laid out along one dimension, and the folds of all but one element of it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from shape_inference import Dims, pred, s32, s64
from shape_inference.windows import Window, WindowDimension

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Builder, Value
from ..rules import full
from ..support import broadcast_to
from .arrays import array_of, compared, reshaped

Combine = Callable[[Value, Value], Value]


def covered(builder: Builder, extents: Dims, places: Dims, window: Window) -> Value:
    """For each place, and along a last dimension each element of the window, the number of what it covers, or -1."""
    rank, sizes = len(extents), (*places, *(dim.size for dim in window))
    dtype = s32 if max(prod(extents), prod(sizes)) < 1 << 31 else s64
    shape = dtype[sizes]
    number, is_inside = full(builder, 0, shape), full(builder, True, shape.with_dtype(pred))
    for d, (dim, extent) in enumerate(zip(window, extents, strict=True)):
        place = ops.iota(builder, shape=shape, iota_dimension=d)
        offset = ops.iota(builder, shape=shape, iota_dimension=rank + d)
        position, inside = _position(place, offset, dim, extent)
        number = ops.add(ops.multiply(number, full(builder, extent, shape)), position)
        is_inside = ops.and_(is_inside, inside)
    found = ops.select(is_inside, number, full(builder, -1, shape))
    return reshaped(found, (*places, prod(dim.size for dim in window)))


def _position(place: Value, offset: Value, dim: WindowDimension, extent: int) -> tuple[Value, Value]:
    """Which element of one dimension is covered, and whether it is one, not padding or a hole."""
    builder, shape = place.builder, array_of(place)

    def number(value: int) -> Value:
        return full(builder, value, shape)

    position = ops.multiply(place, number(dim.stride))
    position = ops.add(position, ops.multiply(offset, number(dim.window_dilation)))
    position = ops.subtract(position, number(dim.padding_low))
    is_inside = ops.and_(
        compared(position, number(0), "GE"), compared(position, number(max(dim.base(extent), 0)), "LT")
    )
    if dim.base_dilation == 1:
        return position, is_inside
    holes = number(dim.base_dilation)
    is_element = compared(ops.remainder(position, holes), number(0), "EQ")
    return ops.divide(position, holes), ops.and_(is_inside, is_element)


def elements(operand: Value, numbers: Value, identity: Value) -> Value:
    """The element of each number, the identity where it is -1."""
    found = ops.gather(
        reshaped(operand, (array_of(operand).size,)),
        numbers,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=array_of(numbers).rank,
        slice_sizes=(1,),
    )
    is_element = compared(numbers, full(numbers.builder, 0, array_of(numbers)), "GE")
    return ops.select(is_element, found, broadcast_to(identity, array_of(found).dims))


def folds_of_others(values: Value, combine: Combine, identity: Value) -> tuple[Value, Value]:
    """For each element along the last dimension the fold of those before it and of those after it, in log(n) steps."""
    length = array_of(values).dims[-1]
    before, after = _moved(values, 1, identity), _moved(values, -1, identity)
    step = 1
    while step < length:
        before = combine(_moved(before, step, identity), before)
        after = combine(after, _moved(after, -step, identity))
        step *= 2
    return before, after


def _moved(values: Value, by: int, identity: Value) -> Value:
    """The elements moved along the last dimension, the identity where none arrives."""
    rank = array_of(values).rank
    padding = (*((PaddingDimension(0, 0),) * (rank - 1)), PaddingDimension(by, -by))
    return ops.pad(values, identity, padding=padding)


def along_window(value: Value, length: int) -> Value:
    """A value for each place against what its window covers."""
    sizes = array_of(value).dims
    return broadcast_to(value, (*sizes, length), tuple(range(len(sizes))))
