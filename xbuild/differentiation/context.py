"""What all computations of one derivative share: its choices, and what it knows of those that are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from attrs import Factory, define, field

from ..core.graph import Computation, Instruction
from ..variance.region import Region
from .activity import Activity
from .rules import vjp


@define(eq=False)
class Channels:
    """New numbers of channels, the same for the same uses in all programs of a group."""

    last: int = 0
    _known: dict[Any, int] = field(factory=dict, init=False)

    @staticmethod
    def beyond(entries: Iterable[Computation]) -> Channels:
        """Numbers that no channel of these programs has."""
        found = [getattr(i.attributes, "channel_id", None) for each in reached(entries) for i in each.instructions]
        return Channels(max((number for number in found if number is not None), default=0))

    def of(self, use: Any) -> int:
        """The number for a use."""
        if use not in self._known:
            self.last += 1
            self._known[use] = self.last
        return self._known[use]


def reached(entries: Iterable[Computation]) -> list[Computation]:
    """All computations of some programs, each once."""
    return list(dict.fromkeys(each for entry in entries for each in entry.reachable()))


@define(eq=False)
class Context:
    """The choices of a derivative, and what it has found of called computations.

    `checkpoint` is True, or holds the names of the loops and calls, whose values are computed again on the way back.
    `max_trips` bounds the trips of loops whose number of trips is not known. `channels` gives each channel of the
    program others for the way back, `calls` tells at how many places each computation is called,
    `is_group` whether each device has a program of its own. `rules` are those of `vjp`, or of another reading. With a
    `region` collectives are transposed by the types that values have on its mesh, else for a loss that is the sum of
    those of all devices.
    """

    activity: Activity = field(factory=Activity)
    checkpoint: bool | Container[str] = False
    max_trips: int | None = None
    channels: Channels = Factory(lambda: Channels())
    num_replicas: int | None = None
    num_partitions: int | None = None
    is_group: bool = False
    region: Region | None = None
    rules: Mapping[str, Callable[..., Any]] = Factory(lambda: vjp)
    calls: Counter[Computation] = field(factory=Counter)
    known: dict[Any, Any] = field(factory=dict, init=False)
    _uses: dict[int, int] = field(factory=dict, init=False)

    def recomputes(self, instruction: Instruction) -> bool:
        """Whether what a loop or call computes is computed again rather than kept."""
        if isinstance(self.checkpoint, bool):
            return self.checkpoint
        return instruction.name in self.checkpoint

    def back_channel(self, channel: int) -> int:
        """The channel on which the cotangents of a transfer go back."""
        return self.channels.of(channel)

    def channel(self, channel: int | None) -> int | None:
        """A channel for a collective on the way back, where the one on the way forward has one."""
        if channel is None or channel <= 0:
            return channel
        uses = self._uses[channel] = self._uses.get(channel, -1) + 1
        return self.channels.of((channel, uses))
