"""Partitions ops that select elements at run-time indices: each device looks among the elements that it holds.

Sections:

    Gather: a device selects among its elements; the sum over devices is the result
    Scatter: a device applies the updates of its elements
    DynamicSlice and DynamicUpdateSlice
    Index vectors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shape_inference import Shape
from shape_inference.types import s32, s64

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.patterns import additive_zero, neutral_element
from ..resharding_ops import constant, dims_of, dtype_of, spread
from ..rules import Factor, ShardingRule
from ..sharding import count
from .frame import Frame, Piece, Tree
from .handler import Combiner, Handler, Operands, Split, combiner_of, handles, neutral_for_combining
from .moving import can_move, partition_views, views_of
from .reasons import Verbs
from .views import slice_view

# ----------------------------------------------------------------------------
# Gather: a device selects among its elements; the sum over devices is the result


class Selecting(Handler):
    """Each device contributes the elements that it holds, and zeros for others: the sum over devices is the result."""

    def combiner(self, instruction: Instruction) -> Combiner:
        shape = instruction.operands[0].shape
        assert isinstance(shape, Shape)
        if neutral_element("add", shape.dtype) is None:
            return None
        return ops.or_ if shape.dtype.kind == "pred" else ops.add


@handles("gather")
class Gather(Selecting):
    """Indices count from the device's first element; elements that it does not hold are zeros."""

    verbs: ClassVar[Verbs] = Verbs(
        reduces="selects elements along", holds="the selected elements in its shard, and zeros for the others"
    )

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        attributes = split.instruction.attributes
        selected = _split_dims(split, attributes.collapsed_slice_dims)
        if not selected:
            return super().record(frame, split, operands)
        indices = self._local_indices(frame, split, operands[1], selected)
        value = super().record(frame, split, [operands[0], indices])
        inside = self._is_in_shard(frame, split, indices, selected)
        counting = [n for n in range(len(dims_of(value))) if n not in attributes.offset_dims]
        mask = ops.broadcast(inside, sizes=dims_of(value), dimensions=counting if dims_of(inside) else ())
        return ops.select(mask, value, spread(constant(frame.builder, additive_zero(dtype_of(value))), dims_of(value)))

    def local_attributes(self, split: Split) -> dict[str, Any]:
        """Along split dimensions of the operand, slices are as large as the part, or have extent 1."""
        dims, sharding = split.operand_dims(0), split.operand_sharding(0)
        sizes = zip(split.instruction.attributes.slice_sizes, dims, sharding.dims, strict=True)
        return {"slice_sizes": tuple(min(size, local) if dim.axes else size for size, local, dim in sizes)}

    def _local_indices(self, frame: Frame, split: Split, indices: Value, selected: Sequence[int]) -> Value:
        """The indices, counted from the device's first element."""
        attributes, dims = split.instruction.attributes, split.operand_shape(0).dims
        indices, dim = _widen(indices), attributes.index_vector_dim
        for each in _among(selected, attributes.start_index_map):
            place = attributes.start_index_map.index(each)
            indices = _clamp(frame, indices, dim, place, dims[each] - 1)
            indices = _shift_to_own(frame, split, indices, dim, place, each)
        return indices

    def _is_in_shard(self, frame: Frame, split: Split, indices: Value, selected: Sequence[int]) -> Value:
        """For each index vector, whether the device holds the elements that it names."""
        attributes, dim = split.instruction.attributes, split.instruction.attributes.index_vector_dim
        named = _among(selected, attributes.start_index_map)
        held = _holds_first_elements(frame, split, [each for each in selected if each not in named])
        for each in named:
            column = _column(indices, dim, attributes.start_index_map.index(each))
            dims, dtype = dims_of(column), dtype_of(column)
            low = spread(constant(frame.builder, np.zeros((), dtype.dtype)), dims)
            high = spread(constant(frame.builder, np.array(split.operand_dims(0)[each], dtype.dtype)), dims)
            inside = ops.and_(ops.compare(column, low, direction="GE"), ops.compare(column, high, direction="LT"))
            held = inside if held is None else ops.and_(held if dims_of(held) else spread(held, dims), inside)
        assert held is not None
        return held


