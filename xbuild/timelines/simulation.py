"""The simulation: classes of devices run their tapes, and wait by the rules of the scheduler.

Sections:

    Spans of time as columns
    Simulation: what each action of a tape does
    Runs of tapes: of the entry, and of loop bodies until trips are equal
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import refuse

from ..core.graph import Instruction
from ..process.limits import ask
from .tape import Tape, TapeEntry

# ----------------------------------------------------------------------------
# Spans of time as columns: what each class of devices did, from when to when, and what it waited for

SpanKind: TypeAlias = Literal["compute", "exposed", "wait", "link", "beside"]
KINDS: tuple[SpanKind, ...] = ("compute", "exposed", "wait", "link", "beside")
COMPUTE, EXPOSED, WAIT, LINK, BESIDE = range(5)
NOBODY = -1


@frozen
class Span:
    """A span of time of a class of devices.

    `kind` is compute; exposed: communication during which the devices do nothing else; wait: waiting for devices that
    arrive later; link: communication under way; beside: copies and computations that run in parallel. A span of a loop
    in a steady state counts for `times` executions, `period` seconds apart.
    """

    label: int
    kind: SpanKind
    start: float
    end: float
    instruction: Instruction
    times: int = 1

    @property
    def seconds(self) -> float:
        """The duration of one execution."""
        return self.end - self.start


@frozen
class Repeat:
    """Spans `first` to `last` (exclusive), by number, which happen `times` times, `period` seconds apart."""

    first: int
    last: int
    times: int
    period: float


@define(eq=False)
class SpanRecorder:
    """The columns; `causes` are the numbers of the spans after whose end a span could begin."""

    labels: list[int] = field(factory=list)
    kinds: list[int] = field(factory=list)
    starts: list[float] = field(factory=list)
    ends: list[float] = field(factory=list)
    instructions: list[Instruction] = field(factory=list)
    causes: list[int] = field(factory=list)
    repeats: list[Repeat] = field(factory=list)

    def add(self, label: int, kind: int, start: float, end: float, instruction: Instruction, cause: int) -> int:
        """Add a span and return its number."""
        self.labels.append(label)
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)
        self.instructions.append(instruction)
        self.causes.append(cause)
        return len(self.labels) - 1

    def __len__(self) -> int:
        return len(self.labels)

    def times(self) -> np.ndarray:
        """How often each span happens."""
        found = np.ones(len(self), dtype=np.int64)
        for repeat in self.repeats:
            found[repeat.first : repeat.last] *= repeat.times
        return found

    def span(self, number: int, times: int = 1) -> Span:
        """A span as a record."""
        return Span(
            self.labels[number],
            KINDS[self.kinds[number]],
            self.starts[number],
            self.ends[number],
            self.instructions[number],
            times,
        )


# ----------------------------------------------------------------------------
# Simulation: what each action of a tape does

Log: TypeAlias = list[tuple[float, int]]
"""For the n-th event of a kind: when it happened, and the number of the span at whose end it did."""


@define
class TimedMeeting:
    """One instance of a collective: how many classes have arrived, when the last did, and after which span."""

    count: int = 0
    last: float = 0.0
    cause: int = NOBODY


@define(eq=False)
class Simulation:
    """Clocks of all classes, logs of what happened, and the spans."""

    send_buffers: float
    clock: dict[int, float]
    loops: Mapping[Hashable, frozenset[int]]
    spans: SpanRecorder = field(factory=SpanRecorder)
    last_span: dict[int, int] = field(factory=dict)
    logs: dict[tuple[str, Hashable], Log] = field(factory=lambda: defaultdict(list))
    counts: Counter[tuple[int, str, Hashable]] = field(factory=Counter)
    meetings: dict[tuple[Hashable, int], TimedMeeting] = field(factory=dict)
    free: dict[tuple[int, Hashable], tuple[float, int]] = field(factory=dict)
    waiting: dict[tuple[str, Hashable], list[int]] = field(factory=lambda: defaultdict(list))
    at_loop: dict[Hashable, set[int]] = field(factory=lambda: defaultdict(set))
    woken_outside: set[int] = field(factory=set)
    steps: int = 0
    trips: int = 0

    # What each action does: True if the class continues.

    def compute(self, label: int, entry: TapeEntry) -> bool:
        start = self.clock[label]
        end = self.clock[label] = start + entry.seconds
        self.last_span[label] = self.spans.add(label, COMPUTE, start, end, entry.instruction, self._last_span_of(label))
        return True

    def post(self, label: int, entry: TapeEntry) -> bool:
        self._record("post", entry.key, self.clock[label], self._last_span_of(label))
        return True

    def send(self, label: int, entry: TapeEntry) -> bool:
        """Begin the transfer once the recv is posted (if the send blocks) and its link is free."""
        number = self.counts[label, "send", entry.key] + 1
        needed = number - int(min(self.send_buffers, number)) if entry.blocks else 0
        if needed and not self._wait_for(label, entry, "post", needed):
            return False
        self.counts[label, "send", entry.key] = number
        end, span = self._occupy_links((label,), self.clock[label], self._last_span_of(label), entry)
        self._record("send", entry.key, end, span)
        return True

    def accept(self, label: int, entry: TapeEntry) -> bool:
        number = self.counts[label, "accept", entry.key] + 1
        needed = number - int(min(self.send_buffers, number))
        if needed and not self._wait_for(label, entry, "post", needed):
            return False
        self.counts[label, "accept", entry.key] = number
        return True

    def sent(self, label: int, entry: TapeEntry) -> bool:
        return self._wait_for_same_number(label, entry, "sent", "send")

    def receive(self, label: int, entry: TapeEntry) -> bool:
        return self._wait_for_same_number(label, entry, "receive", "send")

    def arrive(self, label: int, entry: TapeEntry) -> bool:
        """Arrive at a collective; the last arrival starts it, once the links of all members are free."""
        turn = self.counts[label, "arrive", entry.key] + 1
        self.counts[label, "arrive", entry.key] = turn
        meeting = self.meetings.setdefault((entry.key, turn), TimedMeeting())
        meeting.count += 1
        if meeting.count == 1 or self.clock[label] >= meeting.last:
            meeting.last, meeting.cause = self.clock[label], self._last_span_of(label)
        if meeting.count == len(entry.members):
            del self.meetings[entry.key, turn]
            self._record("complete", entry.key, *self._occupy_links(entry.members, meeting.last, meeting.cause, entry))
        return True

    def complete(self, label: int, entry: TapeEntry) -> bool:
        return self._wait_for_same_number(label, entry, "complete", "complete")

    def begin(self, label: int, entry: TapeEntry) -> bool:
        """Begin a parallel action: copies and asynchronous computations of a device run one after the other."""
        start, cause = self.clock[label], self._last_span_of(label)
        free, before = self.free.get((label, "beside"), (0.0, NOBODY))
        if free > start:
            start, cause = free, before
        span = self.spans.add(label, BESIDE, start, start + entry.seconds, entry.instruction, cause)
        self.free[label, "beside"] = start + entry.seconds, span
        self._record("begin", (label, entry.key), start + entry.seconds, span)
        return True

    def end(self, label: int, entry: TapeEntry) -> bool:
        if not self.logs.get(("begin", (label, entry.key))):
            return True
        when, span = self.logs["begin", (label, entry.key)][-1]
        self._advance_to(label, entry, when, span)
        return True

    def _last_span_of(self, label: int) -> int:
        return self.last_span.get(label, NOBODY)

    def _record(self, event: str, key: Hashable, when: float, span: int) -> None:
        self.logs[event, key].append((when, span))

    def _wait_for_same_number(self, label: int, entry: TapeEntry, own: str, awaited: str) -> bool:
        """Wait for the event whose number is that of this one, and count this one."""
        number = self.counts[label, own, entry.key] + 1
        if not self._wait_for(label, entry, awaited, number):
            return False
        self.counts[label, own, entry.key] = number
        return True

    def _wait_for(self, label: int, entry: TapeEntry, event: str, number: int) -> bool:
        """Whether the n-th event has happened; if so, the class continues no earlier than that."""
        log = self.logs[event, entry.key]
        if len(log) < number:
            self.waiting[event, entry.key].append(label)
            return False
        self._advance_to(label, entry, *log[number - 1])
        return True

    def _advance_to(self, label: int, entry: TapeEntry, when: float, span: int) -> None:
        """Continue no earlier than `when`, the end of a span: time before its begin is waiting, the rest exposed."""
        start = self.clock[label]
        if when <= start:
            return
        is_link = span != NOBODY and self.spans.kinds[span] in (LINK, BESIDE)
        begun = max(start, self.spans.starts[span]) if is_link else when
        if begun > start:
            self.last_span[label] = self.spans.add(label, WAIT, start, begun, entry.instruction, span)
        if when > begun:
            self.last_span[label] = self.spans.add(label, EXPOSED, begun, when, entry.instruction, span)
        self.clock[label] = when

    def _occupy_links(self, members: Sequence[int], when: float, cause: int, entry: TapeEntry) -> tuple[float, int]:
        """The end of a communication on the links of its members, and its span; a link carries one at a time."""
        places = [(member, link) for member in members for link in entry.links]
        for place in places:
            free, before = self.free.get(place, (0.0, NOBODY))
            if free > when:
                when, cause = free, before
        end, span = when + entry.seconds, cause
        if entry.seconds:
            for member in members:
                span = self.spans.add(member, LINK, when, end, entry.instruction, cause)
        for place in places if entry.seconds else ():
            self.free[place] = end, span
        return end, span


# ----------------------------------------------------------------------------
# Runs of tapes: of the entry, and of loop bodies until trips are equal

_ASKED = 4096
_EQUAL = 1e-9
"""The largest difference of two trips of a loop in a steady state, as a fraction of their duration."""

MOST_TRIPS = 200_000
"""The most trips of loops that are simulated; an inner loop takes at least two in each outer trip."""


class StuckError(Exception):
    """Some classes of devices never continue; `entries` are those at which they wait."""

    def __init__(self, entries: Mapping[int, TapeEntry]) -> None:
        super().__init__("the programs wait for each other")
        self.entries = dict(entries)


def run_tapes(simulation: Simulation, tapes: Mapping[int, Tape]) -> None:
    """Run the tapes to their ends, always the class with the earliest clock. Raises StuckError."""
    _TapeRun(simulation, tapes).run()


@define(eq=False)
class _TapeRun:
    """A run of one tape of each class: the tapes of the entry, or of a loop's body."""

    simulation: Simulation
    tapes: Mapping[int, Tape]
    at: dict[int, int] = field(init=False)
    _ready: list[tuple[float, int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.at = dict.fromkeys(self.tapes, 0)
        self._ready = [(self.simulation.clock[label], label) for label in self.tapes]
        heapq.heapify(self._ready)

    def run(self) -> None:
        while self._ready:
            _, label = heapq.heappop(self._ready)
            self._advance(label)
        stuck = {label: tape[self.at[label]] for label, tape in self.tapes.items() if self.at[label] < len(tape)}
        if stuck:
            raise StuckError(stuck)

    def _advance(self, label: int) -> None:
        """Continue up to and including the next entry that may concern other classes."""
        tape, simulation = self.tapes[label], self.simulation
        while self.at[label] < len(tape):
            entry = tape[self.at[label]]
            simulation.steps += 1
            if simulation.steps % _ASKED == 0:
                ask()
            if entry.action == "loop":
                self._meet_at_loop(label, entry)
                return
            if not _ACTIONS[entry.action](simulation, label, entry):
                return
            self.at[label] += 1
            if entry.action != "compute":
                self._wake(entry)
                heapq.heappush(self._ready, (simulation.clock[label], label))
                return

    def _wake(self, entry: TapeEntry) -> None:
        """Resume the classes that wait for what has happened."""
        for event in _WAKES.get(entry.action, ()):
            self._resume(self.simulation.waiting.pop((event, entry.key), ()))

    def _resume(self, labels: Iterable[int]) -> None:
        """Resume these classes; those of an enclosing run resume when this one has ended."""
        for label in labels:
            if label in self.tapes:
                heapq.heappush(self._ready, (self.simulation.clock[label], label))
            else:
                self.simulation.woken_outside.add(label)

    def _meet_at_loop(self, label: int, loop: TapeEntry) -> None:
        """Run the loop once all classes that run it have arrived; each keeps its own clock."""
        here = self.simulation.at_loop[loop.key]
        here.add(label)
        if len(here) < len(self.simulation.loops[loop.key]):
            return
        bodies = {each: self.tapes[each][self.at[each]] for each in sorted(here)}
        here.clear()
        run_loop(self.simulation, bodies)
        for each in bodies:
            self.at[each] += 1
        outside, self.simulation.woken_outside = self.simulation.woken_outside, set()
        self._resume({*bodies, *outside})


_ACTIONS: Mapping[str, Callable[[Simulation, int, TapeEntry], bool]] = {
    name: getattr(Simulation, name)
    for name in ("compute", "post", "send", "sent", "accept", "receive", "arrive", "complete", "begin", "end")
}
_WAKES = {"post": ("post",), "send": ("send",), "arrive": ("complete",)}


def run_loop(simulation: Simulation, loops: Mapping[int, TapeEntry]) -> None:
    """Run a loop trip by trip until two trips are equal, and repeat the last of them without simulation."""
    entry = next(iter(loops.values()))
    before: tuple[float, object] | None = None
    trip = 0
    while trip < entry.trips:
        _count_trip(simulation, entry)
        first, clocks = len(simulation.spans), {label: simulation.clock[label] for label in loops}
        run_tapes(simulation, {label: each.condition + each.body for label, each in loops.items()})
        trip += 1
        now = _trip_state(simulation, clocks)
        if before is not None and now is not None and trip < entry.trips and _are_equal(before, now):
            _skip_repeats(simulation, loops, first, entry.trips - trip, now[0])
            trip = entry.trips
        before = now
    if entry.blocks:
        run_tapes(simulation, {label: each.condition for label, each in loops.items()})


def _count_trip(simulation: Simulation, loop: TapeEntry) -> None:
    simulation.trips += 1
    if simulation.trips > MOST_TRIPS:
        name = loop.instruction.name
        message = (
            f"timeline: {name} is nested in so many loops that more than {MOST_TRIPS:,} trips would have to be "
            "simulated"
        )
        refuse("limit_trips", message, "nest loops less deeply")


State: TypeAlias = tuple[float, object]


def _trip_state(simulation: Simulation, clocks: Mapping[int, float]) -> State | None:
    """The duration of a trip, if it is that of all classes, and what is under way at its end, relative to that."""
    durations = {label: simulation.clock[label] - start for label, start in clocks.items()}
    period = max(durations.values())
    if period - min(durations.values()) > _EQUAL * period:
        return None
    base = min(simulation.clock[label] for label in clocks)
    free = {place: end - base for place, (end, _) in simulation.free.items() if end > base}
    return period, (
        {label: simulation.clock[label] - base for label in clocks},
        free,
        _pending_events(simulation, base),
    )


def _pending_events(simulation: Simulation, base: float) -> dict[Hashable, float]:
    """Events after the end of the trip, by their position from the end of their log."""
    found: dict[Hashable, float] = {}
    for key, log in simulation.logs.items():
        for number, (when, _) in enumerate(reversed(log[-4:])):
            if when > base:
                found[key, number] = when - base
    return found


def _are_equal(one: State, other: State) -> bool:
    """Whether two trips take equally long and leave the same under way."""
    near = _EQUAL * max(one[0], other[0], 1e-30)
    if abs(one[0] - other[0]) > near:
        return False
    parts: Sequence[tuple[dict[Hashable, float], dict[Hashable, float]]]
    parts = list(zip(one[1], other[1], strict=True))  # type: ignore[call-overload]
    return all(a.keys() == b.keys() and all(abs(a[key] - b[key]) <= near for key in a) for a, b in parts)


def _skip_repeats(simulation: Simulation, loops: Mapping[int, TapeEntry], first: int, more: int, period: float) -> None:
    """Add the remaining trips: clocks, links and what is under way move by their duration."""
    simulation.spans.repeats.append(Repeat(first, len(simulation.spans), more + 1, period))
    later = more * period
    base = min(simulation.clock[label] for label in loops)
    for label in loops:
        simulation.clock[label] += later
    for place, (end, span) in [*simulation.free.items()]:
        simulation.free[place] = (end + later if end > base else end), span
    for log in simulation.logs.values():
        for number in range(max(len(log) - 4, 0), len(log)):
            when, span = log[number]
            log[number] = (when + later if when > base else when), span
