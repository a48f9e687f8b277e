"""The simulation: classes of devices go along their tapes, each waiting where the scheduler's rules make it wait."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field

from ..process.deadline import ask
from .recording import BESIDE, COMPUTE, EXPOSED, LINK, NOBODY, WAIT, Recorder, Repeat
from .tape import Entry, Tape

Log: TypeAlias = list[tuple[float, int]]
"""The n-th event of a kind: when it happened, and the number of the span at whose end it did."""

_ASKED = 4096
_EQUAL = 1e-9
"""How far two trips of a loop may differ, as a part of their duration, to count as a steady state."""


class StuckError(Exception):
    """Some classes of devices wait for ever; `entries` are those that they wait at."""

    def __init__(self, entries: Mapping[int, Entry]) -> None:
        super().__init__("the programs wait for each other")
        self.entries = dict(entries)


@define
class Meeting:
    """One instance of a collective: which classes have come, when the last did, and after which span."""

    count: int = 0
    last: float = 0.0
    cause: int = NOBODY


@define(eq=False)
class Simulation:
    """Clocks of all classes, logs of what happened, and the spans."""

    send_buffers: float
    clock: dict[int, float]
    loops: Mapping[Hashable, frozenset[int]]
    spans: Recorder = field(factory=Recorder)
    last: dict[int, int] = field(factory=dict)
    logs: dict[tuple[str, Hashable], Log] = field(factory=lambda: defaultdict(list))
    counts: Counter[tuple[int, str, Hashable]] = field(factory=Counter)
    meetings: dict[tuple[Hashable, int], Meeting] = field(factory=dict)
    free: dict[tuple[int, Hashable], tuple[float, int]] = field(factory=dict)
    waiting: dict[tuple[str, Hashable], list[int]] = field(factory=lambda: defaultdict(list))
    here: dict[Hashable, set[int]] = field(factory=lambda: defaultdict(set))
    outside: set[int] = field(factory=set)
    steps: int = 0

    def run(self, tapes: Mapping[int, Tape]) -> None:
        """Go along the tapes to their ends, the class with the earliest clock first. Raises StuckError."""
        level = _Level(self, tapes)
        level.run()

    # What each action does: True where the class goes on.

    def compute(self, label: int, entry: Entry) -> bool:
        start = self.clock[label]
        end = self.clock[label] = start + entry.seconds
        self.last[label] = self.spans.add(label, COMPUTE, start, end, entry.instruction, self._last(label))
        return True

    def post(self, label: int, entry: Entry) -> bool:
        self._happen("post", entry.key, self.clock[label], self._last(label))
        return True

    def send(self, label: int, entry: Entry) -> bool:
        """The transfer begins once the recv is posted, where the send blocks, and its link is free."""
        number = self.counts[label, "send", entry.key] + 1
        needed = number - int(min(self.send_buffers, number)) if entry.blocks else 0
        if needed and not self._wait_for(label, entry, "post", needed):
            return False
        self.counts[label, "send", entry.key] = number
        end, span = self._take((label,), self.clock[label], self._last(label), entry)
        self._happen("send", entry.key, end, span)
        return True

    def accept(self, label: int, entry: Entry) -> bool:
        number = self.counts[label, "accept", entry.key] + 1
        needed = number - int(min(self.send_buffers, number))
        if needed and not self._wait_for(label, entry, "post", needed):
            return False
        self.counts[label, "accept", entry.key] = number
        return True

    def sent(self, label: int, entry: Entry) -> bool:
        return self._next(label, entry, "sent", "send")

    def receive(self, label: int, entry: Entry) -> bool:
        return self._next(label, entry, "receive", "send")

    def arrive(self, label: int, entry: Entry) -> bool:
        """Come to a collective; the last to come starts it, once the links of all members are free."""
        turn = self.counts[label, "arrive", entry.key] + 1
        self.counts[label, "arrive", entry.key] = turn
        meeting = self.meetings.setdefault((entry.key, turn), Meeting())
        meeting.count += 1
        if meeting.count == 1 or self.clock[label] >= meeting.last:
            meeting.last, meeting.cause = self.clock[label], self._last(label)
        if meeting.count == len(entry.members):
            del self.meetings[entry.key, turn]
            self._happen("complete", entry.key, *self._take(entry.members, meeting.last, meeting.cause, entry))
        return True

    def complete(self, label: int, entry: Entry) -> bool:
        return self._next(label, entry, "complete", "complete")

    def begin(self, label: int, entry: Entry) -> bool:
        """Begin what runs beside: copies and asynchronous computations of a device come one after the other."""
        start, cause = self.clock[label], self._last(label)
        free, before = self.free.get((label, "beside"), (0.0, NOBODY))
        if free > start:
            start, cause = free, before
        span = self.spans.add(label, BESIDE, start, start + entry.seconds, entry.instruction, cause)
        self.free[label, "beside"] = start + entry.seconds, span
        self._happen("begin", (label, entry.key), start + entry.seconds, span)
        return True

    def end(self, label: int, entry: Entry) -> bool:
        if not self.logs.get(("begin", (label, entry.key))):
            return True
        when, span = self.logs["begin", (label, entry.key)][-1]
        self._reach(label, entry, when, span)
        return True

    def _last(self, label: int) -> int:
        return self.last.get(label, NOBODY)

    def _happen(self, event: str, key: Hashable, when: float, span: int) -> None:
        self.logs[event, key].append((when, span))

    def _next(self, label: int, entry: Entry, own: str, awaited: str) -> bool:
        """Wait for the event whose number is that of this one, and count this one."""
        number = self.counts[label, own, entry.key] + 1
        if not self._wait_for(label, entry, awaited, number):
            return False
        self.counts[label, own, entry.key] = number
        return True

    def _wait_for(self, label: int, entry: Entry, event: str, number: int) -> bool:
        """Whether the n-th event has happened; if so the class goes on no earlier than that."""
        log = self.logs[event, entry.key]
        if len(log) < number:
            self.waiting[event, entry.key].append(label)
            return False
        self._reach(label, entry, *log[number - 1])
        return True

    def _reach(self, label: int, entry: Entry, when: float, span: int) -> None:
        """Go on no earlier than `when`, the end of a span: what lies before its begin is waiting, the rest exposed."""
        start = self.clock[label]
        if when <= start:
            return
        is_link = span != NOBODY and self.spans.kinds[span] in (LINK, BESIDE)
        begun = max(start, self.spans.starts[span]) if is_link else when
        if begun > start:
            self.last[label] = self.spans.add(label, WAIT, start, begun, entry.instruction, span)
        if when > begun:
            self.last[label] = self.spans.add(label, EXPOSED, begun, when, entry.instruction, span)
        self.clock[label] = when

    def _take(self, members: Sequence[int], when: float, cause: int, entry: Entry) -> tuple[float, int]:
        """The end of a communication on the links of its members, and its span; links carry one at a time."""
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
        first, clocks = len(whole.spans), {label: whole.clock[label] for label in loops}
        whole.run({label: each.condition + each.body for label, each in loops.items()})
        trip += 1
        now = _state(whole, clocks)
        if before is not None and now is not None and trip < entry.trips and _alike(before, now):
            _repeat(whole, loops, first, entry.trips - trip, now[0])
            trip = entry.trips
        before = now
    if entry.blocks:
        whole.run({label: each.condition for label, each in loops.items()})


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