# ----------------------------------------------------------------------------
# Scatter: a device applies the updates of its elements
#
# If updates are split, the results are partial.


@handles("scatter")
class Scatter(Handler):
    """Indices count from the device's first element; XLA drops updates of elements that it does not hold."""

    verbs: ClassVar[Verbs] = Verbs(reduces="combines updates along", holds="the result of its own updates")

    def needs_equal_parts(self, instruction: Instruction) -> bool:
        """An update of padding would not be dropped."""
        return True

    def may_split_passing(self, operands: Sequence[bool], results: Sequence[bool]) -> bool:
        return operands[0]

    def combiner(self, instruction: Instruction) -> Combiner:
        return instruction.attributes.to_apply if self._neutral_element(instruction) is not None else None

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        operands = self._prepare_operands(frame, split, operands)
        value = super().record(frame, split, operands)
        attributes = split.instruction.attributes
        selected = _split_dims(split, attributes.inserted_window_dims)
        named = _among(selected, attributes.scatter_dims_to_operand_dims)
        is_first = _holds_first_elements(frame, split, [dim for dim in selected if dim not in named])
        if is_first is None:
            return value
        if len(split.results) == 1:
            return ops.select(spread(is_first, dims_of(value)), value, operands[0])
        results = (ops.get_tuple_element(value, index=number) for number in range(len(split.results)))
        pairs = zip(results, operands, strict=False)
        return ops.tuple_(tuple(ops.select(spread(is_first, dims_of(one)), one, other) for one, other in pairs))

    def _prepare_operands(self, frame: Frame, split: Split, operands: Operands) -> Operands:
        """The operands with indices that count from the device's first element; one partial result has the operand."""
        attributes, count = split.instruction.attributes, len(split.results)
        indices, dim = operands[count], attributes.index_vector_dim
        selected = _split_dims(split, attributes.inserted_window_dims)
        for each in _among(selected, attributes.scatter_dims_to_operand_dims):
            indices = _widen(indices)
            place = attributes.scatter_dims_to_operand_dims.index(each)
            indices = _shift_to_own(frame, split, indices, dim, place, each)
        first, axes = operands[0], split.reduced_axes
        if axes:
            number = constant(frame.builder, self._neutral_element(split.instruction))
            is_first = frame.recorder.is_first(axes)
            dims = dims_of(first)
            first = ops.select(spread(is_first, dims), first, spread(number, dims))
        return [first, *operands[1:count], indices, *operands[count + 1 :]]

    def _neutral_element(self, instruction: Instruction) -> Any:
        shape, name = instruction.operands[0].shape, combiner_of(instruction.attributes.to_apply)
        assert isinstance(shape, Shape)
        return None if name is None or len(instruction.operands) != 3 else neutral_for_combining(name, shape.dtype)


# ----------------------------------------------------------------------------
# DynamicSlice and DynamicUpdateSlice


@handles("dynamic_slice")
class DynamicSlice(Selecting):
    """A slice at constant indices moves elements as `slice` does; otherwise each device contributes what it holds."""

    verbs: ClassVar[Verbs] = Verbs(
        reduces="takes a slice of", moves="takes a slice of",
        holds="the elements of the slice in its shard, and zeros for the others",
    )  # fmt: skip

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        starts = _known_starts(frame, instruction, 1)
        if starts is None or not can_move(frame, instruction):
            return super().partition(frame, instruction)
        operand, shape = instruction.operands[0].shape, instruction.shape
        assert isinstance(operand, Shape)
        assert isinstance(shape, Shape)
        firsts = [min(max(start, 0), n - size) for start, n, size in zip(starts, operand.dims, shape.dims, strict=True)]
        bounds = [(start, start + size, 1) for start, size in zip(firsts, shape.dims, strict=True)]
        views = [slice_view(each, bounds) for each in views_of(frame, instruction)]
        return partition_views(frame, self, instruction, views)

    def adapt_rule(self, instruction: Instruction, rule: ShardingRule) -> ShardingRule:
        """A sliced dimension is a reduction of the operand's: each device slices its part, with zeros elsewhere."""
        operand, result = instruction.operands[0].shape, instruction.shape
        assert isinstance(operand, Shape)
        assert isinstance(result, Shape)
        factors, operand_map, result_map = list(rule.factors), list(rule.operands[0]), list(rule.results[0])
        for dim, (size, sliced) in enumerate(zip(operand.dims, result.dims, strict=True)):
            if size != sliced:
                operand_map[dim], result_map[dim] = (len(factors),), (len(factors) + 1,)
                factors += [Factor(size, "reduction"), Factor(sliced, "need_replication")]
        return ShardingRule(tuple(factors), (tuple(operand_map), *rule.operands[1:]), (tuple(result_map),))

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        """The elements of a slice that the device holds, with the neutral element of addition for others."""
        result, local = split.instruction.shape, split.result_dims()
        assert isinstance(result, Shape)
        sizes = {dim: local[dim] for dim in _sliced_dims(split, result)}
        if not sizes:
            return super().record(frame, split, operands)
        shape = split.operand_shape(0)
        padded = [dim for dim in sizes if shape.dims[dim] % count(split.axes(0, dim))]
        value = split.fill_padding(frame, 0, operands[0], padded, additive_zero(shape.dtype))
        starts = _local_starts(frame, split, operands[1:], sizes)
        return ops.dynamic_slice(_surround(frame, value, sizes), starts, dynamic_slice_sizes=local)

    def local_attributes(self, split: Split) -> dict[str, Any]:
        return {"dynamic_slice_sizes": split.result_dims()}


