"""The trace: its columns, with events, meetings, transfers and trips of loops as views of their rows."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from ..core.attributes import Array
from ..core.graph import Instruction, Module, ModuleGroup
from ..core.hooks import framed
from ..properties.effects import LOOPS

# ----------------------------------------------------------------------------
# The events on other devices that gave the operands of a collective, or the value of a recv-done.

_LATER = ("_done", "_update")


def bringing(trace: Trace, number: int) -> int:
    """The event at which a device gave its operands to a collective: this event, or the start that a done completes."""
    event: int | None = number
    while event is not None and trace.spots[int(trace.spot[event])].instruction.opcode.endswith(_LATER):
        number, event = event, next(iter(trace.operands(event)), None)
    return number if event is None else event


def remote_operands(trace: Trace) -> Mapping[int, Sequence[int]]:
    """For each event that received data from other devices, the events of the operands there."""
    found: dict[int, Sequence[int]] = {}
    for meeting in trace.meetings:
        starts = (bringing(trace, event) for event in meeting.events)
        brought = [event for start in starts for event in trace.operands(start) if event is not None]
        found |= dict.fromkeys(meeting.events, brought)
    for transfer in trace.transfers:
        found[transfer.done] = [event for event in trace.operands(transfer.send)[:1] if event is not None]
    return found


# ----------------------------------------------------------------------------
# Provenance across devices: for each element of a received value the device, operand and element it came from.


@frozen(eq=False)
class Across:
    """Three tables of one shape, with a row for each element of a result, or of a part of it, and its source elements.

    `part` is the number of the part where the result is a tuple, else None. `device` is -1 where an entry is unused.
    """

    part: int | None
    device: Array
    operand: Array
    element: Array


# ----------------------------------------------------------------------------
# Loops and trip numbers of events: a trip of a while begins with its condition, a trip of a scan with its body.


@frozen
class TracedLoop:
    """A loop around a spot: its name, the spot where trips begin, and its own spot, each -1 if never executed."""

    name: str
    condition: int
    itself: int


def loops_around(spots: Sequence[Spot], program: Module | ModuleGroup) -> list[tuple[TracedLoop, ...]]:
    """For each spot the loops that it stands in, outermost first."""
    known = {(spot.path, spot.instruction): number for number, spot in enumerate(spots)}
    loops, owner = _loops(program)
    found: dict[tuple[int, tuple[str, ...]], tuple[TracedLoop, ...]] = {}
    places = [(owner.get(spot.instruction, -1), spot.path) for spot in spots]
    for module, path in {*places}:
        ends = ((path[:n], label) for n, label in enumerate(path))
        pairs = ((before, each) for before, label in ends for each in loops.get((module, label), ()))
        around = (_loop(known, before, each) for before, each in pairs)
        found[module, path] = tuple(loop for loop in around if loop.condition >= 0)
    return [found[place] for place in places]


def _loop(
    known: dict[tuple[tuple[str, ...], Instruction], int], before: tuple[str, ...], loop: Instruction
) -> TracedLoop:
    inside = (*before, loop.name)
    seen = [known[inside, each] for each in loop.called[0].instructions if (inside, each) in known]
    return TracedLoop(loop.name, min(seen, default=-1), known.get((before, loop), -1))


def _loops(program: Module | ModuleGroup) -> tuple[dict[tuple[int, str], list[Instruction]], dict[Instruction, int]]:
    """The loops of each module by name, and the number of the module of each instruction."""
    modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
    found: dict[tuple[int, str], list[Instruction]] = {}
    owner: dict[Instruction, int] = {}
    for number, module in enumerate(modules):
        for each in (i for computation in module.computations for i in computation.instructions):
            owner[each] = number
            if each.opcode in LOOPS:
                found.setdefault((number, each.name), []).append(each)
    return found, owner


def trip(conditions: Sequence[int], ends: Sequence[int], number: int) -> int:
    """The trip of an event, from 1, given the events of its device at which the condition began and the loop ended."""
    ended = bisect_left(ends, number)
    before = bisect_left(conditions, ends[ended - 1]) if ended else 0
    return max(1, bisect_right(conditions, number) - before)


# ----------------------------------------------------------------------------
# The trace: its columns, and events, meetings and transfers as views of their rows.


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
class TracedMeeting:
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
    """A recorded run: a table with a row for each event, in the order of execution, and the values that were kept.

    A value is an array, a scalar, a tuple of these, or a Summary of a large array. With `origins=True`, `origins` has a
    table for each operand of an event, with a row for each element of the result. The row contains the numbers of the
    operand elements from which the element was computed, and -1 in unused entries. `across` has such tables for values
    from other devices. `findings` are the findings of a strict run, each with its `event`. `left_out` says what was not
    kept. `stop` is the report of a run that stopped before it completed. `verdict` is the verdict of the check before
    the run.

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
    meetings: Sequence[TracedMeeting] = ()
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
        """Write the trace to a folder, replacing any trace in it.

        Raises TraceError if the folder contains other files.
        """
        from .disk import save

        return save(self, folder)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Trace:
        """Read a trace; its values are read on demand. Raises TraceError if the folder contains no trace.

        The trace of an interrupted run is read up to the last event that was written.
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
        """Return the value of an event. Raises KeyError if the value was not kept."""
        return self.values[number]

    def where(
        self, name: str | None = None, device: int | None = None, time: int | None = None, count: int | None = None
    ) -> Iterator[Event]:
        """Return the events that match all given conditions.

        The conditions are instruction name, device, logical time, and execution number `count`.
        """
        chosen = np.ones(len(self), bool)
        if name is not None:
            chosen &= np.isin(self.spot, [n for n, spot in enumerate(self.spots) if spot.instruction.name == name])
        for column, wanted in ((self.device, device), (self.time, time), (self.count, count)):
            if wanted is not None:
                chosen &= column == wanted
        return map(self.__getitem__, np.flatnonzero(chosen).tolist())

    def operands(self, number: int) -> list[int | None]:
        """Return the events that computed the operands of an event, with None for an operand without an event."""
        spot, device = self.spots[int(self.spot[number])], int(self.device[number])
        return [self.last(device, spot.path, operand, number) for operand in spot.instruction.operands]

    def last(self, device: int, path: tuple[str, ...], instruction: Instruction, before: int) -> int | None:
        """Return the last event of an instruction on a device before the given event, or None."""
        events = self._events.get((device, self._spot_of.get((path, instruction), -1)), [])
        place = bisect_left(events, before)
        return events[place - 1] if place else None

    def trips(self, number: int) -> list[tuple[str, int]]:
        """Return the loops around an event, outermost first, each with its trip number, counted from 1."""
        device = int(self.device[number])
        of_spot = [
            (loop, self._events.get((device, loop.condition), []), self._events.get((device, loop.itself), []))
            for loop in self.loops[int(self.spot[number])]
        ]
        return [(loop.name, trip(conditions, ends, number)) for loop, conditions, ends in of_spot]

    def standing(self, number: int) -> str:
        """Return the place of an event as text, such as `add.3 in while.1, trip 2`."""
        spot, trips = self.spots[int(self.spot[number])], dict(self.trips(number))
        around = (f"{name}, trip {trips[name]}" if name in trips else name for name in reversed(spot.path))
        return " in ".join([spot.instruction.name, *around])

    @cached_property
    def loops(self) -> list[tuple[TracedLoop, ...]]:
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
