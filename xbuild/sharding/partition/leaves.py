"""Decides how constants, iotas, device ids and random numbers are split, which depend on no operand.

Sections:

    Constants, iotas and device ids
    Random numbers, which are drawn once
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape
from shape_inference.types import s32

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ..resharding import pad_extent
from ..resharding_ops import constant, dims_of, resize, slice_own_part, spread
from ..sharding import Sharding, count, groups_along
from .frame import (
    Frame,
    Piece,
    Tree,
    count_array_bytes,
    local_dims,
    read_shardings,
    replicated_sharding,
    reshard_to_annotation,
    run_replicated,
)
from .handler import Handler, handles
from .reasons import DRAWN_ONCE, Because

# ----------------------------------------------------------------------------
# Constants, iotas and device ids

Maker: TypeAlias = "Callable[[Sharding], Value]"


def make_when_used(frame: Frame, instruction: Instruction, make: Maker | None) -> Piece:
    """A piece whose parts are made when they are used; without a maker, they are sliced from a replicated value."""
    shape = instruction.shape
    assert isinstance(shape, Shape)
    replicated = replicated_sharding(frame.mesh, shape.rank)
    if make is None:
        value = frame.record(instruction.opcode, (), None, dict(instruction.attribute_values()), instruction.name)
        return Piece(shape, instruction, {replicated: value}, _make_slicer(frame, value, shape))
    stated = read_shardings(instruction, frame.mesh)
    home = replicated if stated is None or stated.unreduced else stated
    return Piece(shape, instruction, {home: make(home)}, make)


def _make_slicer(frame: Frame, value: Value, shape: Shape) -> Maker:
    """A maker that slices parts from a replicated value."""

    def make(sharding: Sharding) -> Value:
        part = value
        for number, dim in enumerate(sharding.dims):
            if dim.axes:
                size = pad_extent(shape.dims[number], count(dim.axes))
                part = slice_own_part(frame.recorder, resize(part, number, size), number, dim.axes)
        return part

    return make


@handles("constant")
class Constant(Handler):
    """A constant whose elements are equal is made with the extents that are needed; any other is sliced."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        shape = instruction.shape
        if not isinstance(shape, Shape):
            return run_replicated(frame, instruction)
        literal = np.asarray(instruction.attributes.literal)
        make = _make_filler(frame, literal) if shape.rank and _has_equal_elements(literal) else None
        return make_when_used(frame, instruction, make)


def _has_equal_elements(literal: Any) -> bool:
    if literal.size == 0:
        return False
    flat = np.ascontiguousarray(literal).reshape(-1)
    return bool((flat.view(np.uint8).reshape(flat.size, -1) == flat[:1].view(np.uint8)).all())


def _make_filler(frame: Frame, literal: Any) -> Maker:
    number = literal.reshape(-1)[0]

    def make(sharding: Sharding) -> Value:
        return spread(constant(frame.builder, number), local_dims(sharding, literal.shape))

    return make


@handles("iota")
class Iota(Handler):
    """The iota of a part begins at the part's position."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        is_counting = instruction.attributes.shape.dtype.name in _COUNTING
        return make_when_used(frame, instruction, _make_counter(frame, instruction) if is_counting else None)


_COUNTING = ("s32", "u32", "s64", "u64", "f32", "f64")
"""Element types for which a part of an iota is computed in s32 and converted."""


def _make_counter(frame: Frame, instruction: Instruction) -> Maker:
    shape, dim = instruction.attributes.shape, instruction.attributes.iota_dimension

    def make(sharding: Sharding) -> Value:
        local = local_dims(sharding, shape.dims)
        axes = sharding.dim(dim).axes
        if not axes:
            return ops.iota(frame.builder, shape=shape.dtype[local], iota_dimension=dim)
        places = ops.iota(frame.builder, shape=s32[local], iota_dimension=dim)
        found = ops.add(places, spread(frame.recorder.place(axes, local[dim]), dims_of(places)))
        return found if shape.dtype is s32 else ops.convert(found, new_element_type=shape.dtype)

    return make


@handles("partition_id")
class PartitionId(Handler):
    """The global program has one device, number 0; in a manual region each device has its own number."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        if frame.manual:
            return run_replicated(frame, instruction)
        value = constant(frame.builder, np.uint32(0))
        return frame.make_piece(value, replicated_sharding(frame.mesh, 0), instruction.shape, instruction)


# ----------------------------------------------------------------------------
# Random numbers, which are drawn once


@handles("rng_bit_generator")
class RngBitGenerator(Handler):
    """The state determines the bits, so every device draws all of them and keeps its part."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        return run_replicated(frame, instruction)


@handles("rng", "rng_get_and_update_state")
class Rng(Handler):
    """The first device draws, and the others, whose random state differs, take its numbers."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        piece = run_replicated(frame, instruction, is_final=False)
        (value,) = piece.versions.values()
        axes = tuple(axis for axis in frame.axes if axis.size > 1)
        if axes:
            groups = groups_along(frame.mesh, axes)
            value = ops.collective_broadcast(value, replica_groups=groups, channel_id=frame.recorder.channel())
            frame.note_collective(
                value, axes, count_array_bytes(piece.shape), instruction, Because(DRAWN_ONCE, instruction)
            )
        return reshard_to_annotation(
            frame, frame.make_piece(value, piece.sharding, piece.shape, instruction), instruction
        )
