"""Logical time: an event comes one after all that had to come before it, on its device and on those it waited for."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.attributes import Array
from xbuild.graph import Instruction, Module
from xbuild.scheduling.effects import DONE_OF, START_OF, collective_in, start_of
from xbuild.scheduling.groups import group_of
from xbuild.trace import Meeting, Transfer

from ..identity import Identities
from ..lines import Path, Place
from ..requests import Request
from ..wires import Peers


@frozen(eq=False, slots=False)
class Role:
    """A spot of a program as the clock reads it: what it waits for, and whom it meets or passes a value to."""

    rule: Callable[[Clock, int, int, Role], int]
    request: Request
    collective: Instruction | None = None
    key: Hashable = None
    group: tuple[int, ...] = ()

    @cached_property
    def channel(self) -> int:
        channel: int = self.request.attributes["channel_id"]
        return channel


@define(eq=False, slots=False)
class Clock:
    """Reads the events in order, one by one those that communicate; the others follow on their devices.

    Gives the columns `time`, `since` and `count`, the meetings and the transfers.
    """

    modules: Sequence[Module]
    extent: tuple[int, int]
    device: Array
    spot: Array
    paths: Sequence[Path]
    time: Array = field(init=False)
    since: Array = field(init=False)
    transfers: list[Transfer] = field(factory=list)
    _events: list[list[int]] = field(init=False)
    _turn: Array = field(init=False)
    _last: list[tuple[int, int]] = field(init=False)
    _at: int = 0
    _met: dict[Hashable, tuple[int, Instruction, tuple[int, ...], list[int]]] = field(factory=dict)
    _rounds: Counter[Hashable] = field(factory=Counter)
    _started: dict[Hashable, dict[int, int]] = field(factory=lambda: defaultdict(dict))
    _posted: dict[Hashable, deque[int]] = field(factory=lambda: defaultdict(deque))
    _sent: dict[Hashable, deque[tuple[int, int]]] = field(factory=lambda: defaultdict(deque))
    _ahead: dict[Hashable, deque[tuple[int, int]]] = field(factory=lambda: defaultdict(deque))
    _peers: Peers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._events = [np.flatnonzero(self.device == n).tolist() for n in range(len(self.modules))]
        self._turn = np.zeros(len(self.device), np.int64)
        for events in self._events:
            self._turn[events] = np.arange(1, len(events) + 1)
        self._last = [(0, 0)] * len(self.modules)
        self._peers = Peers(list(self.modules))
        self._read()

    def count(self) -> Array:
        """How often the device of each event had been at its spot before."""
        pairs = self.device.astype(np.int64) * max(len(self.paths), 1) + self.spot
        order = np.argsort(pairs, kind="stable")
        fresh = np.flatnonzero(np.diff(pairs[order], prepend=-1))
        found = np.empty(len(pairs), np.int64)
        found[order] = np.arange(len(pairs)) - np.repeat(fresh, np.diff(fresh, append=len(pairs)))
        return found

    def _read(self) -> None:
        """Time runs on by one from event to event of a device, and leaps where it had to wait."""
        talking = [spot for spot, path in enumerate(self.paths) if _talks(path[-1].instruction)]
        roles = [_roles_of(self.modules, device) for device in range(len(self.modules))]
        waits = np.zeros(len(self.device), np.int64)
        for number in np.flatnonzero(np.isin(self.spot, talking)).tolist():
            device = int(self.device[number])
            path = self.paths[int(self.spot[number])]
            known = roles[device].get(id(path))
            if known is None:
                known = roles[device][id(path)] = path, self._role(device, path)
            role = known[1]
            self._at = number
            soonest = self._now(device) + 1
            reached = max(soonest, role.rule(self, number, device, role))
            waits[number] = reached - soonest
            self._last[device] = (int(self._turn[number]), reached)
        self.time = self._turn.copy()
        for events in self._events:
            self.time[events] += np.cumsum(waits[events])
        self.since = self.time - waits

    def _now(self, device: int) -> int:
        """The time of the last event of a device before the one that is read."""
        turn, time = self._last[device]
        return time + bisect_left(self._events[device], self._at) - turn

    def meetings(self) -> list[Meeting]:
        return [
            Meeting(instruction, group, time, tuple(events)) for time, instruction, group, events in self._met.values()
        ]

    def _role(self, device: int, path: Path) -> Role:
        instruction = path[-1].instruction
        start = start_of(instruction) if instruction.opcode in START_OF else None
        asked = start or instruction
        collective = collective_in(asked)
        if collective is None:
            return Role(_RULES[instruction.opcode], _request(path, asked, asked))
        rule = Clock._done if start else Clock._start if instruction.opcode in DONE_OF else Clock._meet
        request = _request(path, asked, collective)
        group = group_of(collective, device, *self.extent)
        return Role(rule, request, collective, (self._identities.of(self.modules[device], request), group), group)

    @cached_property
    def _identities(self) -> Identities:
        return Identities(self.modules)

    def _meet(self, number: int, device: int, role: Role) -> int:
        """Members of one round of a collective get the result at one time: after the last has come."""
        return self._together(number, role, self._round(device, role))

    def _start(self, number: int, device: int, role: Role) -> int:
        self._started[self._round(device, role)][device] = self._now(device) + 1
        return 0

    def _done(self, number: int, device: int, role: Role) -> int:
        return self._together(number, role, self._round(device, role, done=True))

    def _together(self, number: int, role: Role, key: Hashable) -> int:
        """The first time at which all of the group have come, or started; those who come later keep it."""
        if key not in self._met:
            assert role.collective is not None
            started = self._started.get(key, {})
            soonest = 1 + max(started.get(member) or self._now(member) for member in role.group)
            self._met[key] = soonest, role.collective, role.group, []
        self._met[key][3].append(number)
        return self._met[key][0]

    def _round(self, device: int, role: Role, done: bool = False) -> Hashable:
        """The turn of a collective that a device comes to."""
        turn = role.key, device, done
        self._rounds[turn] += 1
        return role.key, self._rounds[turn]

    def _recv(self, number: int, device: int, role: Role) -> int:
        source = self._peers.source(role.request, device)
        if source is not None:
            self._posted[role.channel, source, device].append(self._now(device) + 1)
        return 0

    def _send(self, number: int, device: int, role: Role) -> int:
        """After its recv was posted, unless a buffer took it."""
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

    def _recv_done(self, number: int, device: int, role: Role) -> int:
        """After the send, which may be told later where the sender was waiting for this recv."""
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


_RULES: dict[str, Any] = {"send": Clock._send, "recv": Clock._recv, "recv_done": Clock._recv_done}


def _roles_of(modules: Sequence[Module], device: int) -> dict[int, tuple[Path, Role]]:
    """The roles of the spots of a device, kept with its module, by the other modules that it runs with."""
    known: dict[Any, dict[int, tuple[Path, Role]]] = vars(modules[device]).setdefault("_roles", {})
    return known.setdefault((device, *modules), {})


def _talks(instruction: Instruction) -> bool:
    """Whether its time may depend on other devices."""
    if instruction.opcode in START_OF and instruction.opcode not in _RULES:
        start = start_of(instruction)
        return start is not None and collective_in(start) is not None
    return instruction.opcode in _RULES or collective_in(instruction) is not None


def _request(path: Path, asked: Instruction, collective: Instruction) -> Request:
    return Request(asked, (*path[:-1], Place(asked)), collective.attribute_values())
