"""What all computations of one derivative share: its choices, and what it knows of those that are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Any

from attrs import define, field

from ..core.graph import Computation, Instruction
from .activity import Activity


@define(eq=False)
class Context:
    """The choices of a derivative, and what it has found of called computations.

    `checkpoint` is True, or holds the names of the loops and calls, whose values are computed again on the way back.
    `max_trips` bounds the trips of loops whose number of trips is not known. `channels` gives each channel of the
    program the one on which cotangents go back, `calls` tells at how many places each computation is called.
    """

    activity: Activity = field(factory=Activity)
    checkpoint: bool | Container[str] = False
    max_trips: int | None = None
    channels: dict[int, int] = field(factory=dict)
    calls: Counter[Computation] = field(factory=Counter)
    known: dict[Any, Any] = field(factory=dict, init=False)

    def recomputes(self, instruction: Instruction) -> bool:
        """Whether what a loop or call computes is computed again rather than kept."""
        if isinstance(self.checkpoint, bool):
            return self.checkpoint
        return instruction.name in self.checkpoint


def back_channels(computations: list[Computation]) -> dict[int, int]:
    """For each channel of transfers the number of a new one."""
    used = {
        channel
        for entry in computations
        for each in entry.reachable()
        for i in each.instructions
        if (channel := getattr(i.attributes, "channel_id", None)) is not None
    }
    return {channel: max(used) + channel for channel in used}
