"""Ops that choose elements by numbers: on a cut dimension each device looks among those that it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape
from shape_inference.types import s32, s64

from .... import ops
from ....core.attributes import PaddingDimension
from ....core.builder import Value
from ....core.graph import Instruction
from ...factors import Factor, ShardingRule
from ...planning.record import constant, dims_of, dtype_of, spread, zero
from ..parts.choices import partial_axes
from ..parts.frame import Frame
from ..parts.masks import combiner_of, masked, neutral, uneven_dims
from ..parts.tables import Cut, Operands, adapted, finishing, joining, preparing, recording
from ..parts.unnamed import first_alone, indexed, spread_to

# Gather: a device finds what it holds, zeros elsewhere; the sum over devices is the gather.


@joining
def gather(instruction: Instruction) -> Callable[..., Any] | None:
    shape = instruction.operands[0].shape
    assert isinstance(shape, Shape)
    return None if neutral("add", shape.dtype) is None else _joined(shape)


def _joined(shape: Shape) -> Callable[..., Any]:
    return ops.or_ if shape.dtype.kind == "pred" else ops.add


def _chosen_dims(cut: Cut, dims: Sequence[int]) -> list[int]:
    """The dimensions among these along which the first operand is cut."""
    sharding = cut.operands[0]
    assert sharding is not None
    return [dim for dim in dims if sharding.dim(dim).axes]


def _wide(indices: Value) -> Value:
    """Indices in a signed type that holds differences."""
    dtype = dtype_of(indices)
    if dtype.name in ("s32", "s64"):
        return indices
    if dtype.name == "u64":  # above this no array has elements
        indices = ops.minimum(indices, spread(constant(indices.builder, np.uint64(1 << 62)), dims_of(indices)))
    return ops.convert(indices, new_element_type=s64 if dtype.bits >= 32 else s32)


def _along(frame: Frame, indices: Value, vector_dim: int, place: int, number: Value, other: Any) -> Value:
    """For each index vector a number in one place, another in the others, of the indices' extents."""
    dims, dtype = dims_of(indices), dtype_of(indices)
    number = ops.convert(number, new_element_type=dtype)
    if vector_dim == len(dims):
        return spread(number, dims)
    places = ops.iota(frame.builder, shape=s32[dims], iota_dimension=vector_dim)
    is_here = ops.compare(places, spread(constant(frame.builder, np.int32(place)), dims), direction="EQ")
    rest = constant(frame.builder, np.array(other, dtype.dtype))
    return ops.select(is_here, spread(number, dims), spread(rest, dims))


