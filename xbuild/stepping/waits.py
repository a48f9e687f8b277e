"""State of a device at a logical time of a trace: its last event, and the devices that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import frozen

from ..traces import Meeting, Trace, Transfer
from ..traces.partners import bringing


@frozen
class State:
    """The state of a device at a time: the number of its last event, None before the first; `waits` tells its wait."""

    device: int
    number: int | None
    waits: str = ""
    ended: bool = False


@frozen(eq=False, slots=False)
class Waits:
    """The states of the devices of a trace."""

    trace: Trace

    def state(self, device: int, time: int) -> State:
        lane = self.trace.of_device[device]
        place = int(self.trace.time[lane].searchsorted(time, side="right"))
        number = int(lane[place - 1]) if place else None
        if place < len(lane):
            coming = int(lane[place])
            is_waiting = int(self.trace.since[coming]) <= time
            return State(device, number, self._for(coming, time) if is_waiting else "")
        told = self._stopped.get(device)
        if told is None or told["ended"]:
            return State(device, number, ended=True)
        for_whom = f", waits for {told['waits_for']}" if told["waits_for"] else ""
        return State(device, number, f"stuck at {told['stands_at']}{for_whom}" if told["stands_at"] else "not begun")

    def _for(self, number: int, time: int) -> str:
        """The text of the wait of the next event of a device."""
        name, until = self.trace[number].instruction.name, int(self.trace.time[number])
        return f"waits in {name}{self._whom(number, time)}, until step {until}"

    def _whom(self, number: int, time: int) -> str:
        meeting, transfer = self._meetings.get(number), self._transfers.get(number)
        if transfer is not None:
            does = "send" if number == transfer.done else "post its recv"
            return f" for device {transfer.source if number == transfer.done else transfer.target} to {does}"
        if meeting is None:
            return ""
        starts = {int(self.trace.device[event]): bringing(self.trace, event) for event in meeting.events}
        missing = [str(device) for device, event in sorted(starts.items()) if int(self.trace.since[event]) > time]
        return f" for device{'s' * (len(missing) > 1)} {', '.join(missing)}" if missing else ""

    @cached_property
    def _meetings(self) -> Mapping[int, Meeting]:
        return {event: meeting for meeting in self.trace.meetings for event in meeting.events}

    @cached_property
    def _transfers(self) -> Mapping[int, Transfer]:
        return {event: each for each in self.trace.transfers for event in (each.send, each.done)}

    @cached_property
    def _stopped(self) -> Mapping[int, Any]:
        return {told["device"]: told for told in (self.trace.stop or {}).get("devices", ())}
