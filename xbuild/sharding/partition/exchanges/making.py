"""Views recorded: each device makes its part of what it holds and what others send."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import Shape

from ....core.builder import Value
from ....core.graph import Instruction
from ...planning.record import constant
from ...sharding import Sharding
from ..parts.frame import Frame, Later, Piece
from ..reasons import Elements, HeldElements, Reason, Result, WholeOperand, Wish
from .choosing import Chosen, Way, chosen
from .recorded import Along, exchanged, laid_out
from .views import View


def viewed(frame: Frame, instruction: Instruction, views: list[View], wanted: Sharding | None) -> Piece:
    """An array that is made of others when it is first used, by the view that sends the fewest bytes."""
    shape = instruction.shape
    assert isinstance(shape, Shape)
    ways = [chosen(frame, view, shape, wanted) for view in views]
    best = min(ways, key=lambda each: each.bytes)
    home = evolve(best.way.result, unreduced=()) if wanted is None else wanted

    def made() -> Value:
        return _made(frame, instruction, best, home)

    return Piece(shape, instruction, {}, None, Later(home, best.bytes, made, views[0]))


def _made(frame: Frame, instruction: Instruction, best: Chosen, home: Sharding) -> Value:
    way, shape = best.way, instruction.shape
    assert isinstance(shape, Shape)
    values = [_taken(frame, instruction, way, number) for number in range(len(way.view.bases))]
    value = _moved(frame, instruction, way, values)
    given = evolve(way.result, unreduced=())
    frame.checked(value, given, shape)
    piece = frame.piece(value, given, shape, instruction)
    reason = _why_made(frame, instruction, way, home)
    return frame.brought(value, way.result, home, piece, reason) if way.result != home else value


def _why_made(frame: Frame, instruction: Instruction, way: Way, home: Sharding) -> Reason:
    """Why the array is moved after it is made: as parts of a sum, or in another sharding than is wanted."""
    if not way.summed:
        return Result(instruction)
    dims = tuple((dim, way.base(0).dim(dim).axes) for dim in sorted(way.summed) if way.base(0).dim(dim).axes)
    return HeldElements(instruction, way.view.bases[0].origin, frame.mesh, dims)


def _taken(frame: Frame, instruction: Instruction, way: Way, number: int) -> Value:
    piece = way.view.bases[number]
    moved = tuple(dim for dim in range(len(way.view.lines)) if way.view.moves(dim))
    return frame.part(piece, way.base(number), Elements(instruction, moved, evolve(way.result, unreduced=())))


def _moved(frame: Frame, instruction: Instruction, way: Way, values: list[Value]) -> Value:
    view = way.view
    for dim in way.order():
        bases = [each.origin for each in view.bases]
        pairs = [(values, bases)] if dim == view.joint else [([v], [b]) for v, b in zip(values, bases, strict=False)]
        values = [_along(frame, instruction, way, dim, *each) for each in pairs]
    (value,) = values
    return value


def _along(
    frame: Frame, instruction: Instruction, way: Way, dim: int, values: list[Value], bases: list[Instruction]
) -> Value:
    along = Along(frame, way.base(0).dim(dim).axes, dim)
    wanted, filler = way.exchange(dim), _filler(frame, instruction, way.view, values[0])
    if wanted is None:
        return laid_out(along, values, way.view.lines[dim], filler)
    return exchanged(along, values, wanted, Wish(instruction, tuple(bases), wanted), filler)


def _filler(frame: Frame, instruction: Instruction, view: View, like: Any) -> Value:
    if view.filler is None:
        return constant(frame.builder, np.zeros((), like.shape.dtype.dtype))
    return frame.whole(view.filler, WholeOperand(instruction))
