"""The tape of a device: its actions in order, with durations, and with the keys by which devices meet.

Sections:

    The tape of a device
    Classes of devices that do the same
    Entries of communicating instructions
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import refuse

from ..checking.deadlock.level_run import LevelContext
from ..checking.deadlock.skeleton import OrderOf
from ..core.graph import Computation, Instruction
from ..costs.collectives import Axes, DeviceCounts, collective_cost
from ..properties.effects import (
    DONE_OF,
    HALVES,
    LOOPS,
    START_OF,
    TRANSFERS,
    CallStep,
    Path,
    collective_in,
    communicates,
    communicates_itself,
    origin,
    start_of,
    steps,
)
from ..properties.sites import Site, collectives_of, members, site_key, transfers_of
from ..properties.trip_counts import known_trips, never_ends
from ..properties.waiting import EVENTS, KINDS
from .durations import CollectiveTime, Durations, collective_time
from .machines import Machine

# ----------------------------------------------------------------------------
# The tape of a device: its actions in order, with durations, and with the keys by which devices meet

Action: TypeAlias = Literal[
    "compute", "post", "send", "sent", "accept", "receive", "arrive", "complete", "begin", "end", "loop"
]
"""What a device does: computes; posts a recv, sends, waits until it has sent, until its send is accepted, until it has
received; arrives at a collective, waits until that is complete; begins and ends a parallel action; runs a loop."""


@frozen(eq=False)
class TapeEntry:
    """One action of a tape.

    `inner` is the collective, send or recv that an instruction is, starts or completes.
    `seconds` is the duration of work, or of communication on the links; `key` identifies the channel, collective or
    loop; `members` are the classes of devices that meet; `links` the occupied links; `blocks` says whether a send waits
    for its recv. A loop has the tapes of its condition and body, and its trips.
    """

    action: Action
    instruction: Instruction
    seconds: float = 0.0
    key: Hashable = None
    members: tuple[int, ...] = ()
    links: tuple[Hashable, ...] = ()
    blocks: bool = True
    condition: Tape = ()
    body: Tape = ()
    trips: int = 0
    inner: Instruction | None = None


Tape: TypeAlias = tuple[TapeEntry, ...]
Meetings: TypeAlias = Callable[[Instruction, Path], Iterator[TapeEntry]]
Decided: TypeAlias = Callable[[Instruction, Path], int | None]

MOST_ENTRIES = 4_000_000
"""The most entries of all tapes, with unrolled loops; a program with more is refused."""


@define(eq=False)
class TapeWriter:
    """Writes the tape of a device: computations that communicate are entered, others are one entry.

    `meetings` returns the entries of a communicating instruction, `decided` the branch or trips of a unit if they are
    known. If it `unrolls`, loops that communicate are written trip by trip.
    """

    durations: Durations
    order: OrderOf
    meetings: Meetings
    decided: Decided
    unrolls: bool
    most: int = MOST_ENTRIES
    size: int = field(default=0, init=False)

    def tape(self, computation: Computation, path: Path = ()) -> Tape:
        """The tape of a computation at a path of calls. Raises limit_trips if it is too long."""
        found: list[TapeEntry] = []
        for instruction in self.order(computation):
            found += self._entries(instruction, path)
        self._count(len(found))
        return tuple(found)

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > self.most:
            refuse(
                "limit_trips",
                f"timeline: loops that communicate unroll to more than {self.most:,} steps on a device",
                "reduce the trip counts; fewer trips show the same steady state",
            )

    def _entries(self, instruction: Instruction, path: Path) -> Iterator[TapeEntry]:
        if communicates_itself(instruction):
            yield from self.meetings(instruction, path)
        elif any(map(communicates, instruction.called)):
            yield from self._entered(instruction, path)
        elif instruction.opcode in HALVES:
            if instruction.opcode in DONE_OF:
                yield TapeEntry("begin", instruction, self.durations.total_seconds(instruction), key=instruction)
            elif instruction.opcode in START_OF:
                yield TapeEntry("end", instruction, key=origin(instruction))
        elif seconds := self.durations.total_seconds(instruction):
            yield TapeEntry("compute", instruction, seconds)

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[TapeEntry]:
        """The entries of a call, of the branch that is taken, or of a loop."""
        callees = [*steps(instruction)]
        if instruction.opcode in LOOPS:
            yield from self._loop(instruction, callees, path)
        elif instruction.opcode == "conditional":
            yield from self._inside(callees[self._branch(instruction, path)], path)
        else:
            for step in callees:
                yield from self._inside(step, path)

    def _inside(self, step: CallStep, path: Path) -> Tape:
        return self.tape(step.computation, (*path, step))

    def _branch(self, instruction: Instruction, path: Path) -> int:
        """The known branch, else the one with the most work, as in costs."""
        decided = self.decided(instruction, path)
        if decided is not None:
            return decided
        ((called, _, _),) = self.durations.analysis.calls(instruction)
        return [*instruction.called].index(called)

    def _loop(self, loop: Instruction, callees: list[CallStep], path: Path) -> Iterator[TapeEntry]:
        trips, is_known = self._trips(loop, path)
        *test, body = (self._inside(step, path) for step in callees)
        condition: Tape = test[0] if test else ()
        if self.unrolls:
            self._count(trips * (len(condition) + len(body)))
            yield from (*(condition + body) * trips, *(condition if is_known else ()))
        else:
            key = site_key(loop, path)
            yield TapeEntry("loop", loop, key=key, condition=condition, body=body, trips=trips, blocks=is_known)

    def _trips(self, loop: Instruction, path: Path) -> tuple[int, bool]:
        """How often a loop runs, and whether that is known; one trip if it is not."""
        found = 1 if never_ends(loop) else known_trips(loop)
        if found is None:
            found = self.decided(loop, path)
        return (1, False) if found is None else (found, True)


# ----------------------------------------------------------------------------
# Classes of devices that do the same: their members run one program and meet members of the same classes

Meeting: TypeAlias = "np.ndarray | tuple[np.ndarray, ...]"
"""The peer of each device, or the groups of devices that meet."""


@define(eq=False)
class DeviceClasses:
    """The class of each device, by its place among the sorted devices, and the first device of each class."""

    devices: tuple[int, ...]
    label: np.ndarray
    first: dict[int, int] = field(init=False)
    of: dict[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.of = dict(zip(self.devices, self.label.tolist(), strict=True))
        self.first = {}
        for device, label in self.of.items():
            self.first.setdefault(label, device)

    def members(self, label: int) -> tuple[int, ...]:
        """The devices of a class."""
        return tuple(np.asarray(self.devices)[self.label == label].tolist())

    def classes(self, devices: Sequence[int]) -> tuple[int, ...]:
        """The classes of these devices, each once."""
        return tuple(sorted({self.of[device] for device in devices}))


def device_classes(context: LevelContext, decisions: Sequence[Hashable]) -> DeviceClasses:
    """The coarsest classes whose members all meet devices of the same classes.

    `decisions` has for each device the branches and trips that it takes. Partition refinement: devices are separated if
    the classes of their groups or peers differ, until nothing changes.
    """
    devices = context.program.devices
    place = {device: number for number, device in enumerate(devices)}
    module = {each: number for number, each in enumerate(context.program.classes)}
    label = _number_keys(
        [(module[context.program.class_of[d]], way) for d, way in zip(devices, decisions, strict=True)]
    )
    if len(set(label.tolist())) == len(devices):
        return DeviceClasses(devices, label)
    meetings = [*_meetings(context, place)]
    while True:
        parts = [label, *(_number_classes_met(meeting, label) for meeting in meetings)]
        finer = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max(initial=0) == label.max(initial=0):
            return DeviceClasses(devices, _number_keys(label.tolist()))
        label = finer


def _number_keys(keys: Sequence[Hashable]) -> np.ndarray:
    """A number for each key, in the order in which they come."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


