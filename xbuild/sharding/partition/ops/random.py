"""Random numbers: all devices have those of the global program, drawn whole."""

from __future__ import annotations

from .... import ops
from ....core.graph import Instruction
from ...planning.places import groups_along
from ..parts.frame import Frame
from ..parts.layouts import Tree, bytes_of
from ..parts.tables import special
from ..parts.walk import run_whole, settled
from ..reasons import DrawnOnce


@special
def rng_bit_generator(frame: Frame, instruction: Instruction) -> Tree:
    """The state decides the bits, so that every device draws all and keeps its part."""
    return run_whole(frame, instruction)


def drawn(frame: Frame, instruction: Instruction) -> Tree:
    """What the first device draws; the others, whose random state is another one, take it from there."""
    piece = run_whole(frame, instruction, is_settled=False)
    (value,) = piece.versions.values()
    axes = tuple(axis for axis in frame.axes if axis.size > 1)
    if axes:
        groups = groups_along(frame.mesh, axes)
        value = ops.collective_broadcast(value, replica_groups=groups, channel_id=frame.recorder.channel())
        frame.note(value, axes, bytes_of(piece.shape), instruction, DrawnOnce(instruction))
    return settled(frame, frame.piece(value, piece.sharding, piece.shape, instruction), instruction)


for opcode in ("rng", "rng_get_and_update_state"):
    special.enter(opcode, drawn)
