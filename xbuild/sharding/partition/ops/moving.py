"""Ops that give elements other places: slices, pads, reversals, concatenations, slices from known places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shape_inference import Shape

from ....core.builder import Value
from ....core.graph import Instruction
from ...planning.record import constant, spread
from ...sharding import Sharding
from ..exchanges.making import viewed
from ..exchanges.views import Bounds, View, concatenated, padded, reversed_, sliced, view_of, whole
from ..parts.frame import Frame, Piece
from ..parts.layouts import Tree, local_dims, stated, whole_on
from ..parts.tables import special
from ..parts.walk import in_general, is_cuttable, settled


def _moved(frame: Frame, instruction: Instruction, views: Sequence[View | None]) -> Tree:
    """The array by a view, where a dimension is cut whose elements move; else by the op itself on parts.

    The first view that is given is described by what operands are made of, the last by the operands.
    """
    several = [each for each in views if each is not None]
    if not instruction.shape.size:  # type: ignore[union-attr]
        return _empty(frame, instruction)
    if len(several[0].bases) == 1 and not any(map(several[0].moves, range(len(several[0].lines)))):
        return settled(frame, several[0].bases[0], instruction)
    wanted = stated(instruction, frame.mesh)
    if not _is_moved_and_cut(several[-1], wanted):
        return in_general(frame, instruction)
    return viewed(frame, instruction, several, wanted)


def _empty(frame: Frame, instruction: Instruction) -> Tree:
    """An array without elements is made where it is used."""
    shape = instruction.shape
    assert isinstance(shape, Shape)

    def made(sharding: Sharding) -> Value:
        return spread(constant(frame.builder, np.zeros((), shape.dtype.dtype)), local_dims(sharding, shape.dims))

    wanted = stated(instruction, frame.mesh)
    home = whole_on(frame.mesh, shape.rank) if wanted is None or wanted.unreduced else wanted
    return Piece(shape, instruction, {home: made(home)}, made)


def _is_moved_and_cut(view: View, wanted: Sharding | None) -> bool:
    several = [sharding for base in view.bases if base.maker is None for sharding in base.shardings]
    several += [] if wanted is None else [wanted]
    return any(view.moves(dim) and sharding.dim(dim).axes for sharding in several for dim in range(len(view.lines)))


def _is_viewed(frame: Frame, instruction: Instruction) -> bool:
    """Whether all arrays have known extents, and elements to be moved."""
    return is_cuttable(frame, instruction) and bool(instruction.operands[0].shape.size)  # type: ignore[union-attr]


def _bounds(instruction: Instruction) -> Bounds:
    attributes = instruction.attributes
    strides = attributes.strides or (1,) * len(attributes.start_indices)
    return list(zip(attributes.start_indices, attributes.limit_indices, strides, strict=True))


@special
def slice(frame: Frame, instruction: Instruction) -> Tree:
    if not _is_viewed(frame, instruction):
        return in_general(frame, instruction)
    piece = frame.values[instruction.operands[0]]
    return _moved(frame, instruction, [sliced(each, _bounds(instruction)) for each in (view_of(piece), whole(piece))])


@special
def reverse(frame: Frame, instruction: Instruction) -> Tree:
    if not _is_viewed(frame, instruction):
        return in_general(frame, instruction)
    piece, dims = frame.values[instruction.operands[0]], instruction.attributes.dimensions
    return _moved(frame, instruction, [reversed_(each, dims) for each in (view_of(piece), whole(piece))])


@special
def pad(frame: Frame, instruction: Instruction) -> Tree:
    if not _is_viewed(frame, instruction):
        return in_general(frame, instruction)
    piece, filler = (frame.values[each] for each in instruction.operands)
    around = [(each.low, each.high, each.interior) for each in instruction.attributes.padding]
    return _moved(frame, instruction, [padded(each, filler, around) for each in (view_of(piece), whole(piece))])


@special
def concatenate(frame: Frame, instruction: Instruction) -> Tree:
    dim = instruction.attributes.dimension
    if not is_cuttable(frame, instruction):
        return in_general(frame, instruction)
    if not instruction.shape.size:  # type: ignore[union-attr]
        return _empty(frame, instruction)
    pieces = [frame.values[each] for each in instruction.operands if each.shape.size]  # type: ignore[union-attr]
    return _moved(frame, instruction, [concatenated(pieces, dim, of) for of in (view_of, whole)])


@special
def dynamic_slice(frame: Frame, instruction: Instruction) -> Tree:
    """A slice where all starts are constants."""
    starts = _known_starts(frame, instruction, 1)
    if starts is None or not _is_viewed(frame, instruction):
        return in_general(frame, instruction)
    operand, shape = instruction.operands[0].shape, instruction.shape
    assert isinstance(operand, Shape)
    assert isinstance(shape, Shape)
    places = [min(max(start, 0), n - size) for start, n, size in zip(starts, operand.dims, shape.dims, strict=True)]
    bounds = [(start, start + size, 1) for start, size in zip(places, shape.dims, strict=True)]
    piece = frame.values[instruction.operands[0]]
    return _moved(frame, instruction, [sliced(each, bounds) for each in (view_of(piece), whole(piece))])


def _known_starts(frame: Frame, instruction: Instruction, first: int) -> list[int] | None:
    """The numbers of constants from an operand on; None where one is not known."""
    pieces = [frame.values[each] for each in instruction.operands[first:]]
    if not all(isinstance(each, Piece) and each.origin.opcode == "constant" for each in pieces):
        return None
    if any(each.shape.rank for each in pieces):
        return None
    return [int(each.origin.attributes.literal) for each in pieces]