def _meetings(context: LevelContext, place: dict[int, int]) -> Iterator[Meeting]:
    """For each distinct grouping the groups, and for each transfer the peers, by the places of devices."""
    known: set[Hashable] = set()
    for module in dict.fromkeys(device_class.module for device_class in context.program.classes):
        for site in collectives_of(module.entry):
            collective = collective_in(site.instruction)
            assert collective is not None
            groups = context.program.groups(collective)
            if id(groups) not in known:  # groups are kept, and collectives that name the same ones share them
                known.add(id(groups))
                yield tuple(np.array([place[device] for device in group if device in place]) for group in groups)
        for site in transfers_of(module.entry):
            peers = _place_of_peers(context, site.instruction, place)
            if peers.tobytes() not in known:
                known.add(peers.tobytes())
                yield peers


def _place_of_peers(context: LevelContext, half: Instruction, place: dict[int, int]) -> np.ndarray:
    """The place of each device's peer; -1 if a device does not take part."""
    peers = (context.transfers.peer(half, device) for device in place)
    return np.array([-1 if peer is None else place[peer] for peer in peers], dtype=np.int64)


def _number_classes_met(meeting: Meeting, label: np.ndarray) -> np.ndarray:
    """For each device a number for the classes of the devices that it meets, and for how many they are."""
    if isinstance(meeting, np.ndarray):
        return np.where(meeting >= 0, label[meeting], -1)
    found, numbers = np.full(len(label), -1, dtype=np.int64), dict[bytes, int]()
    for group in meeting:
        if len(group):
            found[group] = numbers.setdefault(np.sort(label[group]).tobytes(), len(numbers))
    return found


# ----------------------------------------------------------------------------
# Entries of communicating instructions, by the check's matching of channels and collectives

_ACTION_OF_KIND: Mapping[str, Action] = {"recv": "post", "send_done": "sent", "recv_done": "receive"}


