"""Who meets whom: entries of communicating instructions, by the scheduler's matching of channels and collectives."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from attrs import define, evolve, field

from ..checking.deadlock.level_run import Context
from ..core.graph import Instruction
from ..costs.axes import Axes
from ..costs.collectives import Grid, collective_cost
from ..properties.effects import TRANSFERS, Path, collective_in, start_of
from ..properties.sites import Site, members
from ..properties.waiting import EVENTS, KINDS
from .collective_times import CollectiveTime, collective_time
from .device_classes import DeviceClasses
from .durations import Durations
from .machines import Machine
from .tape import Action, Entry

_ACTIONS: Mapping[str, Action] = {"recv": "post", "send_done": "sent", "recv_done": "receive"}


@define(eq=False)
class LinkTimes:
    """What crosses links, instruction by instruction: seconds, the algorithm, and the axes."""

    context: Context
    axes: Axes
    machine: Machine
    _known: dict[Instruction, CollectiveTime] = field(factory=dict, init=False)

    def of(self, instruction: Instruction) -> CollectiveTime:
        """The time of a collective, a send or a recv at one execution."""
        if instruction not in self._known:
            grid = Grid(*self.context.program.grid)
            cost = collective_cost(instruction, grid, self.axes)
            self._known[instruction] = collective_time(cost, self.machine, self._sizes(), self._groups(instruction))
        return self._known[instruction]

    def seen(self) -> Mapping[Instruction, CollectiveTime]:
        """The times of all collectives and transfers that were asked for."""
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
class Matching:
    """The entries of one device's communicating instructions; what meets is told by classes of devices."""

    context: Context
    classes: DeviceClasses
    device: int
    durations: Durations
    times: LinkTimes

    def entries(self, instruction: Instruction, path: Path) -> Iterator[Entry]:
        """The entries of an instruction: one for each of its events, and what it does by itself."""
        kind, site = KINDS[instruction.opcode], Site(path, instruction)
        if instruction.opcode in TRANSFERS or instruction.opcode in TRANSFERS.values():
            yield from self._half(instruction, kind)
        elif kind in ("infeed", "outfeed"):
            yield Entry("compute", instruction, self.durations.roofline(instruction).seconds)
        else:
            start = start_of(instruction) if kind == "done" else instruction
            for each in members(Site(path, start)) if start is not None else ():
                yield from self._begun(site, each, kind)

    def _begun(self, site: Site, begun: Site, kind: str) -> Iterator[Entry]:
        """The entries of a collective, or of a send or recv of a group, at its start or done."""
        if begun.instruction.opcode in TRANSFERS:
            yield from self._of_group(site.instruction, begun.instruction, is_done=kind == "done")
            return
        arrival = self._arrival(site.instruction, begun)
        for event in EVENTS[kind]:
            yield evolve(arrival, action="complete") if event.awaits else arrival

    def _arrival(self, instruction: Instruction, begun: Site) -> Entry:
        """The arrival at a collective, by the classes of the group's devices."""
        collective = collective_in(begun.instruction)
        assert collective is not None
        program = self.context.program
        met = self.classes.classes(program.group(collective, self.device))
        identity = self.context.identity.of(program.class_of[self.device].module, begun)
        time = self.times.of(collective)
        seconds = max(time.seconds, self.durations.roofline(collective).seconds)
        links = time.axes or ("links",)
        return Entry("arrive", instruction, seconds, (identity, met), met, links, inner=collective)

    def _half(self, instruction: Instruction, kind: str) -> Iterator[Entry]:
        """The entry of a send, a recv, or the done of one, on a channel with a device at the other end."""
        role = "send" if kind.startswith("send") else "recv"
        peer = self.context.transfers.peer_at(instruction, role, self.device)
        if peer is None:
            return
        key, half = self._channel(instruction, role, peer), self._start(instruction, role)
        if kind == "send":
            yield Entry("send", instruction, self.times.of(instruction).seconds, key, links=(key[1:],), inner=half)
        else:
            yield Entry(_ACTIONS[kind], instruction, key=key, inner=half)

    def _start(self, instruction: Instruction, role: str) -> Instruction:
        """The send or recv that an instruction is or completes; where loops carry it, one of its channel."""
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        if half is not None:
            return half
        halves = self.context.transfers.channels[instruction.attributes.channel_id].halves[role]
        return next(each.instruction for each in halves if self.device in each.on)

    def _channel(self, instruction: Instruction, role: str, peer: int) -> tuple[Hashable, ...]:
        ends = (self.device, peer) if role == "send" else (peer, self.device)
        return (instruction.attributes.channel_id, *(self.classes.of[end] for end in ends))

    def _of_group(self, instruction: Instruction, half: Instruction, *, is_done: bool) -> Iterator[Entry]:
        peer = self.context.transfers.peer(half, self.device)
        if peer is None:
            return
        key = self._channel(half, half.opcode, peer)
        if half.opcode == "recv":
            yield Entry("receive" if is_done else "post", instruction, key=key, inner=half)
        elif is_done:
            yield Entry("accept", instruction, key=key, inner=half)
            yield Entry("sent", instruction, key=key, inner=half)
        else:
            seconds = self.times.of(half).seconds
            yield Entry("send", instruction, seconds, key, links=(key[1:],), blocks=False, inner=half)
