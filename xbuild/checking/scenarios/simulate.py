"""A run without values, in one order and with every decision made: what each device does, step by step, to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import Path, Step, acts, collective_in, start_of, steps, talks
from ...properties.sites import Site
from ..dataflow.analysis import key_of
from ..deadlock.run import Context
from ..model.flattening import UNITS
from ..model.program import DeviceClass
from .external_waits import reads

Decide: TypeAlias = Callable[[Instruction, Path, int], int]  # at a place, and how often the device was there before
Need: TypeAlias = tuple[int, Hashable, int]  # a device must have done this so often
Counts: TypeAlias = Mapping[int, Counter[Hashable]]  # what each device has done so far

MOST_EVENTS = 100_000  # of all devices together
ALL = -1  # no device: what devices do together
ITEM = "item"  # what nobody does: the infeed has no more


class TooLongError(Exception):
    """The run would have more events than are worth following."""


@frozen
class SimulatedEvent:
    """A step of a device: what it does, what it needs of others; all together do what is `common`."""

    site: Site
    does: Hashable
    needs: tuple[Need, ...] = ()
    common: Hashable = None
    members: tuple[int, ...] = ()  # who takes part

    @property
    def is_starved(self) -> bool:
        return any(key == ITEM for _, key, _ in self.needs)

    def is_possible(self, done: Counts) -> bool:
        return all(done[device][key] >= count for device, key, count in self.needs)

    def happen(self, device: int, done: Counts) -> None:
        done[device][self.does] += 1
        if self.common is not None:
            done[ALL][self.common] += 1


@frozen
class Open:
    """A place where it is not decided what comes next in a computation."""

    options: tuple[Instruction, ...]
    path: Path


Walk: TypeAlias = Callable[[Computation], Iterable[Instruction | tuple[Instruction, ...]]]


def stopping(traces: Mapping[int, Sequence[SimulatedEvent]]) -> dict[int, SimulatedEvent]:
    """Where devices stop; none where all end."""
    done: dict[int, Counter[Hashable]] = {device: Counter() for device in (ALL, *traces)}
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


def totals(traces: Mapping[int, Sequence[SimulatedEvent]]) -> Counts:
    """What each device does in all."""
    found: dict[int, Counter[Hashable]] = {device: Counter() for device in (ALL, *traces)}
    for device, events in traces.items():
        for event in events:
            event.happen(device, found)
    return found


def never(traces: Mapping[int, Sequence[SimulatedEvent]]) -> bool:
    """Whether a device needs what another does too seldom, in whatever order."""
    done = totals(traces)
    return not all(event.is_possible(done) for events in traces.values() for event in events)


def order_of(each: DeviceClass) -> Walk:
    """All that communicates, in the order that binds, or the recorded."""
    known: dict[Computation, tuple[Instruction, ...]] = {}

    def walk(computation: Computation) -> tuple[Instruction, ...]:
        if computation not in known:
            known[computation] = tuple([i for i in each.order(computation) if talks(i)])
        return known[computation]

    return walk


@define
class Tracer:
    """The walk of one device through its program; an open place is met again until it is decided."""

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
        """All of it, where every order is decided. Raises TooLongError."""
        return tuple(event for event in self.trace() if isinstance(event, SimulatedEvent))

    def trace(self) -> Iterator[SimulatedEvent | Open]:
        yield from self._run(self.program.module.entry, ())

    def _run(self, computation: Computation, path: Path) -> Iterator[SimulatedEvent | Open]:
        for instruction in self.walk(computation):
            if isinstance(instruction, tuple):
                yield Open(instruction, path)
            elif acts(instruction):
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
        """The calls that it makes, one after the other."""
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
        """What the device does and needs when it comes to an instruction."""
        opcode, site = instruction.opcode, Site(path, instruction)
        if opcode in ("send", "recv", "recv_done"):
            yield from self._transfer(site, opcode)
        elif opcode == "infeed":
            if reads(instruction):
                yield self._infeed(site)
        elif opcode not in ("send_done", "outfeed"):
            yield from self._collective(site)

    def _transfer(self, site: Site, opcode: str) -> Iterator[SimulatedEvent]:
        role = "send" if opcode == "send" else "recv"
        peer = self.context.transfers.channels[site.channel].peers.get((role, self.device))
        if peer is None:
            return
        ends = (self.device, peer) if role == "send" else (peer, self.device)
        count = self._counted(opcode, site.channel)
        needs: tuple[Need, ...] = ()
        if opcode == "send" and count > self.context.send_buffers:
            needs = ((peer, ("recv", site.channel, *ends), count - int(self.context.send_buffers)),)
        elif opcode == "recv_done":
            needs = ((peer, ("send", site.channel, *ends), count),)
        yield SimulatedEvent(site, (opcode, site.channel, *ends), needs, members=(peer,) if needs else ())

    def _infeed(self, site: Site) -> SimulatedEvent:
        count, counts = self._counted("infeed"), self.context.infeed
        starved = counts is not None and count > counts.get(self.device, 0)
        return SimulatedEvent(site, "infeed", ((self.device, ITEM, 1),) if starved else ())

    def _collective(self, site: Site) -> Iterator[SimulatedEvent]:
        """Coming to it, and going on when all have come; a start does the first, its done the second."""
        instruction = site.instruction
        is_start = instruction.opcode.endswith("_start")
        start = start_of(instruction) if instruction.opcode.endswith("_done") else None
        begun = site if start is None else Site(site.path, start)
        collective = collective_in(begun.instruction)
        assert collective is not None
        group = self.context.program.group(collective, self.device)
        key = self.context.identity.of(self.program.module, begun), group[0]  # groups share nobody
        if start is None:
            turn = self._counted("came", key)
            yield SimulatedEvent(site, ("came", key), common=(key, turn))
        if not is_start:
            turn = self._counted("met", key)
            yield SimulatedEvent(site, ("met", key), ((ALL, (key, turn), len(group)),), members=group)

    def _counted(self, *key: Hashable) -> int:
        self.counts[key] += 1
        return self.counts[key]
