"""Simulation without values: the events of each device, in one order and one scenario, and where the devices stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import (
    START_OF,
    TRANSFERS,
    UNITS,
    Path,
    Step,
    collective_in,
    communicates_anywhere,
    communicates_itself,
    is_with_host,
    remembered,
    start_of,
    steps,
)
from ...properties.host import rendezvous_of
from ...properties.sites import Site, members, transfers_of
from ...properties.waiting import (
    ACCEPTED,
    CHANNEL,
    COLLECTIVE,
    FEED,
    OPERAND,
    POSTED,
    RECEIVED,
    RESULT,
    SENT,
    SUPPLIED,
    EventKind,
    events_of,
)
from ..dataflow.analysis import key_of
from ..deadlock.level_run import Context
from ..model.program import DeviceClass

Decide: TypeAlias = Callable[[Instruction, Path, int], int]  # by unit, path, and how often the device was there before
EventKey: TypeAlias = tuple[
    Any, ...
]  # a kind of event, and within what it is counted: a channel and its ends, a collective
Need: TypeAlias = tuple[int, EventKey, int]  # a device must have had this many of these events
Counts: TypeAlias = Mapping[int, Counter[EventKey]]  # how many events of each key each device has had

MOST_EVENTS = 100_000  # of all devices together
ALL = -1  # in place of a device: events counted over all devices


class TooLongError(Exception):
    """The simulation would have more than `MOST_EVENTS` events."""


@frozen
class SimulatedEvent:
    """An event of a device: its key `does`, the events that it `needs`; `common` is a key counted over all devices."""

    site: Site
    does: EventKey
    needs: tuple[Need, ...] = ()
    common: EventKey | None = None
    members: tuple[int, ...] = ()  # the devices that it waits for

    @property
    def is_starved(self) -> bool:
        """Whether it waits for an item that the infeed does not have."""
        return any(key == (SUPPLIED,) for _, key, _ in self.needs)

    def is_possible(self, done: Counts) -> bool:
        return all(done[device][key] >= count for device, key, count in self.needs)

    def happen(self, device: int, done: Counts) -> None:
        done[device][self.does] += 1
        if self.common is not None:
            done[ALL][self.common] += 1


@frozen
class Open:
    """A point of a computation at which the order is not decided."""

    options: tuple[Instruction, ...]
    path: Path


Walk: TypeAlias = Callable[[Computation], Iterable[Instruction | tuple[Instruction, ...]]]


def standing_events(traces: Mapping[int, Sequence[SimulatedEvent]]) -> dict[int, SimulatedEvent]:
    """The event at which each device stops; empty where all devices end."""
    done: dict[int, Counter[EventKey]] = {device: Counter() for device in (ALL, *traces)}
    at = dict.fromkeys(traces, 0)
    moved = True
    while moved:
        moved = False
        for device, events in traces.items():
            here = first = at[device]
            while here < len(events) and events[here].is_possible(done):
                events[here].happen(device, done)
                here += 1
            at[device] = here
            moved |= here > first
    return {device: events[at[device]] for device, events in traces.items() if at[device] < len(events)}


def event_totals(traces: Mapping[int, Sequence[SimulatedEvent]]) -> Counts:
    """The number of events of each device, by key."""
    found: dict[int, Counter[EventKey]] = {device: Counter() for device in (ALL, *traces)}
    for device, events in traces.items():
        for event in events:
            event.happen(device, found)
    return found


def is_short_of_events(traces: Mapping[int, Sequence[SimulatedEvent]]) -> bool:
    """Whether, in every order, a device needs more events than another has."""
    done = event_totals(traces)
    return not all(event.is_possible(done) for events in traces.values() for event in events)


def communicating_order(each: DeviceClass) -> Walk:
    """The communicating instructions of a computation, in the given or recorded order."""
    known: dict[Computation, tuple[Instruction, ...]] = {}

    def walk(computation: Computation) -> tuple[Instruction, ...]:
        if computation not in known:
            known[computation] = tuple([i for i in each.order(computation) if communicates_anywhere(i)])
        return known[computation]

    return walk


@remembered
def operand_channels(entry: Computation) -> Mapping[str, tuple[int, ...]]:
    """For each host function, by its rendezvous, the channels of its operands."""
    found: dict[str, tuple[int, ...]] = {}
    for site in transfers_of(entry):
        name = rendezvous_of(site.instruction)
        if name is not None and site.instruction.opcode == "send":
            found[name] = (*found.get(name, ()), site.channel)
    return found


@define
class Tracer:
    """The walk of one device through its program; an open point is yielded again until its order is decided."""

    context: Context
    device: int
    walk: Walk
    decide: Decide
    counts: Counter[Hashable] = field(factory=Counter)
    steps: int = 0

    @property
    def program(self) -> DeviceClass:
        return self.context.program.class_of[self.device]

    def events(self) -> tuple[SimulatedEvent, ...]:
        """All events, where every order is decided. Raises TooLongError."""
        return tuple(event for event in self.trace() if isinstance(event, SimulatedEvent))

    def trace(self) -> Iterator[SimulatedEvent | Open]:
        yield from self._run(self.program.module.entry, ())

    def _run(self, computation: Computation, path: Path) -> Iterator[SimulatedEvent | Open]:
        for instruction in self.walk(computation):
            if isinstance(instruction, tuple):
                yield Open(instruction, path)
            elif communicates_itself(instruction):
                self._step()
                yield from self.at(instruction, path)
            else:
                for step in self._entered(instruction, path):
                    yield from self._run(step.computation, (*path, step))

    def _step(self) -> None:
        self.steps += 1
        ask()
        if self.steps > MOST_EVENTS // len(self.context.program.devices):
            raise TooLongError

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[Step]:
        """The calls that an instruction makes in this scenario, one after the other."""
        every = [*steps(instruction)]
        if instruction.opcode not in UNITS:
            yield from every
            return
        number = self.decide(instruction, path, self._counted("unit", *key_of(instruction, path)) - 1)
        if instruction.opcode == "conditional":
            yield every[number]
            return
        *condition, body = every
        yield from condition
        for _ in range(number):
            self._step()
            yield body
            yield from condition

    def at(self, instruction: Instruction, path: Path) -> Iterator[SimulatedEvent]:
        """The events of an instruction on this device, with what they wait for."""
        kinds = events_of(instruction)
        if kinds:
            yield from _EVENTS_WITHIN[kinds[0].within](self, Site(path, instruction), kinds)

    def _transfer(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        device, channel = self.device, site.channel
        for kind in kinds:
            peer = self.context.transfers.peer_at(site.instruction, kind.role, device)
            if peer is not None:
                source, target = (device, peer) if kind.role == "send" else (peer, device)
                count = self._counted(kind, channel, source, target)
                needed = kind.needed(count, self.context.send_buffers) if kind.is_buffered else count
                is_free = kind.awaits is None or not needed
                needs = () if is_free else ((peer, (kind.awaits, channel, source, target), needed),)
                yield SimulatedEvent(site, (kind, channel, source, target), needs, None, (peer,) if needs else ())
            elif kind in (SENT, RECEIVED) and is_with_host(site.instruction):
                yield self._hosted(site, OPERAND if kind is SENT else RESULT)

    def _hosted(self, site: Site, kind: EventKind) -> SimulatedEvent:
        """An operand of a host function, or its result, which needs all operands of its round."""
        count = self._counted(kind, site.channel)
        start = start_of(site.instruction) if kind is RESULT else None
        channels = operand_channels(self.program.module.entry).get(rendezvous_of(start) or "", ()) if start else ()
        needs = tuple((self.device, (OPERAND, channel), count) for channel in channels)
        return SimulatedEvent(site, (kind, site.channel), needs)

    def _feed(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        for kind in kinds:
            count, counts = self._counted(kind), self.context.infeed
            starved = counts is not None and count > counts.get(self.device, 0)
            yield SimulatedEvent(site, (kind,), ((self.device, (kind.awaits,), count),) if starved else ())

    def _collective(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        """The arrival at a collective and its completion: of a start the one, of its done the other; so of a group."""
        instruction = site.instruction
        start = start_of(instruction) if instruction.opcode in START_OF else None
        for each in members(site if start is None else Site(site.path, start)):
            if each.instruction.opcode in TRANSFERS:
                yield from self._of_group(site, each, is_done=start is not None)
            else:
                yield from self._met(site, each, kinds)

    def _of_group(self, site: Site, half: Site, *, is_done: bool) -> Iterator[SimulatedEvent]:
        """The event of a send or recv of a group at its start, which waits for nobody, or at its done."""
        device, channel, role = self.device, half.channel, half.instruction.opcode
        peer = self.context.transfers.peer(half.instruction, device)
        if peer is None:
            return
        ends = (channel, device, peer) if role == "send" else (channel, peer, device)
        number = "number", half.key
        if not is_done:
            kind = SENT if role == "send" else POSTED
            self.counts[number] = self._counted(kind, *ends)
            yield SimulatedEvent(site, (kind, *ends))
            return
        kind = ACCEPTED if role == "send" else RECEIVED
        assert kind.awaits is not None
        count = self.counts[number] if role == "send" else self._counted(kind, *ends)
        needed = kind.needed(count, self.context.send_buffers) if kind.is_buffered else count
        needs = ((peer, (kind.awaits, *ends), needed),) if needed else ()
        yield SimulatedEvent(site, (kind, *ends), needs, None, (peer,) if needs else ())

    def _met(self, site: Site, begun: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        collective = collective_in(begun.instruction)
        assert collective is not None
        group = self.context.program.group(collective, self.device)
        key = self.context.identity.of(self.program.module, begun), group[0]  # groups are disjoint
        for kind in kinds:
            turn = self._counted(kind, key)
            if kind.awaits is None:
                yield SimulatedEvent(site, (kind, key), common=(kind, key, turn))
            else:
                yield SimulatedEvent(site, (kind, key), ((ALL, (kind.awaits, key, turn), len(group)),), members=group)

    def _counted(self, *key: Hashable) -> int:
        self.counts[key] += 1
        return self.counts[key]


_EVENTS_WITHIN: Mapping[str, Callable[[Tracer, Site, Sequence[EventKind]], Iterator[SimulatedEvent]]] = {
    CHANNEL: Tracer._transfer,
    COLLECTIVE: Tracer._collective,
    FEED: Tracer._feed,
}
