"""Reasons of arrays whose elements stand at other places than in those that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis
from ...sharding import Sharding
from .reason import Move, Reason
from .words import called, listed, name_of, named, told


def _are_lost(had: Sequence[Axis], needed: Sequence[Axis]) -> bool:
    """Whether an axis does not cut a dimension any more."""
    return any(not any(axis.overlaps(each) for each in needed) for axis in had)


def _dims(dims: list[int]) -> str:
    return f"{'dimension' if len(dims) == 1 else 'dimensions'} {listed([*map(str, dims)])}"


@frozen(eq=False, repr=False)
class Elements(Reason):
    """An op is made of elements of an array that is taken otherwise than it is cut. `moved` are the dimensions along
    which elements stand at other places, `made` is the sharding in which the op is made.
    """

    kind: ClassVar[str] = "elements"
    user: Instruction
    moved: tuple[int, ...]
    made: Sharding

    def sentence(self, move: Move) -> str:
        assert move.needed is not None
        assert move.had is not None
        start = f"{called(self.user)} takes {called(move.value)} {told(move.needed)}"
        lost = [dim for dim in self.moved if _are_lost(move.had.dim(dim).axes, move.needed.dim(dim).axes)]
        places = f"its elements stand at other places along {_dims(lost)} of {name_of(self.user)}"
        why = places if lost else f"{name_of(self.user)} is made {told(self.made)}"
        return f"{start}, and {name_of(move.value)} is {told(move.had)}: {why}"


@frozen(eq=False, repr=False)
class HeldElements(Reason):
    """Each device gives the elements that it holds, zeros for the others, and all are added; `dims` are the dimensions
    of the source that are cut, with their axes.
    """

    kind: ClassVar[str] = "held elements"
    user: Instruction
    source: Instruction
    mesh: Mesh
    dims: tuple[tuple[int, tuple[Axis, ...]], ...]

    def sentence(self, move: Move) -> str:
        assert move.needed is not None
        where = listed([f"dimension {dim}, cut over {named(axes, self.mesh)}" for dim, axes in self.dims])
        verb = {"all_reduce": "added here", "reduce_scatter": "added and cut here"}.get(move.opcode, "moved on the way")
        cause = move.story.cause(self.user)
        return (
            f"{called(self.user)} takes elements of {name_of(self.source)} along {where}; each device gives those that "
            f"it holds, and zeros for the others; {verb}, because {name_of(self.user)} is wanted {told(move.needed)}"
            f"{f' ({cause})' if cause else ''}"
        )


@frozen(eq=False, repr=False)
class Totals(Reason):
    """A scan along a cut dimension: each device goes on from the totals of the parts before its own, or after it."""

    kind: ClassVar[str] = "totals"
    user: Instruction
    mesh: Mesh
    axes: tuple[Axis, ...]
    dim: int
    is_backward: bool

    def sentence(self, move: Move) -> str:
        side = "after" if self.is_backward else "before"
        return (
            f"{called(self.user)} scans dimension {self.dim} of {name_of(self.user.operands[0])}, which is cut over "
            f"{named(self.axes, self.mesh)}; each device scans its own part and joins it with the total of the parts "
            f"{side} it: all devices take the totals of all parts"
        )
