"""Simulation without values: the events of each device in one order and scenario, and their totals if all is known.

Sections:

    Simulation without values
    Totals of events if all decisions are known
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from ...process.limits import ask
from ...properties.effects import (
    LOOPS,
    START_OF,
    TRANSFERS,
    UNITS,
    CallStep,
    Path,
    collective_in,
    communicates_anywhere,
    communicates_itself,
    is_with_host,
    remembered,
    rendezvous_of,
    start_of,
    steps,
)
from ...properties.sites import Site, members, site_key, transfers_of
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
from ..dataflow.decisions import Decisions
from ..deadlock.level_run import LevelContext
from ..model.program import DeviceClass

# ----------------------------------------------------------------------------
# Simulation without values: the events of each device in one order and scenario, and where the devices stop

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

    def record(self, device: int, done: Counts) -> None:
        done[device][self.does] += 1
        if self.common is not None:
            done[ALL][self.common] += 1


@frozen
class OpenPoint:
    """A point of a computation at which the order is open."""

    options: tuple[Instruction, ...]
    path: Path


Walk: TypeAlias = Callable[[Computation], Iterable[Instruction | tuple[Instruction, ...]]]


Waiter = TypeVar("Waiter")


@define(eq=False)
class Happened(Generic[Waiter]):
    """How many events of each key each device has had, and who waits until it is enough of them."""

    counts: dict[int, Counter[EventKey]] = field(factory=lambda: defaultdict(Counter))
    _waiting: dict[Need, list[Waiter]] = field(factory=dict)

    def missing(self, needs: Iterable[Need]) -> Need | None:
        """The first of these that is not met; None if all are."""
        for need in needs:
            device, key, count = need
            if self.counts[device][key] < count:
                return need
        return None

    def wait(self, need: Need, waiter: Waiter) -> None:
        """Return a waiter from `record` once a need, which is not met yet, is met."""
        self._waiting.setdefault(need, []).append(waiter)

    def record(self, device: int, event: SimulatedEvent) -> Sequence[Waiter]:
        """Count an event of a device, and return those who waited for it."""
        event.record(device, self.counts)
        if not self._waiting:
            return ()
        woken = self._waiting.pop((device, event.does, self.counts[device][event.does]), [])
        if event.common is not None:
            woken += self._waiting.pop((ALL, event.common, self.counts[ALL][event.common]), [])
        return woken


def stopped_events(traces: Mapping[int, Sequence[SimulatedEvent]]) -> dict[int, SimulatedEvent]:
    """The event at which each device stops; empty if all devices end."""
    happened = Happened[int]()
    at = dict.fromkeys(traces, 0)
    moving = [*traces]
    while moving:
        device = moving.pop()
        events, here = traces[device], at[device]
        while here < len(events):
            need = happened.missing(events[here].needs)
            if need is not None:
                happened.wait(need, device)
                break
            moving += happened.record(device, events[here])
            here += 1
        at[device] = here
    return {device: events[at[device]] for device, events in traces.items() if at[device] < len(events)}


def event_totals(traces: Mapping[int, Sequence[SimulatedEvent]]) -> Counts:
    """The number of events of each device, by key."""
    found: dict[int, Counter[EventKey]] = {device: Counter() for device in (ALL, *traces)}
    for device, events in traces.items():
        for event in events:
            event.record(device, found)
    return found


def is_short_of_events(traces: Mapping[int, Sequence[SimulatedEvent]]) -> bool:
    """Whether, in every order, a device needs more events than another has."""
    done = event_totals(traces)
    return not all(event.is_possible(done) for events in traces.values() for event in events)


def communicating_order(
    device_class: DeviceClass, counts: Callable[[Instruction], bool] = communicates_anywhere
) -> Walk:
    """The communicating instructions of a computation, or those that `counts`, in the given or recorded order."""
    known: dict[Computation, tuple[Instruction, ...]] = {}

    def walk(computation: Computation) -> tuple[Instruction, ...]:
        if computation not in known:
            known[computation] = tuple([i for i in device_class.order(computation) if counts(i)])
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


Walked = TypeVar("Walked")


@define
class ProgramWalker(Generic[Walked]):
    """The walk of one device through its program; an open point is yielded again until its order is chosen.

    A subclass says which instructions count (`counts_at`), and what each of them is on this device (`at`).
    """

    context: LevelContext
    device: int
    walk: Walk
    decide: Decide
    counts: MutableMapping[Hashable, int] = field(factory=Counter)
    steps: int = 0

    @property
    def program(self) -> DeviceClass:
        return self.context.program.class_of[self.device]

    def counts_at(self, instruction: Instruction) -> bool:
        """Whether the walk stops at an instruction, instead of entering what it calls."""
        return communicates_itself(instruction)

    @abstractmethod
    def at(self, instruction: Instruction, path: Path) -> Iterator[Walked]:
        """What an instruction is on this device."""

    def trace(self) -> Iterator[Walked | OpenPoint]:
        yield from self._run(self.program.module.entry, ())

    def _run(self, computation: Computation, path: Path) -> Iterator[Walked | OpenPoint]:
        for instruction in self.walk(computation):
            if isinstance(instruction, tuple):
                yield OpenPoint(instruction, path)
            elif self.counts_at(instruction):
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

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[CallStep]:
        """The calls that an instruction makes in this scenario, one after the other."""
        callees = [*steps(instruction)]
        if instruction.opcode not in UNITS:
            yield from callees
            return
        number = self.decide(instruction, path, self._next_number("unit", *site_key(instruction, path)) - 1)
        if instruction.opcode == "conditional":
            yield callees[number]
            return
        *condition, body = callees
        yield from condition
        for _ in range(number):
            self._step()
            yield body
            yield from condition

    def _next_number(self, *key: Hashable) -> int:
        self.counts[key] += 1
        return self.counts[key]


@define
class DeviceWalker(ProgramWalker[SimulatedEvent]):
    """The walk of one device through its program, as its events."""

    def events(self) -> tuple[SimulatedEvent, ...]:
        """All events, if every order is decided. Raises TooLongError."""
        return tuple(event for event in self.trace() if isinstance(event, SimulatedEvent))

    def at(self, instruction: Instruction, path: Path) -> Iterator[SimulatedEvent]:
        """The events of an instruction on this device, with what they wait for."""
        kinds = events_of(instruction)
        if kinds:
            yield from _EVENTS_WITHIN[kinds[0].within](self, Site(path, instruction), kinds)

    def _transfer_events(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        device, channel = self.device, site.channel
        for kind in kinds:
            peer = self.context.transfers.peer_at(site.instruction, kind.role, device)
            if peer is not None:
                source, target = (device, peer) if kind.role == "send" else (peer, device)
                count = self._next_number(kind, channel, source, target)
                needed = kind.needed(count, self.context.send_buffers) if kind.is_buffered else count
                is_free = kind.awaits is None or not needed
                needs = () if is_free else ((peer, (kind.awaits, channel, source, target), needed),)
                yield SimulatedEvent(site, (kind, channel, source, target), needs, None, (peer,) if needs else ())
            elif kind in (SENT, RECEIVED) and is_with_host(site.instruction):
                yield self._host_event(site, OPERAND if kind is SENT else RESULT)

    def _host_event(self, site: Site, kind: EventKind) -> SimulatedEvent:
        """An operand of a host function, or its result, which needs all operands of its round."""
        count = self._next_number(kind, site.channel)
        start = start_of(site.instruction) if kind is RESULT else None
        channels = operand_channels(self.program.module.entry).get(rendezvous_of(start) or "", ()) if start else ()
        needs = tuple((self.device, (OPERAND, channel), count) for channel in channels)
        return SimulatedEvent(site, (kind, site.channel), needs)

    def _feed_events(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        for kind in kinds:
            count, counts = self._next_number(kind), self.context.infeed
            starved = counts is not None and count > counts.get(self.device, 0)
            yield SimulatedEvent(site, (kind,), ((self.device, (kind.awaits,), count),) if starved else ())

    def _collective_events(self, site: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        """Arrival at a collective (by a start) and completion (by a done); for a group, those of its members."""
        instruction = site.instruction
        start = start_of(instruction) if instruction.opcode in START_OF else None
        for each in members(site if start is None else Site(site.path, start)):
            if each.instruction.opcode in TRANSFERS:
                yield from self._group_event(site, each, is_done=start is not None)
            else:
                yield from self._meeting_events(site, each, kinds)

    def _group_event(self, site: Site, half: Site, *, is_done: bool) -> Iterator[SimulatedEvent]:
        """The event of a send or recv of a group at its start, which waits for nobody, or at its done."""
        device, channel, role = self.device, half.channel, half.instruction.opcode
        peer = self.context.transfers.peer(half.instruction, device)
        if peer is None:
            return
        ends = (channel, device, peer) if role == "send" else (channel, peer, device)
        number = "number", half.key
        if not is_done:
            kind = SENT if role == "send" else POSTED
            self.counts[number] = self._next_number(kind, *ends)
            yield SimulatedEvent(site, (kind, *ends))
            return
        kind = ACCEPTED if role == "send" else RECEIVED
        assert kind.awaits is not None
        count = self.counts[number] if role == "send" else self._next_number(kind, *ends)
        needed = kind.needed(count, self.context.send_buffers) if kind.is_buffered else count
        needs = ((peer, (kind.awaits, *ends), needed),) if needed else ()
        yield SimulatedEvent(site, (kind, *ends), needs, None, (peer,) if needs else ())

    def _meeting_events(self, site: Site, begun: Site, kinds: Sequence[EventKind]) -> Iterator[SimulatedEvent]:
        collective = collective_in(begun.instruction)
        assert collective is not None
        group = self.context.program.group(collective, self.device)
        key = self.context.identity.key(self.program.module, begun, group)
        for kind in kinds:
            turn = self._next_number(kind, key)
            if kind.awaits is None:
                yield SimulatedEvent(site, (kind, key), common=(kind, key, turn))
            else:
                yield SimulatedEvent(site, (kind, key), ((ALL, (kind.awaits, key, turn), len(group)),), members=group)


_EVENTS_WITHIN: Mapping[str, Callable[[DeviceWalker, Site, Sequence[EventKind]], Iterator[SimulatedEvent]]] = {
    CHANNEL: DeviceWalker._transfer_events,
    COLLECTIVE: DeviceWalker._collective_events,
    FEED: DeviceWalker._feed_events,
}


# ----------------------------------------------------------------------------
# Totals of events if all decisions are known, multiplied by trip counts instead of simulated trip by trip


class UnknownError(Exception):
    """The number of times that a site is reached depends on data."""


def is_short_by_counts(context: LevelContext, decisions: Decisions) -> bool:
    """Whether in every order a device waits for more events than another has; False if counts depend on data."""
    try:
        found = {device: _EventTotals(context, decisions, device) for device in context.program.devices}
    except UnknownError:
        return False
    return any(found[other].done[key] < need for each in found.values() for other, key, need in each.needs())


@define(eq=False)
class _EventTotals:
    """The totals of one device by kind of event, and one event of each kind."""

    context: LevelContext
    decisions: Decisions
    device: int
    done: Counter[EventKey] = field(factory=Counter)
    _events: dict[EventKey, SimulatedEvent] = field(factory=dict)
    _tracer: DeviceWalker = field(init=False)

    def __attrs_post_init__(self) -> None:
        each = self.context.program.class_of[self.device]
        self._tracer = DeviceWalker(self.context, self.device, communicating_order(each), lambda *_: 0)
        self._run(each.module.entry, (), 1)

    def needs(self) -> Iterator[Need]:
        """How often another device must have which event, so that all events of this device happen."""
        for (kind, *rest), event in self._events.items():
            count = kind.needed(self.done[event.does], self.context.send_buffers)
            yield from ((member, (kind.awaits, *rest), count) for member in event.members)

    def _run(self, computation: Computation, path: Path, times: int) -> None:
        for instruction in self._tracer.walk(computation):
            assert isinstance(instruction, Instruction)
            if communicates_itself(instruction):
                for event in self._tracer.at(instruction, path):
                    self.done[event.does] += times
                    if event.members:
                        self._events[event.does] = event
            else:
                for step, count in self._entered(instruction, path, times):
                    if count:
                        self._run(step.computation, (*path, step), count)

    def _entered(self, instruction: Instruction, path: Path, times: int) -> Iterator[tuple[CallStep, int]]:
        """The callees of an instruction, and how often each runs in all."""
        callees = [*steps(instruction)]
        decided = self._decision_counts(instruction, path, times) if instruction.opcode in UNITS else {1: times}
        trips = sum(number * count for number, count in decided.items())
        for number, step in enumerate(callees):
            if instruction.opcode == "conditional":
                yield step, decided.get(number, 0)
            elif instruction.opcode in LOOPS:
                yield step, trips if number == len(callees) - 1 else trips + times
            else:
                yield step, times

    def _decision_counts(self, instruction: Instruction, path: Path, times: int) -> dict[int, int]:
        """How often each decision is made at a unit."""
        number = self.decisions.decided(self.device, instruction, path)
        if number is not None:
            return {number: times}
        turns = self.decisions.turns(self.device, instruction, path)
        if turns is None or turns.total != times:
            raise UnknownError
        return turns.count_decisions()
