"""The wait graph of a level: what the items of one device wait for on others, by the rules of `properties/waiting.py`.

A collective that several devices come to is one node, and so are loops and conditionals that run together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, field

from ...properties.effects import TRANSFERS, collective_in, start_of
from ...properties.host import rendezvous_of
from ...properties.sites import Site
from ...properties.waiting import CHANNEL, EVENTS, FEED, KINDS, POSTED, RECEIVED, SENT, SOURCE, EventKind, takes_item

if TYPE_CHECKING:
    from .level_run import LevelRun


@define(eq=False)
class ChannelNodes:
    """One channel from one device to another, and for each kind of event the nodes that have it, in order."""

    source: int
    target: int
    nodes: dict[EventKind, list[int]] = field(factory=lambda: {POSTED: [], SENT: [], RECEIVED: []})


@define(eq=False)
class WaitGraph:
    """The construction of the nodes of a run and of the edges between devices."""

    run: LevelRun
    meets: dict[Hashable, int] = field(factory=dict)
    groups: dict[int, tuple[int, ...]] = field(factory=dict)
    channels: dict[tuple[int, int, int], ChannelNodes] = field(factory=dict)
    starts: dict[Hashable, dict[int, int]] = field(factory=dict)
    dones: dict[tuple[Hashable, tuple[int, ...]], list[int]] = field(factory=dict)
    asked: dict[tuple[int, str], dict[int, list[int]]] = field(factory=dict)
    answered: dict[tuple[int, str], dict[int, list[int]]] = field(factory=dict)
    fed: dict[int, int] = field(factory=dict)
    turns: dict[tuple[int, Hashable], dict[Hashable, int]] = field(factory=dict)

    def build(self) -> dict[int, int]:
        """Make nodes and edges; the node of the first item of each device."""
        skeletons, found, count = self.run.level.skeletons, {}, 0
        for device, skeleton in skeletons.items():
            found[device] = count
            self.run.node_of[device] = [*range(count, count + len(skeleton.items))]
            count += len(skeleton.items)
        self.run.pending = [0] * count
        for device, skeleton in skeletons.items():
            for number, item in enumerate(skeleton.items):
                add = _ADDERS.get(item.instruction.opcode, WaitGraph._unit)
                if add is not None:
                    add(self, device, number, item)
        self._edges()
        return found

    def _node(self, device: int, number: int) -> int:
        return self.run.node_of[device][number]

    def _unit(self, device: int, number: int, item: Site) -> None:
        key = self.run.level.companions.get((device, number), (device, number))
        self._meeting(device, number, ("unit", key), ())

    def _blocking(self, device: int, number: int, item: Site) -> None:
        self._meeting(device, number, *self._meeting_key(device, item))

    def _start(self, device: int, number: int, item: Site) -> None:
        key, _ = self._meeting_key(device, item)
        self.starts.setdefault(key, {})[device] = self._node(device, number)

    def _done(self, device: int, number: int, item: Site) -> None:
        start = start_of(item.instruction)
        assert start is not None
        self.dones.setdefault(self._meeting_key(device, Site(item.path, start)), []).append(self._node(device, number))

    def _new(self) -> int:
        """A new node that is no item of one device."""
        node = len(self.run.pending)
        self.run.pending.append(0)
        self.run.shared[node] = []
        return node

    def _meeting_key(self, device: int, site: Site) -> tuple[Hashable, tuple[int, ...]]:
        context, collective = self.run.context, collective_in(site.instruction)
        assert collective is not None
        group = context.program.group(collective, device)
        key = context.identity.of(context.program.class_of[device].module, site), group[0]  # groups are disjoint
        if not site.path:
            return (*key, 0), group
        turns = self.turns.setdefault((device, key), {})  # a computation that is called twice arrives twice
        return (*key, turns.setdefault(site.key, len(turns))), group

    def _meeting(self, device: int, number: int, key: Hashable, group: tuple[int, ...]) -> None:
        node = self.meets.get(key)
        if node is None:
            node = self.meets[key] = self._new()
            self.groups[node] = group
        self.run.shared[node].append((device, number))
        self.run.replaced.add(self._node(device, number))
        self.run.node_of[device][number] = node

    def _take_item(self, device: int, number: int, item: Site) -> None:
        counts = self.run.context.infeed
        if not takes_item(item.instruction):
            return
        self.fed[device] = self.fed.get(device, 0) + 1
        if counts is not None and self.fed[device] > counts.get(device, 0):
            node = self._node(device, number)
            self.run.starved.add(node)
            self.run.pending[node] += 1

    def _host(self, answers: Sequence[int], device: int, name: str) -> None:
        """Each result of a host function waits for the operands of its round, which the device itself sends."""
        for operands in self.asked.get((device, name), {}).values():
            for answer, operand in zip(answers, operands, strict=False):
                self.run.require(answer, operand)

    def _edges(self) -> None:
        for (device, name), channels in self.answered.items():
            for answers in channels.values():
                self._host(answers, device, name)
        for key, node in self.meets.items():
            self._member_edges(node, self.groups[node], self.starts.get(key, {}))
        for channel in self.channels.values():
            self._channel_edges(channel)
        for (key, group), dones in self.dones.items():
            hub = self.meets[key] if key in self.meets else self._hub(self.starts.get(key, {}), group)
            for done in dones:
                self.run.require(done, hub)

    def _member_edges(self, node: int, group: Sequence[int], starts: Mapping[int, int]) -> None:
        """Edges of a collective: it waits for all members, also those that have started it."""
        here = {*starts, *(device for device, _ in self.run.shared[node])}
        if len(group) > len(here):
            self.run.require_absent(node, [device for device in group if device not in here])
        for start in starts.values():
            self.run.require(node, start)

    def _hub(self, starts: Mapping[int, int], group: Sequence[int]) -> int:
        """A hub, a node without members: done once all devices of the group have started."""
        hub = self._new()
        for member in group:
            if member in starts:
                self.run.require(hub, starts[member])
        absent = [member for member in group if member not in starts]
        if absent:
            self.run.require_absent(hub, absent)
        return hub

    def _channel_edges(self, channel: ChannelNodes) -> None:
        """Each event of a channel waits for the event with its number, or an earlier one where it is buffered."""
        buffers = self.run.context.send_buffers
        for event, nodes in channel.nodes.items():
            awaited = event.awaits
            if nodes and awaited is not None:
                if event.is_buffered and buffers:
                    nodes = nodes[len(nodes) - event.needed(len(nodes), buffers) :]
                self._wait(nodes, channel.nodes[awaited], channel.source if awaited.end == SOURCE else channel.target)

    def _wait(self, nodes: Sequence[int], needs: Sequence[int], device: int) -> None:
        """Each node waits for the need with its number; where there is none, for a device that never arrives."""
        for node, need in zip(nodes, needs, strict=False):
            self.run.require(node, need)
        if len(nodes) > len(needs):
            for node in nodes[len(needs) :]:
                self.run.require_absent(node, [device])


def _adder(events: Sequence[EventKind]) -> Callable[[WaitGraph, int, int, Site], None] | None:
    """How an item with these events gets its node and its edges; None where it has none, so that nothing waits."""
    if not events:
        return None
    if events[0].within == CHANNEL:
        return _transfer(events[0])
    if events[0].within == FEED:
        return WaitGraph._take_item
    waits = [event.awaits is not None for event in events]
    return WaitGraph._start if not any(waits) else WaitGraph._done if all(waits) else WaitGraph._blocking


def _transfer(event: EventKind) -> Callable[[WaitGraph, int, int, Site], None]:
    """How an item with this event of a channel enters the nodes of that channel."""
    is_source = event.end == SOURCE

    def add(graph: WaitGraph, device: int, number: int, item: Site) -> None:
        run, instruction = graph.run, item.instruction
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        peer = None if half is None else run.context.transfers.peer(half, device)
        if peer is None:
            if half is not None and event is not POSTED and (name := rendezvous_of(half)):
                rounds = graph.asked if is_source else graph.answered
                nodes = rounds.setdefault((device, name), {}).setdefault(instruction.attributes.channel_id, [])
                nodes.append(run.node_of[device][number])
            return
        source, target = (device, peer) if is_source else (peer, device)
        key = instruction.attributes.channel_id, source, target
        channel = graph.channels.get(key)
        if channel is None:
            channel = graph.channels[key] = ChannelNodes(source, target)
        channel.nodes[event].append(run.node_of[device][number])

    return add


_ADDERS = {opcode: _adder(EVENTS[kind]) for opcode, kind in KINDS.items()}