@handles("dynamic_update_slice")
class DynamicUpdateSlice(Handler):
    """Each device writes the elements of the update that fall into its part."""

    def may_split_passing(self, operands: Sequence[bool], results: Sequence[bool]) -> bool:
        return operands[0]

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        update = split.operand_dims(1)
        sizes = {dim: update[dim] for dim in _sliced_dims(split, split.operand_shape(1))}
        if not sizes:
            return super().record(frame, split, operands)
        starts = _local_starts(frame, split, operands[2:], sizes)
        updated = ops.dynamic_update_slice(_surround(frame, operands[0], sizes), operands[1], starts)
        dims = dims_of(operands[0])
        low = tuple(sizes.get(dim, 0) for dim in range(len(dims)))
        high = tuple(begin + extent for begin, extent in zip(low, dims, strict=True))
        return ops.slice(updated, start_indices=low, limit_indices=high, strides=(1,) * len(dims))


def _known_starts(frame: Frame, instruction: Instruction, first: int) -> list[int] | None:
    """The values of the operands from one on, which are start indices; None if one is not a constant."""
    pieces = [frame.values[each] for each in instruction.operands[first:]]
    if not all(isinstance(each, Piece) and each.origin.opcode == "constant" for each in pieces):
        return None
    if any(each.shape.rank for each in pieces):
        return None
    return [int(each.origin.attributes.literal) for each in pieces]


def _sliced_dims(split: Split, part: Shape) -> list[int]:
    """The split dimensions of the first operand that are sliced or updated in part."""
    pairs = enumerate(zip(split.operand_shape(0).dims, part.dims, strict=True))
    return [dim for dim, (size, sliced) in pairs if size != sliced and split.axes(0, dim)]


def _local_starts(frame: Frame, split: Split, starts: Sequence[Value], sizes: dict[int, int]) -> list[Value]:
    separate = _separate_starts(starts, len(split.operand_dims(0)))
    moved = [_shift_start(frame, split, each, n, sizes[n]) if n in sizes else each for n, each in enumerate(separate)]
    wide = {dtype_of(each).name for each in moved}
    return moved if len(wide) == 1 else [ops.convert(each, new_element_type=s64) for each in moved]


def _shift_start(frame: Frame, split: Split, start: Value, dim: int, size: int) -> Value:
    """Where a slice begins in the device's part with `size` more elements before it, clamped as XLA does."""
    shape, part = split.operand_shape(0), split.operand_dims(0)[dim]
    start = _widen(start)
    dtype = dtype_of(start).dtype

    def number(value: int) -> Value:
        return constant(frame.builder, np.array(value, dtype))

    start = ops.minimum(ops.maximum(start, number(0)), number(shape.dims[dim] - size))
    own = ops.convert(frame.recorder.place(split.axes(0, dim), part), new_element_type=dtype)
    start = ops.add(ops.subtract(start, own), number(size))
    return ops.minimum(ops.maximum(start, number(0)), number(part + size))