def _gathered(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    """The indices of a gather among the elements that the device holds."""
    attributes, shape = cut.instruction.attributes, cut.instruction.operands[0].shape
    chosen = _chosen_dims(cut, attributes.collapsed_slice_dims)
    if not chosen:
        return operands
    assert isinstance(shape, Shape)
    indices, dim = _wide(operands[1]), attributes.index_vector_dim
    for each in indexed(chosen, attributes.start_index_map):
        place = attributes.start_index_map.index(each)
        indices = _clamped(frame, indices, dim, place, shape.dims[each] - 1)
        start = frame.recorder.place(_axes(cut, each), cut.operand_dims(0)[each])
        indices = ops.subtract(indices, _along(frame, indices, dim, place, start, 0))
    return [operands[0], indices]


def _clamped(frame: Frame, indices: Value, dim: int, place: int, top: int) -> Value:
    """Index vectors with one of their numbers moved to 0..top, as XLA does."""
    about = np.iinfo(dtype_of(indices).dtype)
    low = _along(frame, indices, dim, place, constant(frame.builder, np.int32(0)), about.min)
    high = _along(frame, indices, dim, place, constant(frame.builder, np.int32(top)), about.max)
    return ops.minimum(ops.maximum(indices, low), high)


def _axes(cut: Cut, dim: int) -> Any:
    sharding = cut.operands[0]
    assert sharding is not None
    return sharding.dim(dim).axes


preparing.enter("gather", _gathered)


@finishing
def gather_(frame: Frame, cut: Cut, operands: Operands, value: Value) -> Value:
    """Zeros where the index is not of an element that the device holds."""
    attributes = cut.instruction.attributes
    chosen = _chosen_dims(cut, attributes.collapsed_slice_dims)
    if not chosen:
        return value
    inside = _held(frame, cut, operands[1], chosen)
    counting = [n for n in range(len(dims_of(value))) if n not in attributes.offset_dims]
    mask = ops.broadcast(inside, sizes=dims_of(value), dimensions=counting if dims_of(inside) else ())
    return ops.select(mask, value, spread(zero(value), dims_of(value)))


def _held(frame: Frame, cut: Cut, indices: Value, chosen: Sequence[int]) -> Value:
    """For each index vector whether the device holds what it names."""
    attributes, dim = cut.instruction.attributes, cut.instruction.attributes.index_vector_dim
    named = indexed(chosen, attributes.start_index_map)
    found = first_alone(frame, cut, [each for each in chosen if each not in named])
    for each in named:
        column = _column(indices, dim, attributes.start_index_map.index(each))
        dims, dtype = dims_of(column), dtype_of(column)
        low = spread(constant(frame.builder, np.zeros((), dtype.dtype)), dims)
        high = spread(constant(frame.builder, np.array(cut.operand_dims(0)[each], dtype.dtype)), dims)
        inside = ops.and_(ops.compare(column, low, direction="GE"), ops.compare(column, high, direction="LT"))
        found = inside if found is None else ops.and_(spread_to(found, dims), inside)
    assert found is not None
    return found


def _column(indices: Value, dim: int, place: int) -> Value:
    """One number of each index vector."""
    dims = dims_of(indices)
    if dim == len(dims):
        return indices
    starts = tuple(place if n == dim else 0 for n in range(len(dims)))
    limits = tuple(place + 1 if n == dim else extent for n, extent in enumerate(dims))
    part = ops.slice(indices, start_indices=starts, limit_indices=limits, strides=(1,) * len(dims))
    return ops.reshape(part, new_sizes=[extent for n, extent in enumerate(dims) if n != dim])


# Scatter: a device takes the updates of what it holds; updates that are cut are a reduction.


@joining
def scatter(instruction: Instruction) -> Callable[..., Any] | None:
    return instruction.attributes.to_apply if _scatter_neutral(instruction) is not None else None


def _scatter_neutral(instruction: Instruction) -> Any:
    shape, name = instruction.operands[0].shape, combiner_of(instruction.attributes.to_apply)
    assert isinstance(shape, Shape)
    return None if name is None or len(instruction.operands) != 3 else neutral(name, shape.dtype)


def _scattered(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    attributes, count = cut.instruction.attributes, len(cut.results)
    indices, dim = operands[count], attributes.index_vector_dim
    chosen = _chosen_dims(cut, attributes.inserted_window_dims)
    for each in indexed(chosen, attributes.scatter_dims_to_operand_dims):
        indices = _wide(indices)
        place = attributes.scatter_dims_to_operand_dims.index(each)
        start = frame.recorder.place(_axes(cut, each), cut.operand_dims(0)[each])
        indices = ops.subtract(indices, _along(frame, indices, dim, place, start, 0))
    axes = partial_axes(cut.site, cut.assignment)
    first = operands[0]
    if axes:
        number = constant(frame.builder, _scatter_neutral(cut.instruction))
        is_first = ops.compare(frame.recorder.place(axes), constant(frame.builder, np.int32(0)), direction="EQ")
        dims = dims_of(first)
        first = ops.select(spread(is_first, dims), first, spread(number, dims))
    return [first, *operands[1:count], indices, *operands[count + 1 :]]


preparing.enter("scatter", _scattered)


# Dynamic slices.


@adapted
def dynamic_slice(instruction: Instruction, rule: ShardingRule) -> ShardingRule:
    """A dimension of which a part is taken is a reduction of the operand's: the slice of parts, zeros elsewhere."""
    operand, result = instruction.operands[0].shape, instruction.shape
    assert isinstance(operand, Shape)
    assert isinstance(result, Shape)
    factors, given, made = list(rule.factors), list(rule.operands[0]), list(rule.results[0])
    for dim, (size, kept) in enumerate(zip(operand.dims, result.dims, strict=True)):
        if size != kept:
            given[dim], made[dim] = (len(factors),), (len(factors) + 1,)
            factors += [Factor(size, "reduction"), Factor(kept, "need_replication")]
    return ShardingRule(tuple(factors), (tuple(given), *rule.operands[1:]), (tuple(made),))


joining.enter("dynamic_slice", gather)


def _taken_dims(cut: Cut) -> list[int]:
    """The cut dimensions of the first operand of which a part is taken or replaced."""
    first, sharding = cut.instruction.operands[0].shape, cut.operands[0]
    other = cut.instruction.operands[1].shape if cut.instruction.opcode != "dynamic_slice" else cut.instruction.shape
    assert isinstance(first, Shape)
    assert isinstance(other, Shape)
    assert sharding is not None
    pairs = enumerate(zip(first.dims, other.dims, strict=True))
    return [dim for dim, (size, part) in pairs if size != part and sharding.dim(dim).axes]


def _own_start(frame: Frame, cut: Cut, start: Value, dim: int, size: int) -> Value:
    """Where a slice begins in the device's part with `size` more elements before it; moved inside as XLA does."""
    shape, part = cut.instruction.operands[0].shape, cut.operand_dims(0)[dim]
    assert isinstance(shape, Shape)
    start = _wide(start)
    dtype = dtype_of(start).dtype

    def number(value: int) -> Value:
        return constant(frame.builder, np.array(value, dtype))

    start = ops.minimum(ops.maximum(start, number(0)), number(shape.dims[dim] - size))
    own = ops.convert(frame.recorder.place(_axes(cut, dim), part), new_element_type=dtype)
    start = ops.add(ops.subtract(start, own), number(size))
    return ops.minimum(ops.maximum(start, number(0)), number(part + size))


def _starts(frame: Frame, cut: Cut, starts: Sequence[Value], sizes: dict[int, int]) -> list[Value]:
    several = _apart(starts, len(cut.operand_dims(0)))
    moved = [_own_start(frame, cut, each, n, sizes[n]) if n in sizes else each for n, each in enumerate(several)]
    wide = {dtype_of(each).name for each in moved}
    return moved if len(wide) == 1 else [ops.convert(each, new_element_type=s64) for each in moved]


def _apart(starts: Sequence[Value], rank: int) -> Sequence[Value]:
    """The start of each dimension, where they may be one vector."""
    if not starts or not dims_of(starts[0]):
        return starts
    return [_column(starts[0], 0, dim) for dim in range(rank)]


def _surrounded(frame: Frame, value: Value, sizes: dict[int, int]) -> Value:
    around = [PaddingDimension(sizes.get(dim, 0), sizes.get(dim, 0), 0) for dim in range(len(dims_of(value)))]
    return ops.pad(value, zero(value), padding=around)


@recording
def dynamic_slice_(frame: Frame, cut: Cut, operands: Operands) -> Value | None:
    """The elements of a slice that the device holds, with zeros for the others."""
    local = cut.result_dims()
    sizes = {dim: local[dim] for dim in _taken_dims(cut)}
    if not sizes:
        return None
    value = _masked_part(frame, cut, operands[0], list(sizes))
    starts = _starts(frame, cut, operands[1:], sizes)
    return ops.dynamic_slice(_surrounded(frame, value, sizes), starts, dynamic_slice_sizes=local)


def _masked_part(frame: Frame, cut: Cut, value: Value, dims: list[int]) -> Value:
    shape, sharding = cut.instruction.operands[0].shape, cut.operands[0]
    assert isinstance(shape, Shape)
    assert sharding is not None
    uneven = [dim for dim in uneven_dims(sharding, shape) if dim in dims]
    return masked(frame, value, sharding, shape, uneven, np.zeros((), shape.dtype.dtype))


@recording
def dynamic_update_slice(frame: Frame, cut: Cut, operands: Operands) -> Value | None:
    """The device's part with the elements of the update that fall into it."""
    update = cut.operand_dims(1)
    sizes = {dim: update[dim] for dim in _taken_dims(cut)}
    if not sizes:
        return None
    starts = _starts(frame, cut, operands[2:], sizes)
    found = ops.dynamic_update_slice(_surrounded(frame, operands[0], sizes), operands[1], starts)
    dims = dims_of(operands[0])
    low = tuple(sizes.get(dim, 0) for dim in range(len(dims)))
    high = tuple(begin + extent for begin, extent in zip(low, dims, strict=True))
    return ops.slice(found, start_indices=low, limit_indices=high, strides=(1,) * len(dims))
