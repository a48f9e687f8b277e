"""The current place in a trace (a device and one of its events), and moves from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import define, field

from ..core.attributes import Array
from ..properties.effects import communicates_itself
from ..traces import Event, Trace


@define(eq=False)
class Walk:
    """A place in a trace: an event of a device, at the event's time or while the device waits after it."""

    trace: Trace
    device: int = 0
    place: int = 0
    time: int = 1
    lane: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lane = self.trace.of_device[self.device]

    @property
    def event(self) -> Event | None:
        """The event at this place; None where the device has no events."""
        return self.trace[int(self.lane[self.place])] if len(self.lane) else None

    def put(self, place: int) -> None:
        """Go to an event of this device by its place on the lane, or to the nearest place that exists."""
        self.place = max(0, min(len(self.lane) - 1, place))
        self.time = self.event.time if self.event else self.time

    def by(self, count: int) -> bool:
        """Go `count` events on or back, or as many as there are; False where the place stays the same."""
        before = self.place
        self.put(self.place + count)
        return self.place != before

    def to(self, wanted: Callable[[Event], Any], way: int = 1) -> bool:
        """Go to the next event on this device for which `wanted` is true; False where there is none."""
        for place in self.places(way):
            if wanted(self.trace[int(self.lane[place])]):
                self.put(place)
                return True
        return False

    def places(self, way: int) -> Iterator[int]:
        return iter(range(self.place + way, len(self.lane) if way > 0 else -1, way))

    def on(self, device: int) -> None:
        """Go to a device, to its last event at the same time or before."""
        self.device, self.lane = device, self.trace.of_device[device]
        self.at(self.time)

    def at(self, time: int) -> None:
        """Go to a time, and to the last event of this device by then."""
        self.time = max(1, min(self.trace.end, time))
        self.place = max(0, int((self.trace.time[self.lane] <= self.time).sum()) - 1)

    def stand(self, number: int) -> None:
        """Go to an event of any device."""
        self.device = int(self.trace.device[number])
        self.lane = self.trace.of_device[self.device]
        self.put(int(self.lane.searchsorted(number)))

    def value_of(self, name: str, device: int) -> Any:
        """The last value of an instruction on a device up to the current time; KeyError where there is none."""
        lane = self.trace.of_device[device]
        spots = [number for number, spot in enumerate(self.trace.spots) if spot.instruction.name == name]
        events = lane[np.isin(self.trace.spot[lane], spots) & (self.trace.time[lane] <= self.time)]
        if not len(events):
            raise KeyError(name)
        return self.trace.values.get(int(events[-1]))


def communicates(event: Event) -> bool:
    """Whether the instruction of an event communicates with other devices or the host."""
    return communicates_itself(event.instruction)
