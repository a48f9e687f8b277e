"""Partitions ops that rearrange elements: broadcasts, reshapes, slices, pads, concatenations and sorts.

Sections:

    Broadcast, reshape and bitcast: which extents the parts have
    Slice, reverse, pad and concatenate: elements that move along a split dimension
    Sort and topk: a dimension that is ordered is not split
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shape_inference import Shape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ..resharding_ops import constant, dims_of, spread
from ..rules import Factor, ShardingRule, sharding_rule
from ..sharding import Axis, Sharding, count
from .frame import (
    Frame,
    Piece,
    Tree,
    local_dims,
    read_shardings,
    replicated_sharding,
    reshard_to_annotation,
    run_replicated,
)
from .handler import Fetches, Handler, Split, can_split, handles
from .leaves import make_when_used
from .reasons import WHOLE_OPERAND, Because, Gathered, Verbs
from .views import ArrayView, concatenate_views, pad_view, partition_view, reverse_view, slice_view, view_as_is, view_of

# ----------------------------------------------------------------------------
# Broadcast, reshape and bitcast: which extents the parts have


@handles("broadcast")
class Broadcast(Handler):
    """A scalar is broadcast to the extents that are needed; an array is split by the op's sharding rule."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        (operand,) = instruction.operands
        shape = instruction.shape
        assert isinstance(shape, Shape)
        if operand.shape.rank or not shape.rank:  # type: ignore[union-attr]
            return self.partition_by_rule(frame, instruction, sharding_rule["broadcast"](instruction))
        number = frame.replicate(frame.values[operand], Because(WHOLE_OPERAND, instruction))

        def make(sharding: Sharding) -> Value:
            return spread(number, local_dims(sharding, shape.dims))

        return make_when_used(frame, instruction, make)

    def may_split_passing(self, operands: Sequence[bool], results: Sequence[bool]) -> bool:
        """Dimensions that the operand does not have may be split."""
        return all(results)

    def local_attributes(self, split: Split) -> dict[str, Any]:
        return {"sizes": split.result_dims()}


@handles("reshape")
class Reshape(Handler):
    def local_attributes(self, split: Split) -> dict[str, Any]:
        return {"new_sizes": split.result_dims()}


@handles("bitcast")
class Bitcast(Handler):
    """A bitcast between layouts runs on replicated arrays."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        return run_replicated(frame, instruction)


# ----------------------------------------------------------------------------
# Slice, reverse, pad and concatenate: elements that move along a split dimension


class MovingElements(Handler):
    """An op whose result is a view of its operands, made when it is first used."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        if not can_move(frame, instruction):
            return super().partition(frame, instruction)
        return partition_views(frame, self, instruction, self.views(frame, instruction))

    def views(self, frame: Frame, instruction: Instruction) -> Sequence[ArrayView | None]:
        """The result as a view of the arrays that its operands are views of, and as a view of the operands."""
        raise AssertionError(instruction.opcode)


def can_move(frame: Frame, instruction: Instruction) -> bool:
    """Whether all arrays have static extents, and there are elements to move."""
    return can_split(frame, instruction) and bool(instruction.operands[0].shape.size)  # type: ignore[union-attr]


def views_of(frame: Frame, instruction: Instruction) -> tuple[ArrayView, ArrayView]:
    """The first operand as a view of other arrays, and as a view of itself."""
    piece = frame.values[instruction.operands[0]]
    return view_of(piece), view_as_is(piece)


def partition_views(
    frame: Frame, handler: Handler, instruction: Instruction, views: Sequence[ArrayView | None]
) -> Tree:
    """The array by a view if elements move along a split dimension, else by the op itself on parts.

    The first view is of the arrays that the operands are views of, the last one of the operands.
    """
    possible = [each for each in views if each is not None]
    if not instruction.shape.size:  # type: ignore[union-attr]
        return _make_empty(frame, instruction)
    if len(possible[0].bases) == 1 and not any(map(possible[0].moves, range(len(possible[0].lines)))):
        return reshard_to_annotation(frame, possible[0].bases[0], instruction)
    stated = read_shardings(instruction, frame.mesh)
    if not _moves_and_is_split(possible[-1], stated):
        return Handler.partition(handler, frame, instruction)
    return partition_view(frame, instruction, possible, stated)


def _make_empty(frame: Frame, instruction: Instruction) -> Tree:
    """An array without elements, made where it is used."""
    shape = instruction.shape
    assert isinstance(shape, Shape)

    def make(sharding: Sharding) -> Value:
        return spread(constant(frame.builder, np.zeros((), shape.dtype.dtype)), local_dims(sharding, shape.dims))

    stated = read_shardings(instruction, frame.mesh)
    home = replicated_sharding(frame.mesh, shape.rank) if stated is None or stated.unreduced else stated
    return Piece(shape, instruction, {home: make(home)}, make)


def _moves_and_is_split(view: ArrayView, stated: Sharding | None) -> bool:
    possible = [sharding for base in view.bases if base.maker is None for sharding in base.shardings]
    possible += [] if stated is None else [stated]
    return any(view.moves(dim) and sharding.dim(dim).axes for sharding in possible for dim in range(len(view.lines)))


