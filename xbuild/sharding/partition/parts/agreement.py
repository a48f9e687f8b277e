"""Numbers that decide loops and branches, made one on all devices where nothing else says that they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import Shape

from .... import ops
from ....checking import check
from ....core.builder import Value
from ....core.graph import Module
from ....properties.effects import communicates_itself
from ...planning.record import combiner, constant, zero
from ..reasons import AllAgree, Reason
from .frame import Frame, Piece
from .layouts import bytes_of, whole_on

NOTHING, PARAMETERS, EVERY_DECISION = range(3)
"""What is made one on all devices: nothing; parameters that are numbers; each number that decides."""


def agreed(frame: Frame, value: Value, piece: Piece, reason: Reason) -> Value:
    """A number of the first device, on all devices."""
    axes = frame.axes
    if not axes:
        return value
    is_first = ops.compare(frame.recorder.place(axes), constant(frame.builder, np.int32(0)), direction="EQ")
    first = ops.select(is_first, value, zero(value))
    found = ops.all_reduce([first], to_apply=combiner(value), **frame.recorder.global_groups(axes))
    assert isinstance(piece.shape, Shape)
    frame.note(found, axes, bytes_of(piece.shape), piece.origin, reason)
    return found


def is_undecided(module: Module) -> bool:
    """Whether the check leaves it to data if devices meet inside of loops and branches."""
    inside = [each for computation in module.computations if computation is not module.entry
              for each in computation.instructions]  # fmt: skip
    return any(map(communicates_itself, inside)) and check(module).kind != "ok"


def agreeing(frame: Frame, tree: Any) -> Any:
    """The pieces of a parameter, numbers among them the same on all devices."""
    if isinstance(tree, tuple):
        return tuple(agreeing(frame, each) for each in tree)
    if not isinstance(tree.shape, Shape) or tree.shape.rank or frame.shared.agreement < PARAMETERS:
        return tree
    reason = AllAgree(tree.origin)
    value = agreed(frame, frame.whole(tree, reason), tree, reason)
    return frame.piece(value, whole_on(frame.mesh, 0), tree.shape, tree.origin)
