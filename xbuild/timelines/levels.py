"""Levels of the simulation: the tapes of the entry, and of the bodies of loops, which run until trips are alike."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field

from shape_inference import refuse

from ..process.deadline import ask
from .recording import Repeat
from .simulation import Simulation
from .tape import Entry, Tape

_ASKED = 4096
_EQUAL = 1e-9
"""How far two trips of a loop may differ, as a part of their duration, to count as a steady state."""

MOST_TRIPS = 200_000
"""How many trips of loops are simulated; a loop inside others takes at least two in each of theirs."""


class StuckError(Exception):
    """Some classes of devices wait for ever; `entries` are those that they wait at."""

    def __init__(self, entries: Mapping[int, Entry]) -> None:
        super().__init__("the programs wait for each other")
        self.entries = dict(entries)


def run_tapes(whole: Simulation, tapes: Mapping[int, Tape]) -> None:
    """Go along the tapes to their ends, the class with the earliest clock first. Raises StuckError."""
    _Level(whole, tapes).run()


@define(eq=False)
class _Level:
    """A run of one tape of each class: the tapes of the entry, or of a loop's body."""

    whole: Simulation
    tapes: Mapping[int, Tape]
    at: dict[int, int] = field(init=False)
    _ready: list[tuple[float, int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.at = dict.fromkeys(self.tapes, 0)
        self._ready = [(self.whole.clock[label], label) for label in self.tapes]
        heapq.heapify(self._ready)

    def run(self) -> None:
        while self._ready:
            _, label = heapq.heappop(self._ready)
            self._advance(label)
        stuck = {label: tape[self.at[label]] for label, tape in self.tapes.items() if self.at[label] < len(tape)}
        if stuck:
            raise StuckError(stuck)

    def _advance(self, label: int) -> None:
        """Go on up to and including the next entry at which others may be met."""
        tape, whole = self.tapes[label], self.whole
        while self.at[label] < len(tape):
            entry = tape[self.at[label]]
            whole.steps += 1
            if whole.steps % _ASKED == 0:
                ask()
            if entry.action == "loop":
                self._meet_at_loop(label, entry)
                return
            if not _ACTIONS[entry.action](whole, label, entry):
                return
            self.at[label] += 1
            if entry.action != "compute":
                self._wake(entry)
                heapq.heappush(self._ready, (whole.clock[label], label))
                return

    def _wake(self, entry: Entry) -> None:
        """Let the classes go on that wait for what has happened."""
        for event in _WAKES.get(entry.action, ()):
            self._resume(self.whole.waiting.pop((event, entry.key), ()))

    def _resume(self, labels: Iterable[int]) -> None:
        """These classes look again; those of an enclosing level do so when this one has ended."""
        for label in labels:
            if label in self.tapes:
                heapq.heappush(self._ready, (self.whole.clock[label], label))
            else:
                self.whole.outside.add(label)

    def _meet_at_loop(self, label: int, loop: Entry) -> None:
        """The loop runs once all classes that run it are there; their clocks stay their own."""
        here = self.whole.here[loop.key]
        here.add(label)
        if len(here) < len(self.whole.loops[loop.key]):
            return
        bodies = {each: self.tapes[each][self.at[each]] for each in sorted(here)}
        here.clear()
        run_loop(self.whole, bodies)
        for each in bodies:
            self.at[each] += 1
        outside, self.whole.outside = self.whole.outside, set()
        self._resume({*bodies, *outside})


_ACTIONS: Mapping[str, Callable[[Simulation, int, Entry], bool]] = {
    name: getattr(Simulation, name)
    for name in ("compute", "post", "send", "sent", "accept", "receive", "arrive", "complete", "begin", "end")
}
_WAKES = {"post": ("post",), "send": ("send",), "arrive": ("complete",)}


def run_loop(whole: Simulation, loops: Mapping[int, Entry]) -> None:
    """Run a loop trip by trip until two trips are alike, and repeat the last of them without a simulation."""
    entry = next(iter(loops.values()))
    before: tuple[float, object] | None = None
    trip = 0
    while trip < entry.trips:
        _count(whole, entry)
        first, clocks = len(whole.spans), {label: whole.clock[label] for label in loops}
        run_tapes(whole, {label: each.condition + each.body for label, each in loops.items()})
        trip += 1
        now = _state(whole, clocks)
        if before is not None and now is not None and trip < entry.trips and _alike(before, now):
            _repeat(whole, loops, first, entry.trips - trip, now[0])
            trip = entry.trips
        before = now
    if entry.blocks:
        run_tapes(whole, {label: each.condition for label, each in loops.items()})


def _count(whole: Simulation, loop: Entry) -> None:
    whole.trips += 1
    if whole.trips > MOST_TRIPS:
        message = f"timeline: {loop.instruction.name} is in so many loops that more than {MOST_TRIPS:,} trips differ"
        refuse("limit_trips", message, "loops in fewer loops can be followed to their ends")


State: TypeAlias = tuple[float, object]


def _state(whole: Simulation, clocks: Mapping[int, float]) -> State | None:
    """The duration of a trip, where it is that of all classes, and what is under way at its end, relative to that."""
    taken = {label: whole.clock[label] - start for label, start in clocks.items()}
    period = max(taken.values())
    if period - min(taken.values()) > _EQUAL * period:
        return None
    base = min(whole.clock[label] for label in clocks)
    free = {place: end - base for place, (end, _) in whole.free.items() if end > base}
    return period, ({label: whole.clock[label] - base for label in clocks}, free, _pending(whole, base))


def _pending(whole: Simulation, base: float) -> dict[Hashable, float]:
    """Events that lie after the end of the trip, by their place from the end of their log."""
    found: dict[Hashable, float] = {}
    for key, log in whole.logs.items():
        for number, (when, _) in enumerate(reversed(log[-4:])):
            if when > base:
                found[key, number] = when - base
    return found


def _alike(one: State, other: State) -> bool:
    """Whether two trips take as long and leave the same under way."""
    near = _EQUAL * max(one[0], other[0], 1e-30)
    if abs(one[0] - other[0]) > near:
        return False
    parts: Sequence[tuple[dict[Hashable, float], dict[Hashable, float]]]
    parts = list(zip(one[1], other[1], strict=True))  # type: ignore[call-overload]
    return all(a.keys() == b.keys() and all(abs(a[key] - b[key]) <= near for key in a) for a, b in parts)


def _repeat(whole: Simulation, loops: Mapping[int, Entry], first: int, more: int, period: float) -> None:
    """The rest of the trips: clocks, links and what is under way move on by their duration."""
    whole.spans.repeats.append(Repeat(first, len(whole.spans), more + 1, period))
    later = more * period
    base = min(whole.clock[label] for label in loops)
    for label in loops:
        whole.clock[label] += later
    for place, (end, span) in [*whole.free.items()]:
        whole.free[place] = (end + later if end > base else end), span
    for log in whole.logs.values():
        for number in range(max(len(log) - 4, 0), len(log)):
            when, span = log[number]
            log[number] = (when + later if when > base else when), span
