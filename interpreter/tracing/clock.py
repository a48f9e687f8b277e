"""Logical clocks: the time of an event is one more than the latest time of the events on which it depends."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.checking.model.program import Extent
from xbuild.core.attributes import Array
from xbuild.core.graph import Module
from xbuild.properties.waiting import ARRIVED, COMPLETED, POSTED, RECEIVED, SENT, EventKind
from xbuild.traces import Meeting, Transfer

from ..rules.lines import Path
from ..runtime.channels import Peers
from .roles import Role, Roles

FEW = 64
"""The largest number of devices for which the events are selected one device after the other."""

MOST_COUNTS = 1 << 22
"""The largest table of devices by events, in numbers."""


@define(eq=False, slots=False)
class Clock:
    """Computes times: one by one for the events that communicate, by array operations for the others.

    The results are the columns `time`, `since` and `count`, the meetings and the transfers.
    """

    modules: Sequence[Module]
    extent: Extent
    device: Array
    spot: Array
    paths: Sequence[Path]
    time: Array = field(init=False)
    since: Array = field(init=False)
    transfers: list[Transfer] = field(factory=list)
    _before: Any = ()  # for each device
    _waited: list[int] = field(init=False)
    _met: dict[Hashable, tuple[int, Role, list[int]]] = field(factory=dict)
    _rounds: Counter[Hashable] = field(factory=Counter)
    _started: dict[Hashable, dict[int, int]] = field(factory=lambda: defaultdict(dict))
    _posted: dict[Hashable, deque[int]] = field(factory=lambda: defaultdict(deque))
    _sent: dict[Hashable, deque[tuple[int, int]]] = field(factory=lambda: defaultdict(deque))
    _ahead: dict[Hashable, deque[tuple[int, int]]] = field(factory=lambda: defaultdict(deque))
    _peers: Peers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._waited = [0] * len(self.modules)
        self._peers = Peers(list(self.modules))
        self._read(_by_device(self.device, len(self.modules)))

    def count(self) -> Array:
        """The number of earlier events of each event's device at the same spot."""
        pairs = self.device.astype(np.int64) * max(len(self.paths), 1) + self.spot
        few = pairs.max(initial=0) < 1 << 16
        order = np.argsort(pairs.astype(np.uint16) if few else pairs, kind="stable")
        fresh = np.flatnonzero(np.diff(pairs[order], prepend=-1))
        found = np.empty(len(pairs), np.int64)
        found[order] = np.arange(len(pairs)) - np.repeat(fresh, np.diff(fresh, append=len(pairs)))
        return found

    def _read(self, events: Sequence[Array]) -> None:
        """Compute the times of events: one more than the device's last event, or later where the device had to wait."""
        roles = Roles.of(self.modules, self.extent)
        talking = np.array([roles.talks(path) for path in self.paths], bool)
        numbers = np.flatnonzero(talking[self.spot])
        waits = np.zeros(len(self.device), np.int64)
        waits[numbers] = self._waits(roles, numbers, _before(events, numbers))
        self.time = np.empty(len(self.device), np.int64)
        for each in events:
            self.time[each] = np.arange(1, len(each) + 1) + np.cumsum(waits[each])
        self.since = self.time - waits

    def _waits(self, roles: Roles, numbers: Array, before: Iterable[Any]) -> list[int]:
        """The time that the device waited at each of these events; `before` has the earlier events of each device."""
        found = []
        known: dict[tuple[int, int], Role] = {}
        columns = (column.tolist() for column in (numbers, self.device[numbers], self.spot[numbers]))
        for number, device, spot, self._before in zip(*columns, before, strict=True):
            role = known.get((device, spot))
            if role is None:
                role = known[device, spot] = roles.role(device, self.paths[spot])
            reached = _TIMES[role.event](self, number, device, role)
            waited = max(0, reached - self._now(device) - 1)
            self._waited[device] += waited
            found.append(waited)
        return found

    def _now(self, device: int) -> int:
        """The time of a device's last event before the current event."""
        before: int = self._before[device]
        return before + self._waited[device]

    def meetings(self) -> list[Meeting]:
        met = self._met.values()
        return [Meeting(c, role.group, time, tuple(events)) for time, role, events in met if (c := role.collective)]

    def _arrived_at(self, number: int, device: int, role: Role) -> int:
        self._started[self._round(device, role)][device] = self._now(device) + 1
        return 0

    def _completed_at(self, number: int, device: int, role: Role) -> int:
        """The time at which all members of a round get the result: after the last member has arrived or started."""
        key = self._round(device, role)
        met = self._met.get(key)
        if met is None:
            started = self._started.get(key, {})
            soonest = 1 + max(started.get(member) or self._now(member) for member in role.group)
            met = self._met[key] = soonest, role, []
        met[2].append(number)
        return met[0]

    def _round(self, device: int, role: Role) -> Hashable:
        """The key of the round of a collective to which this event of a device belongs."""
        turn = role.key, device, role.event
        self._rounds[turn] += 1
        return role.key, self._rounds[turn]

    def _posted_at(self, number: int, device: int, role: Role) -> int:
        source = self._peers.source(role.request, device)
        if source is not None:
            self._posted[role.channel, source, device].append(self._now(device) + 1)
        return 0

    def _sent_at(self, number: int, device: int, role: Role) -> int:
        """The earliest time of a send: after its recv was posted, unless a buffer took the value."""
        target = self._peers.target(role.request, device)
        if target is None:
            return 0
        wire = role.channel, device, target
        if self._ahead[wire]:
            done, time = self._ahead[wire].popleft()
            self.transfers.append(Transfer(role.channel, device, target, number, done))
            return time
        posted = self._posted[wire].popleft() + 1 if self._posted[wire] else 0
        self._sent[wire].append((number, max(self._now(device) + 1, posted)))
        return posted

    def _received_at(self, number: int, device: int, role: Role) -> int:
        """The earliest time of a recv-done: after the send, whose event may come later in the list of events."""
        source = self._peers.source(role.request, device)
        if source is None:
            return 0
        wire = role.channel, source, device
        if self._sent[wire]:
            send, time = self._sent[wire].popleft()
            self.transfers.append(Transfer(role.channel, source, device, send, number))
        else:
            time = max(self._now(source), self._posted[wire].popleft()) + 1
            self._ahead[wire].append((number, time))
        return time + 1


