"""The position of a device in a run: the instruction, the calls that lead to it, and the trip of each loop."""

from __future__ import annotations

from attrs import frozen

from xbuild.core.graph import Instruction
from xbuild.properties.effects import branch_name

from .lines import Path, Place


@frozen
class Standing:
    """The position of a device: the call path of its current instruction, and the trip number of each loop."""

    path: Path
    trips: tuple[int | None, ...]

    @property
    def instruction(self) -> Instruction:
        return self.path[-1].instruction

    def __str__(self) -> str:
        """The position as text, for example `all-reduce.2 in while.1, trip 3`."""
        outer = [_step(place, trip) for place, trip in zip(self.path, self.trips, strict=True)]
        inner = [self.instruction.name] if self.path[-1].trip is None else []
        around = outer if self.path[-1].trip is not None else outer[:-1]
        return " in ".join([*inner, *reversed(around)])


def _step(place: Place, trip: int | None) -> str:
    counted = "" if trip is None else f", trip {trip}"
    branch = "" if place.branch is None else f", {branch_name(place.instruction, place.branch)}"
    return f"{place.instruction.name}{branch}{counted}"
