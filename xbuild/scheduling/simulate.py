"""A run without values, in one order and with every decision made: what each device does, step by step, to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from ..graph import Computation, Instruction
from .effects import Path, Site, Step, acts, collective_in, communicates, start_of, steps
from .outside import reads
from .program import Class
from .run import World

Decide: TypeAlias = Callable[[int, Instruction, Path], int]
Need: TypeAlias = tuple[int, Hashable, int]  # a device must have done this so often

MOST_EVENTS = 20_000
ITEM = "item"  # what nobody does: the infeed has no more


class TooLongError(Exception):
    """The run would have more events than are worth following."""


@frozen
class Event:
    """A step of a device: what it does, what it needs of others."""

    site: Site
    does: Hashable
    needs: tuple[Need, ...] = ()

    @property
    def is_starved(self) -> bool:
        return any(key == ITEM for _, key, _ in self.needs)


def standing(world: World, decide: Decide) -> dict[int, Event]:
    """Where devices stop in the orders that bind, or the recorded; none where all end. Raises TooLongError."""
    traces = [[*_Tracer(world, decide, device).trace()] for device in world.program.devices]
    number = {device: n for n, device in enumerate(world.program.devices)}
    done: list[Counter[Hashable]] = [Counter() for _ in traces]
    at = [0] * len(traces)
    moved = True
    while moved:
        moved = False
        for n, events in enumerate(traces):
            while at[n] < len(events) and all(done[number[d]][key] >= k for d, key, k in events[at[n]].needs):
                done[n][events[at[n]].does] += 1
                at[n] += 1
                moved = True
    return {device: traces[n][at[n]] for device, n in number.items() if at[n] < len(traces[n])}


def takes(world: World, decide: Decide, device: int) -> bool:
    """Whether a device asks for an item of its infeed."""
    return any(event.does == "infeed" for event in _Tracer(world, decide, device).trace())


@define
class _Tracer:
    """The walk of one device through its program."""

    world: World
    decide: Decide
    device: int
    counts: Counter[Hashable] = field(factory=Counter)
    steps: int = 0

    @property
    def program(self) -> Class:
        return self.world.program.class_of[self.device]

    def trace(self) -> Iterator[Event]:
        yield from self._run(self.program.module.entry, ())

    def _run(self, computation: Computation, path: Path) -> Iterator[Event]:
        for instruction in self.program.order(computation):
            if acts(instruction):
                self.steps += 1
                if self.steps > MOST_EVENTS // len(self.world.program.devices):
                    raise TooLongError
                yield from self._events(Site(path, instruction))
            elif any(map(communicates, instruction.called)):
                for step in self._entered(instruction, path):
                    yield from self._run(step.computation, (*path, step))

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[Step]:
        """The calls that it makes, one after the other."""
        every = [*steps(instruction)]
        if instruction.opcode == "conditional":
            yield every[self.decide(self.device, instruction, path)]
        elif instruction.opcode == "while":
            condition, body = every
            yield condition
            for _ in range(self.decide(self.device, instruction, path)):
                self.steps += 1
                if self.steps > MOST_EVENTS:
                    raise TooLongError
                yield body
                yield condition
        else:
            yield from every

    def _events(self, site: Site) -> Iterator[Event]:
        opcode = site.instruction.opcode
        if opcode in ("send", "recv", "recv_done"):
            yield from self._transfer(site, opcode)
        elif opcode == "infeed":
            if reads(site.instruction):
                yield self._infeed(site)
        elif opcode not in ("send_done", "outfeed"):
            yield from self._collective(site)

    def _transfer(self, site: Site, opcode: str) -> Iterator[Event]:
        role = "send" if opcode == "send" else "recv"
        peer = self.world.transfers.channels[site.channel].peers.get((role, self.device))
        if peer is None:
            return
        ends = (self.device, peer) if role == "send" else (peer, self.device)
        count = self._counted(opcode, site.channel)
        needs: tuple[Need, ...] = ()
        if opcode == "send" and count > self.world.send_buffers:
            needs = ((peer, ("recv", site.channel, *ends), count - int(self.world.send_buffers)),)
        elif opcode == "recv_done":
            needs = ((peer, ("send", site.channel, *ends), count),)
        yield Event(site, (opcode, site.channel, *ends), needs)

    def _infeed(self, site: Site) -> Event:
        count, counts = self._counted("infeed"), self.world.infeed
        starved = counts is not None and count > counts.get(self.device, 0)
        return Event(site, "infeed", ((self.device, ITEM, 1),) if starved else ())

    def _collective(self, site: Site) -> Iterator[Event]:
        """Coming to it, and going on when all have come; a start does the first, its done the second."""
        instruction = site.instruction
        is_start = instruction.opcode.endswith("_start")
        start = start_of(instruction) if instruction.opcode.endswith("_done") else None
        begun = site if start is None else Site(site.path, start)
        collective = collective_in(begun.instruction)
        assert collective is not None
        group = self.world.program.group(collective, self.device)
        key = self.world.identity.of(self.program.module, begun), group
        if start is None:
            yield Event(site, ("came", key))
        if not is_start:
            yield Event(site, ("met", key), self._all_of(group, key))

    def _all_of(self, group: Sequence[int], key: Hashable) -> tuple[Need, ...]:
        count = self._counted("met", key)
        return tuple((member, ("came", key), count) for member in group)

    def _counted(self, *key: Hashable) -> int:
        self.counts[key] += 1
        return self.counts[key]
