"""A place in a trace: a device and one of its events; from there forward and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

from ..attributes import Array
from ..scheduling.effects import acts
from ..trace import Event, Trace


@define(eq=False)
class Walk:
    """Where somebody stands in a trace."""

    trace: Trace
    device: int = 0
    place: int = 0
    lane: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lane = self.trace.of_device[self.device]

    @property
    def event(self) -> Event | None:
        """The event that stands here; None where the device has none."""
        return self.trace[int(self.lane[self.place])] if len(self.lane) else None

    def by(self, count: int) -> bool:
        """Go so many events on or back, as far as there are any; False where there are none."""
        before = self.place
        self.place = max(0, min(len(self.lane) - 1, self.place + count))
        return self.place != before

    def to(self, wanted: Callable[[Event], Any], way: int = 1) -> bool:
        """Go to the next event on this device that is wanted; stay where there is none."""
        for place in self.places(way):
            if wanted(self.trace[int(self.lane[place])]):
                self.place = place
                return True
        return False

    def places(self, way: int) -> Iterator[int]:
        return iter(range(self.place + way, len(self.lane) if way > 0 else -1, way))

    def on(self, device: int) -> None:
        """Go over to a device, to its last event at the same time or before."""
        time = self.event.time if self.event else 1
        self.device, self.lane = device, self.trace.of_device[device]
        self.place = max(0, int((self.trace.time[self.lane] <= time).sum()) - 1)

    def value_of(self, name: str, device: int) -> Any:
        """The value that an instruction had last, on a device, by now; KeyError where it had none."""
        time = self.event.time if self.event else 0
        events = [each for each in self.trace.where(name, device=device) if each.time <= time]
        if not events:
            raise KeyError(name)
        return self.trace.values.get(events[-1].number)


def communicates(event: Event) -> bool:
    """Whether other devices or the host are met here."""
    return acts(event.instruction)