def _separate_starts(starts: Sequence[Value], rank: int) -> Sequence[Value]:
    """The start of each dimension; the operands may state them in one vector."""
    if not starts or not dims_of(starts[0]):
        return starts
    return [_column(starts[0], 0, dim) for dim in range(rank)]


def _surround(frame: Frame, value: Value, sizes: dict[int, int]) -> Value:
    """The value, padded with the neutral element of addition: -0 for floats."""
    assert isinstance(value.shape, Shape)
    around = [PaddingDimension(sizes.get(dim, 0), sizes.get(dim, 0), 0) for dim in range(len(dims_of(value)))]
    return ops.pad(value, constant(frame.builder, additive_zero(value.shape.dtype)), padding=around)


# ----------------------------------------------------------------------------
# Index vectors


def _split_dims(split: Split, dims: Sequence[int]) -> list[int]:
    """The dimensions among these along which the first operand is split."""
    return [dim for dim in dims if split.axes(0, dim)]


def _among(dims: Sequence[int], named: Sequence[int]) -> list[int]:
    """The dimensions among these that index vectors name."""
    return [dim for dim in dims if dim in named]


def _holds_first_elements(frame: Frame, split: Split, dims: Sequence[int]) -> Value | None:
    """A pred[]: whether the device holds the first elements along these dimensions; None if there are none.

    Along dimensions that index vectors do not name, the first elements are selected.
    """
    if not dims:
        return None
    axes = tuple(axis for dim in dims for axis in split.axes(0, dim))
    return frame.recorder.is_first(axes)


def _widen(indices: Value) -> Value:
    """The indices in a signed type that can hold their differences."""
    dtype = dtype_of(indices)
    if dtype.name in ("s32", "s64"):
        return indices
    if dtype.name == "u64":  # no array has more elements
        indices = ops.minimum(indices, spread(constant(indices.builder, np.uint64(1 << 62)), dims_of(indices)))
    return ops.convert(indices, new_element_type=s64 if dtype.bits >= 32 else s32)


def _shift_to_own(frame: Frame, split: Split, indices: Value, vector_dim: int, place: int, dim: int) -> Value:
    """Index vectors in which one index counts from the device's first element of a dimension."""
    start = frame.recorder.place(split.axes(0, dim), split.operand_dims(0)[dim])
    return ops.subtract(indices, _spread_at(frame, indices, vector_dim, place, start, 0))


def _spread_at(frame: Frame, indices: Value, vector_dim: int, place: int, number: Value, other: Any) -> Value:
    """An array of the indices' extents with `number` at one position of each index vector, and `other` elsewhere."""
    dims, dtype = dims_of(indices), dtype_of(indices)
    number = ops.convert(number, new_element_type=dtype)
    if vector_dim == len(dims):
        return spread(number, dims)
    places = ops.iota(frame.builder, shape=s32[dims], iota_dimension=vector_dim)
    is_here = ops.compare(places, spread(constant(frame.builder, np.int32(place)), dims), direction="EQ")
    rest = constant(frame.builder, np.array(other, dtype.dtype))
    return ops.select(is_here, spread(number, dims), spread(rest, dims))


def _clamp(frame: Frame, indices: Value, dim: int, place: int, top: int) -> Value:
    """Index vectors with one index clamped to 0..top, as XLA does."""
    limits = np.iinfo(dtype_of(indices).dtype)
    low = _spread_at(frame, indices, dim, place, constant(frame.builder, np.int32(0)), limits.min)
    high = _spread_at(frame, indices, dim, place, constant(frame.builder, np.int32(top)), limits.max)
    return ops.minimum(ops.maximum(indices, low), high)


def _column(indices: Value, dim: int, place: int) -> Value:
    """One index of each index vector."""
    dims = dims_of(indices)
    if dim == len(dims):
        return indices
    starts = tuple(place if n == dim else 0 for n in range(len(dims)))
    limits = tuple(place + 1 if n == dim else extent for n, extent in enumerate(dims))
    part = ops.slice(indices, start_indices=starts, limit_indices=limits, strides=(1,) * len(dims))
    return ops.reshape(part, new_sizes=[extent for n, extent in enumerate(dims) if n != dim])
