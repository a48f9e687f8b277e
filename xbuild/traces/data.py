"""The trace: its columns, and events, meetings and transfers as views of their rows."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from ..core.attributes import Array
from ..core.graph import Instruction, Module, ModuleGroup
from ..core.hooks import framed
from .across import Across
from .trips import Loop, loops_around, trip


@frozen
class Spot:
    """An instruction with its path in a program: the calls that lead to it, outermost first."""

    instruction: Instruction
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " in ".join([self.instruction.name, *reversed(self.path)])


@frozen
class Event:
    """The execution of an instruction by a device.

    `time` is logical: one more than the latest time of the events that had to come before, on this device and on the
    devices that it waited for. `since` is the time from which the device waited. `count` says how often the device had
    been at this spot before.
    """

    number: int
    device: int
    spot: Spot
    count: int
    time: int
    since: int

    @property
    def instruction(self) -> Instruction:
        return self.spot.instruction

    @property
    def waited(self) -> int:
        return self.time - self.since


@frozen
class Meeting:
    """A collective of a group: the events at which its members got the result."""

    instruction: Instruction
    group: tuple[int, ...]
    time: int
    events: tuple[int, ...]


@frozen
class Transfer:
    """A value that went from one device to another: the events of the send and of the recv-done."""

    channel: int
    source: int
    target: int
    send: int
    done: int


@frozen(eq=False, repr=False, slots=False)
class Trace:
    """A run as columns with a row for each event, in the order of execution, and the values that were kept, by event.

    A value is an array, a scalar, a tuple of these, or a Summary of a large array. `origins` have, if asked, a table
    for each operand of an event, with a row for each element of the result: the numbers of the operand's elements that
    it was computed from, and -1 in unused entries; `across` has such tables for values from other devices. `findings`
    are those of a strict run, each with its `event`. `left_out` says what was not kept. `stop` is the report of a run
    that stopped before its end, `verdict` that of the check before the run.

    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    >>> found = xb.trace(total, [[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> [(event.device, event.instruction.name, event.time) for event in found]
    [(0, 'parameter.1', 1), (1, 'parameter.1', 1), (0, 'all-reduce.5', 2), (1, 'all-reduce.5', 2)]
    >>> found.value(3)
    array([4., 6.], dtype=float32)
    """

    program: Module | ModuleGroup
    spots: Sequence[Spot]
    device: Array
    spot: Array
    count: Array
    time: Array
    since: Array
    meetings: Sequence[Meeting] = ()
    transfers: Sequence[Transfer] = ()
    values: Mapping[int, Any] = field(factory=dict)
    origins: Mapping[int, Sequence[Array | None]] = field(factory=dict)
    across: Mapping[int, Sequence[Across]] = field(factory=dict)
    findings: Sequence[Mapping[str, Any]] = ()
    left_out: str = ""
    verdict: Mapping[str, Any] | None = None
    stop: Mapping[str, Any] | None = None
    results: Sequence[Any] | None = None

    def __repr__(self) -> str:
        return f"Trace({len(self)} events on {self.num_devices} devices, logical time 1..{self.end})"

    def _repr_html_(self) -> str:
        """The step page in an iframe, for notebooks."""
        return framed(self)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the trace to a folder, replacing a trace in it; TraceError where the folder holds other files."""
        from .disk import save

        return save(self, folder)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Trace:
        """Read a trace; its values are read on demand. TraceError where the folder holds no trace.

        The trace of an interrupted run is read as far as it was written.
        """
        from .reading import load

        return load(folder)

    @property
    def num_devices(self) -> int:
        return self.program.num_devices

    @property
    def end(self) -> int:
        """The last logical time."""
        return int(self.time.max()) if len(self) else 0

    def __len__(self) -> int:
        return len(self.device)

    def __getitem__(self, number: int) -> Event:
        row = (int(column[number]) for column in (self.device, self.count, self.time, self.since))
        device, count, time, since = row
        return Event(number % len(self), device, self.spots[int(self.spot[number])], count, time, since)

    def __iter__(self) -> Iterator[Event]:
        return map(self.__getitem__, range(len(self)))

    def value(self, number: int) -> Any:
        """The value of an event; KeyError where it was not kept."""
        return self.values[number]

    def where(
        self, name: str | None = None, device: int | None = None, time: int | None = None, count: int | None = None
    ) -> Iterator[Event]:
        """The events of an instruction, on a device, at a logical time, at its count-th turn."""
        chosen = np.ones(len(self), bool)
        if name is not None:
            chosen &= np.isin(self.spot, [n for n, spot in enumerate(self.spots) if spot.instruction.name == name])
        for column, wanted in ((self.device, device), (self.time, time), (self.count, count)):
            if wanted is not None:
                chosen &= column == wanted
        return map(self.__getitem__, np.flatnonzero(chosen).tolist())

    def operands(self, number: int) -> list[int | None]:
        """The events that gave the operands of an event; None where an operand has no event."""
        spot, device = self.spots[int(self.spot[number])], int(self.device[number])
        return [self.last(device, spot.path, operand, number) for operand in spot.instruction.operands]

    def last(self, device: int, path: tuple[str, ...], instruction: Instruction, before: int) -> int | None:
        """The last event of an instruction on a device before an event; None where there is none."""
        events = self._events.get((device, self._spot_of.get((path, instruction), -1)), [])
        place = bisect_left(events, before)
        return events[place - 1] if place else None

    def trips(self, number: int) -> list[tuple[str, int]]:
        """The loops that an event is in, outermost first, each with the number of its trip, from 1."""
        device = int(self.device[number])
        of_spot = [
            (loop, self._events.get((device, loop.condition), []), self._events.get((device, loop.itself), []))
            for loop in self.loops[int(self.spot[number])]
        ]
        return [(loop.name, trip(conditions, ends, number)) for loop, conditions, ends in of_spot]

    def standing(self, number: int) -> str:
        """The place of an event as text, such as `add.3 in while.1, trip 2`."""
        spot, trips = self.spots[int(self.spot[number])], dict(self.trips(number))
        around = (f"{name}, trip {trips[name]}" if name in trips else name for name in reversed(spot.path))
        return " in ".join([spot.instruction.name, *around])

    @cached_property
    def loops(self) -> list[tuple[Loop, ...]]:
        """For each spot the loops around it."""
        return loops_around(self.spots, self.program)

    @cached_property
    def _spot_of(self) -> dict[tuple[tuple[str, ...], Instruction], int]:
        return {(spot.path, spot.instruction): number for number, spot in enumerate(self.spots)}

    @cached_property
    def _events(self) -> dict[tuple[int, int], list[int]]:
        """The events of each device at each spot, in order."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, site in enumerate(zip(self.device.tolist(), self.spot.tolist(), strict=True)):
            found.setdefault(site, []).append(number)
        return found

    @cached_property
    def of_device(self) -> Mapping[int, Array]:
        """The numbers of the events of each device, in order."""
        return {device: np.flatnonzero(self.device == device) for device in range(self.num_devices)}
