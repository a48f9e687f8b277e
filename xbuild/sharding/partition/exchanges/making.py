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
from ..parts.by_factors import told
from ..parts.frame import Frame, Later, Piece
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
    values = [_taken(frame, instruction, each, way.base(number)) for number, each in enumerate(way.view.bases)]
    value = _moved(frame, instruction, way, values)
    given = evolve(way.result, unreduced=())
    frame.checked(value, given, shape)
    piece = frame.piece(value, given, shape, instruction)
    reason = f"{instruction.name} is wanted {told(home)}"
    return frame.brought(value, way.result, home, piece, reason) if way.result != home else value


def _taken(frame: Frame, instruction: Instruction, piece: Piece, sharding: Sharding) -> Value:
    return frame.part(piece, sharding, f"{instruction.name} takes {piece.origin.name} {told(sharding)}")


def _moved(frame: Frame, instruction: Instruction, way: Way, values: list[Value]) -> Value:
    view = way.view
    for dim in way.order():
        groups = [values] if dim == view.joint else [[each] for each in values]
        values = [_along(frame, instruction, way, dim, group) for group in groups]
    (value,) = values
    return value


def _along(frame: Frame, instruction: Instruction, way: Way, dim: int, values: list[Value]) -> Value:
    along = Along(frame, way.base(0).dim(dim).axes, dim)
    wanted = way.exchange(dim)
    if wanted is None:
        return laid_out(along, values, way.view.lines[dim], _filler(frame, way.view, values[0]))
    return exchanged(along, values, wanted, instruction, _filler(frame, way.view, values[0]))


def _filler(frame: Frame, view: View, like: Any) -> Value:
    if view.filler is None:
        return constant(frame.builder, np.zeros((), like.shape.dtype.dtype))
    return frame.whole(view.filler, "")