@define(eq=False)
class LinkTimes:
    """The time of each communicating instruction on the links: seconds, algorithm, axes."""

    context: LevelContext
    axes: Axes
    machine: Machine
    _known: dict[Instruction, CollectiveTime] = field(factory=dict, init=False)

    def of(self, instruction: Instruction) -> CollectiveTime:
        """The time of a collective, a send or a recv at one execution."""
        if instruction not in self._known:
            grid = DeviceCounts(*self.context.program.grid)
            cost = collective_cost(instruction, grid, self.axes)
            self._known[instruction] = collective_time(cost, self.machine, self._sizes(), self._groups(instruction))
        return self._known[instruction]

    def all_times(self) -> Mapping[Instruction, CollectiveTime]:
        """The times of all collectives and transfers that were computed so far."""
        return dict(self._known)

    def _sizes(self) -> Mapping[str, int]:
        return {name: size for name, size, _ in self.axes.places}

    def _groups(self, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
        if self.machine.network is None:
            return ()
        if instruction.opcode in TRANSFERS:
            channel = self.context.transfers.channels[instruction.attributes.channel_id]
            return tuple((device, peer) for (half, device), peer in channel.peers.items() if half is instruction)
        pairs = getattr(instruction.attributes, "source_target_pairs", ())
        return tuple(pairs) if pairs else self.context.program.groups(instruction)


@define(eq=False)
class CommunicationEntries:
    """The entries of one device's communicating instructions; devices meet by their classes."""

    context: LevelContext
    classes: DeviceClasses
    device: int
    durations: Durations
    times: LinkTimes

    def entries(self, instruction: Instruction, path: Path) -> Iterator[TapeEntry]:
        """The entries of an instruction: one for each of its events, and its own work."""
        kind, site = KINDS[instruction.opcode], Site(path, instruction)
        if instruction.opcode in TRANSFERS or instruction.opcode in TRANSFERS.values():
            yield from self._transfer_entries(instruction, kind)
        elif kind in ("infeed", "outfeed"):
            yield TapeEntry("compute", instruction, self.durations.roofline(instruction).seconds)
        else:
            start = start_of(instruction) if kind == "done" else instruction
            for each in members(Site(path, start)) if start is not None else ():
                yield from self._collective_entries(site, each, kind)

    def _collective_entries(self, site: Site, begun: Site, kind: str) -> Iterator[TapeEntry]:
        """The entries of a collective, or of a send or recv of a group, at its start or done."""
        if begun.instruction.opcode in TRANSFERS:
            yield from self._group_entries(site.instruction, begun.instruction, is_done=kind == "done")
            return
        arrival = self._arrival(site.instruction, begun)
        for event in EVENTS[kind]:
            yield evolve(arrival, action="complete") if event.awaits else arrival

    def _arrival(self, instruction: Instruction, begun: Site) -> TapeEntry:
        """The arrival at a collective, by the classes of the group's devices."""
        collective = collective_in(begun.instruction)
        assert collective is not None
        program = self.context.program
        met = self.classes.classes(program.group(collective, self.device))
        identity = self.context.identity.of(program.class_of[self.device].module, begun)
        time = self.times.of(collective)
        seconds = max(time.seconds, self.durations.roofline(collective).seconds)
        links = time.axes or ("links",)
        return TapeEntry("arrive", instruction, seconds, (identity, met), met, links, inner=collective)

    def _transfer_entries(self, instruction: Instruction, kind: str) -> Iterator[TapeEntry]:
        """The entry of a send, a recv, or the done of one, on a channel with a device at the other end."""
        role = "send" if kind.startswith("send") else "recv"
        peer = self.context.transfers.peer_at(instruction, role, self.device)
        if peer is None:
            return
        key, half = self._channel(instruction, role, peer), self._start_of(instruction, role)
        if kind == "send":
            yield TapeEntry("send", instruction, self.times.of(instruction).seconds, key, links=(key[1:],), inner=half)
        else:
            yield TapeEntry(_ACTION_OF_KIND[kind], instruction, key=key, inner=half)

    def _start_of(self, instruction: Instruction, role: str) -> Instruction:
        """The send or recv that an instruction is or completes; if a loop carries it, one of its channel."""
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        if half is not None:
            return half
        halves = self.context.transfers.channels[instruction.attributes.channel_id].halves[role]
        return next(half.instruction for half in halves if self.device in half.on)

    def _channel(self, instruction: Instruction, role: str, peer: int) -> tuple[Hashable, ...]:
        ends = (self.device, peer) if role == "send" else (peer, self.device)
        return (instruction.attributes.channel_id, *(self.classes.of[end] for end in ends))

    def _group_entries(self, instruction: Instruction, half: Instruction, *, is_done: bool) -> Iterator[TapeEntry]:
        peer = self.context.transfers.peer(half, self.device)
        if peer is None:
            return
        key = self._channel(half, half.opcode, peer)
        if half.opcode == "recv":
            yield TapeEntry("receive" if is_done else "post", instruction, key=key, inner=half)
        elif is_done:
            yield TapeEntry("accept", instruction, key=key, inner=half)
            yield TapeEntry("sent", instruction, key=key, inner=half)
        else:
            seconds = self.times.of(half).seconds
            yield TapeEntry("send", instruction, seconds, key, links=(key[1:],), blocks=False, inner=half)
