"""Logical clocks: the time of an event is one more than the latest time of the events on which it depends."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.checking.model.program import Extent
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction, Module
from xbuild.core.memos import memo
from xbuild.properties.device_groups import group_of
from xbuild.properties.effects import START_OF, collective_in, start_of
from xbuild.properties.waiting import (
    ARRIVED,
    CHANNEL,
    COMPLETED,
    EVENTS,
    FEED,
    KINDS,
    POSTED,
    RECEIVED,
    SENT,
    EventKind,
)
from xbuild.traces import TracedMeeting, Transfer

from ..compiler.lines import Path, PlanPlace
from ..compiler.requests import Request
from ..runtime.meetings import Peers, RendezvousKeys

# ----------------------------------------------------------------------------
# Roles of instructions for the logical clock: the group or channel over which a device communicates there.


@frozen(eq=False, slots=False)
class Role:
    """The part of a device in a communication at a spot; `event` is the event that completes the instruction.

    `key` is the number of the collective in its group.
    """

    event: EventKind
    request: Request
    collective: Instruction | None = None
    key: int = -1
    group: tuple[int, ...] = ()

    @cached_property
    def channel(self) -> int:
        channel: int = self.request.attributes["channel_id"]
        return channel


@define(eq=False, slots=False)
class SpotRoles:
    """The roles of all spots of programs that run together, kept with the first of them."""

    modules: Sequence[Module]
    extent: Extent
    _known: dict[tuple[int, int], tuple[Path, Role]] = field(factory=dict)
    _talking: dict[int, tuple[Path, bool]] = field(factory=dict)
    _keys: dict[Hashable, int] = field(factory=dict)

    @staticmethod
    def of(modules: Sequence[Module], extent: Extent) -> SpotRoles:
        return memo(modules[0], "roles", (*extent, *modules), lambda: SpotRoles(modules, extent))

    def depends_on_others(self, path: Path) -> bool:
        """Whether the time of a spot may depend on other devices."""
        known = self._talking.get(id(path))
        if known is None:
            known = self._talking[id(path)] = path, _depends_on_others(path[-1].instruction)
        return known[1]

    def role(self, device: int, path: Path) -> Role:
        known = self._known.get((device, id(path)))
        if known is None:
            known = self._known[device, id(path)] = path, self._role(device, path)
        return known[1]

    def _role(self, device: int, path: Path) -> Role:
        instruction = path[-1].instruction
        start = start_of(instruction) if instruction.opcode in START_OF else None
        starting = start or instruction
        collective, event = collective_in(starting), _last_event(instruction)
        assert event is not None
        if collective is None:
            return Role(event, _request(path, starting, starting))
        request = _request(path, starting, collective)
        group = group_of(collective, device, *self.extent)
        key = self._rendezvous_keys.key_of(self.modules[device], request), group
        return Role(event, request, collective, self._keys.setdefault(key, len(self._keys)), group)

    @cached_property
    def _rendezvous_keys(self) -> RendezvousKeys:
        return RendezvousKeys(self.modules)


def _last_event(instruction: Instruction) -> EventKind | None:
    """The event that completes an instruction that communicates with devices; None for other instructions."""
    events = EVENTS.get(KINDS.get(instruction.opcode, ""), ())
    return events[-1] if events and events[-1].within != FEED else None


def _depends_on_others(instruction: Instruction) -> bool:
    event = _last_event(instruction)
    if event is None or event.within == CHANNEL:
        return event is not None
    start = start_of(instruction) if instruction.opcode in START_OF else instruction
    return start is not None and collective_in(start) is not None


def _request(path: Path, asked: Instruction, collective: Instruction) -> Request:
    return Request(asked, (*path[:-1], PlanPlace(asked)), collective.attribute_values())


# ----------------------------------------------------------------------------
# Logical clocks: the time of an event is one more than the latest time of the events on which it depends.

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
        counts = np.empty(len(pairs), np.int64)
        counts[order] = np.arange(len(pairs)) - np.repeat(fresh, np.diff(fresh, append=len(pairs)))
        return counts

    def _read(self, events: Sequence[Array]) -> None:
        """Compute the times of events: one more than the device's last event, or later if the device had to wait."""
        roles = SpotRoles.of(self.modules, self.extent)
        talking = np.array([roles.depends_on_others(path) for path in self.paths], bool)
        numbers = np.flatnonzero(talking[self.spot])
        waits = np.zeros(len(self.device), np.int64)
        waits[numbers] = self._waiting_times(roles, numbers, _before(events, numbers))
        self.time = np.empty(len(self.device), np.int64)
        for own_events in events:
            self.time[own_events] = np.arange(1, len(own_events) + 1) + np.cumsum(waits[own_events])
        self.since = self.time - waits

    def _waiting_times(self, roles: SpotRoles, numbers: Array, before: Iterable[Any]) -> list[int]:
        """The time that the device waited at each of these events; `before` has the earlier events of each device."""
        times = []
        known: dict[tuple[int, int], Role] = {}
        columns = (column.tolist() for column in (numbers, self.device[numbers], self.spot[numbers]))
        for number, device, spot, self._before in zip(*columns, before, strict=True):
            role = known.get((device, spot))
            if role is None:
                role = known[device, spot] = roles.role(device, self.paths[spot])
            reached = _TIMES[role.event](self, number, device, role)
            waited = max(0, reached - self._last_time(device) - 1)
            self._waited[device] += waited
            times.append(waited)
        return times

    def _last_time(self, device: int) -> int:
        """The time of a device's last event before the current event."""
        before: int = self._before[device]
        return before + self._waited[device]

    def meetings(self) -> list[TracedMeeting]:
        met = self._met.values()
        return [
            TracedMeeting(c, role.group, time, tuple(events)) for time, role, events in met if (c := role.collective)
        ]

    def _arrived_at(self, number: int, device: int, role: Role) -> int:
        self._started[self._round(device, role)][device] = self._last_time(device) + 1
        return 0

    def _completed_at(self, number: int, device: int, role: Role) -> int:
        """The time at which all members of a round get the result: after the last member has arrived or started."""
        key = self._round(device, role)
        met = self._met.get(key)
        if met is None:
            started = self._started.get(key, {})
            soonest = 1 + max(started.get(member) or self._last_time(member) for member in role.group)
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
            self._posted[role.channel, source, device].append(self._last_time(device) + 1)
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
        self._sent[wire].append((number, max(self._last_time(device) + 1, posted)))
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
            time = max(self._last_time(source), self._posted[wire].popleft()) + 1
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
        table: Iterable[Any] = np.array([own_events.searchsorted(numbers) for own_events in events]).T.tolist()
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