def _by_device(device: Array, count: int) -> Sequence[Array]:
    """The indices of the events of each device."""
    if count <= FEW:
        return [np.flatnonzero(device == n) for n in range(count)]
    ends = np.cumsum(np.bincount(device, minlength=count))
    return np.split(np.argsort(device, kind="stable"), ends[:-1])


def _before(events: Sequence[Array], numbers: Array) -> Iterable[Any]:
    """For each of these events the number of earlier events of each device; a large table is computed on demand."""
    if len(events) * len(numbers) <= MOST_COUNTS:
        table: Iterable[Any] = np.array([each.searchsorted(numbers) for each in events]).T.tolist()
        return table
    return (_Before(events, number) for number in numbers.tolist())


@frozen(eq=False)
class _Before:
    """The number of events of each device before one event, computed on demand."""

    events: Sequence[Array]
    number: int

    def __getitem__(self, device: int) -> int:
        return int(self.events[device].searchsorted(self.number))


# The function that gives the earliest time of an event, by kind, for events that wait or for which devices wait.
_TIMES: Mapping[EventKind, Callable[[Clock, int, int, Role], int]] = {
    ARRIVED: Clock._arrived_at,
    COMPLETED: Clock._completed_at,
    POSTED: Clock._posted_at,
    SENT: Clock._sent_at,
    RECEIVED: Clock._received_at,
}