@handles("slice")
class Slice(MovingElements):
    verbs: ClassVar[Verbs] = Verbs(moves="takes a slice of")

    def views(self, frame: Frame, instruction: Instruction) -> Sequence[ArrayView]:
        attributes = instruction.attributes
        strides = attributes.strides or (1,) * len(attributes.start_indices)
        bounds = list(zip(attributes.start_indices, attributes.limit_indices, strides, strict=True))
        return [slice_view(each, bounds) for each in views_of(frame, instruction)]

    def local_attributes(self, split: Split) -> dict[str, Any]:
        """A slice takes all of a dimension that is split."""
        limits, dims = split.instruction.attributes.limit_indices, split.operand_dims(0)
        pairs = zip(limits, dims, split.operand_sharding(0).dims, strict=True)
        return {"limit_indices": tuple(local if dim.axes else limit for limit, local, dim in pairs)}


@handles("reverse")
class Reverse(MovingElements):
    verbs: ClassVar[Verbs] = Verbs(needs="reverses", moves="reverses")

    def views(self, frame: Frame, instruction: Instruction) -> Sequence[ArrayView]:
        return [reverse_view(each, instruction.attributes.dimensions) for each in views_of(frame, instruction)]


@handles("pad")
class Pad(MovingElements):
    verbs: ClassVar[Verbs] = Verbs(moves="pads")

    def views(self, frame: Frame, instruction: Instruction) -> Sequence[ArrayView | None]:
        filler = frame.values[instruction.operands[1]]
        around = [(each.low, each.high, each.interior) for each in instruction.attributes.padding]
        return [pad_view(each, filler, around) for each in views_of(frame, instruction)]


@handles("concatenate")
class Concatenate(MovingElements):
    verbs: ClassVar[Verbs] = Verbs(needs="concatenates along", moves="concatenates along")

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        if not can_split(frame, instruction):
            return Handler.partition(self, frame, instruction)
        if not instruction.shape.size:  # type: ignore[union-attr]
            return _make_empty(frame, instruction)
        return partition_views(frame, self, instruction, self.views(frame, instruction))

    def views(self, frame: Frame, instruction: Instruction) -> Sequence[ArrayView]:
        pieces = [frame.values[each] for each in instruction.operands if each.shape.size]  # type: ignore[union-attr]
        return [
            concatenate_views(pieces, instruction.attributes.dimension, describe) for describe in (view_of, view_as_is)
        ]


# ----------------------------------------------------------------------------
# Sort and topk: a dimension that is ordered is not split


@handles("sort")
class Sort(Handler):
    """Each device needs all of the sorted dimension."""

    verbs: ClassVar[Verbs] = Verbs(needs="sorts along")


@handles("topk")
class TopK(Handler):
    """Each device ranks its part of the last dimension; all gather these results and rank them again."""

    verbs: ClassVar[Verbs] = Verbs(
        reduces="ranks along",
        needs="ranks along",
        gathers="each device ranks its own shard, gathers the results of all shards, and ranks the gathered results",
    )
    fetches_elements: ClassVar[bool] = True

    def adapt_rule(self, instruction: Instruction, rule: ShardingRule) -> ShardingRule:
        """The last dimension of the operand is a reduction, that of the results is not split."""
        last, extent = _last_dim(instruction)
        operand = (*rule.operands[0][:last], (len(rule.factors),))
        result = (*rule.results[0][:last], (len(rule.factors) + 1,))
        factors = (*rule.factors, Factor(extent, "reduction"), Factor(instruction.attributes.k, "need_replication"))
        return ShardingRule(factors, (operand,), (result, result))

    def can_gather(self, instruction: Instruction, factor: int) -> bool:
        return bool(instruction.attributes.k) and _last_dim(instruction)[1] > 0

    def fetches(self, split: Split) -> Fetches:
        """Too much if a part has padding, since no value is certain to rank behind all elements."""
        last, extent = _last_dim(split.instruction)
        return {(0, last): None} if extent % count(_axes(split)) else {}

    def local_attributes(self, split: Split) -> dict[str, Any]:
        return {"k": min(split.instruction.attributes.k, split.operand_dims(0)[-1])}

    def gather(self, frame: Frame, split: Split, values: list[Value]) -> list[Value]:
        """The greatest of the elements that all devices found, and their positions; ties go to the first."""
        numbers, places = values
        dims, attributes = dims_of(places), split.instruction.attributes
        reason = Gathered(split.instruction, self.verbs, split.options.mesh, split.options.rule, split.assignment)
        start = frame.recorder.place(_axes(split), split.operand_dims(0)[-1])
        everyone, where = (
            frame.gather_parts(each, len(dims) - 1, _axes(split), split.instruction, reason)
            for each in (numbers, ops.add(places, spread(start, dims)))
        )
        found = ops.topk(everyone, k=attributes.k, largest=attributes.largest)
        chosen = ops.get_tuple_element(found, index=1)
        rank = len(dims)
        batch = tuple(range(rank - 1))
        at = ops.gather(
            where, ops.reshape(chosen, new_sizes=(*dims_of(chosen), 1)), offset_dims=(),
            collapsed_slice_dims=(rank - 1,), start_index_map=(rank - 1,), operand_batching_dims=batch,
            start_indices_batching_dims=batch, index_vector_dim=rank, slice_sizes=(1,) * rank,
        )  # fmt: skip
        return [ops.get_tuple_element(found, index=0), at]


def _last_dim(instruction: Instruction) -> tuple[int, int]:
    """The number and the extent of the last dimension."""
    dims = instruction.operands[0].shape.dims  # type: ignore[union-attr]
    return len(dims) - 1, dims[-1]


def _axes(split: Split) -> tuple[Axis, ...]:
    return split.axes(0, _last_dim(split.instruction)[0])
