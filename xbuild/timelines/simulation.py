"""The simulation: classes of devices go along their tapes, each waiting where the scheduler's rules make it wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field

from .recording import BESIDE, COMPUTE, EXPOSED, LINK, NOBODY, WAIT, Recorder
from .tape import Entry

Log: TypeAlias = list[tuple[float, int]]
"""The n-th event of a kind: when it happened, and the number of the span at whose end it did."""


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
    trips: int = 0

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
