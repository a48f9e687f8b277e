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
        """The event that stands here; None where the device has none."""
        return self.trace[int(self.lane[self.place])] if len(self.lane) else None

    def put(self, place: int) -> None:
        """Go to an event of this device by its place in the order of them, or to the nearest that there is."""
        self.place = max(0, min(len(self.lane) - 1, place))
        self.time = self.event.time if self.event else self.time

    def by(self, count: int) -> bool:
        """Go so many events on or back, as far as there are any; False where there are none."""
        before = self.place
        self.put(self.place + count)
        return self.place != before

    def to(self, wanted: Callable[[Event], Any], way: int = 1) -> bool:
        """Go to the next event on this device that is wanted; stay where there is none."""
        for place in self.places(way):
            if wanted(self.trace[int(self.lane[place])]):
                self.put(place)
                return True
        return False

    def places(self, way: int) -> Iterator[int]:
        return iter(range(self.place + way, len(self.lane) if way > 0 else -1, way))

    def on(self, device: int) -> None:
        """Go over to a device, to its last event at the same time or before."""
        self.device, self.lane = device, self.trace.of_device[device]
        self.at(self.time)

    def at(self, time: int) -> None:
        """Go to a time, and to the last event of this device by then."""
        self.time = max(1, min(self.trace.end, time))
        self.place = max(0, int((self.trace.time[self.lane] <= self.time).sum()) - 1)

    def stand(self, number: int) -> None:
        """Go to an event, on whatever device."""
        self.device = int(self.trace.device[number])
        self.lane = self.trace.of_device[self.device]
        self.put(int(self.lane.searchsorted(number)))

    def value_of(self, name: str, device: int) -> Any:
        """The value that an instruction had last, on a device, by now; KeyError where it had none."""
        lane = self.trace.of_device[device]
        spots = [number for number, spot in enumerate(self.trace.spots) if spot.instruction.name == name]
        events = lane[np.isin(self.trace.spot[lane], spots) & (self.trace.time[lane] <= self.time)]
        if not len(events):
            raise KeyError(name)
        return self.trace.values.get(int(events[-1]))


def communicates(event: Event) -> bool:
    """Whether other devices or the host are met here."""
    return communicates_itself(event.instruction)
