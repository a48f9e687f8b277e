"""The joint graph: what the items of one device wait for on others.

Recv before send, send before recv-done; every member of a group before a collective, and before a done of one that was
started, where some may have started it and others come to it; loops and conditionals that run together as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, field

from ...properties.effects import collective_in, start_of
from ...properties.sites import KINDS, Site

if TYPE_CHECKING:
    from .run import Run


@define(eq=False)
class ChannelNodes:
    """One channel from one device to another: the nodes of its sends, its recvs and their dones, each in order."""

    source: int
    target: int
    sends: list[int] = field(factory=list)
    recvs: list[int] = field(factory=list)
    dones: list[int] = field(factory=list)


@define(eq=False)
class WaitGraph:
    """Makes the nodes of a run and the edges between devices."""

    run: Run
    meets: dict[Hashable, int] = field(factory=dict)
    groups: dict[int, tuple[int, ...]] = field(factory=dict)
    wires: dict[tuple[int, int, int], ChannelNodes] = field(factory=dict)
    starts: dict[Hashable, dict[int, int]] = field(factory=dict)
    dones: dict[tuple[Hashable, tuple[int, ...]], list[int]] = field(factory=dict)
    fed: dict[int, int] = field(factory=dict)
    turns: dict[tuple[int, Hashable], dict[Hashable, int]] = field(factory=dict)

    def join(self) -> dict[int, int]:
        """Make them; the number of the first item of each device."""
        skeletons, found, count = self.run.level.skeletons, {}, 0
        for device, skeleton in skeletons.items():
            found[device] = count
            self.run.node_of[device] = [*range(count, count + len(skeleton.items))]
            count += len(skeleton.items)
        self.run.pending = [0] * count
        for device, skeleton in skeletons.items():
            for number, item in enumerate(skeleton.items):
                join = _JOINED.get(item.instruction.opcode, WaitGraph._unit)
                if join is not None:
                    join(self, device, number, item)
        self._edges()
        return found

    def _node(self, device: int, number: int) -> int:
        return self.run.node_of[device][number]

    def _unit(self, device: int, number: int, item: Site) -> None:
        key = self.run.level.companions.get((device, number), (device, number))
        self._meeting(device, number, ("unit", key), ())

    def _met(self, device: int, number: int, item: Site) -> None:
        self._meeting(device, number, *self._meeting_key(device, item))

    def _begun(self, device: int, number: int, item: Site) -> None:
        key, _ = self._meeting_key(device, item)
        self.starts.setdefault(key, {})[device] = self._node(device, number)

    def _completed(self, device: int, number: int, item: Site) -> None:
        start = start_of(item.instruction)
        assert start is not None
        self.dones.setdefault(self._meeting_key(device, Site(item.path, start)), []).append(self._node(device, number))

    def _new(self) -> int:
        """A node beside those of the items."""
        node = len(self.run.pending)
        self.run.pending.append(0)
        self.run.together[node] = []
        return node

    def _meeting_key(self, device: int, site: Site) -> tuple[Hashable, tuple[int, ...]]:
        context, collective = self.run.context, collective_in(site.instruction)
        assert collective is not None
        group = context.program.group(collective, device)
        key = context.identity.of(context.program.class_of[device].module, site), group[0]  # groups share nobody
        if not site.path:
            return (*key, 0), group
        turns = self.turns.setdefault((device, key), {})  # a computation that is called again comes to it again
        return (*key, turns.setdefault(site.key, len(turns))), group

    def _meeting(self, device: int, number: int, key: Hashable, group: tuple[int, ...]) -> None:
        node = self.meets.get(key)
        if node is None:
            node = self.meets[key] = self._new()
            self.groups[node] = group
        self.run.together[node].append((device, number))
        self.run.joined.add(self._node(device, number))
        self.run.node_of[device][number] = node

    def _sent(self, device: int, number: int, item: Site) -> None:
        peer = self.run.context.transfers.peer(item.instruction, device)
        if peer is not None:
            self._wire(item.channel, device, peer).sends.append(self._node(device, number))

    def _posted(self, device: int, number: int, item: Site) -> None:
        peer = self.run.context.transfers.peer(item.instruction, device)
        if peer is not None:
            self._wire(item.channel, peer, device).recvs.append(self._node(device, number))

    def _received(self, device: int, number: int, item: Site) -> None:
        start = start_of(item.instruction)
        peer = None if start is None else self.run.context.transfers.peer(start, device)
        if peer is not None:
            self._wire(item.channel, peer, device).dones.append(self._node(device, number))

    def _wire(self, channel: int, source: int, target: int) -> ChannelNodes:
        key = channel, source, target
        wire = self.wires.get(key)
        if wire is None:
            wire = self.wires[key] = ChannelNodes(source, target)
        return wire

    def _fed(self, device: int, number: int, item: Site) -> None:
        counts = self.run.context.infeed
        self.fed[device] = self.fed.get(device, 0) + 1
        if counts is not None and self.fed[device] > counts.get(device, 0):
            node = self._node(device, number)
            self.run.starved.add(node)
            self.run.pending[node] += 1

    def _edges(self) -> None:
        for key, node in self.meets.items():
            self._gathered(node, self.groups[node], self.starts.get(key, {}))
        for wire in self.wires.values():
            self._wired(wire)
        for (key, group), dones in self.dones.items():
            hub = self.meets[key] if key in self.meets else self._hub(self.starts.get(key, {}), group)
            for done in dones:
                self.run.require(done, hub)

    def _gathered(self, node: int, group: Sequence[int], starts: Mapping[int, int]) -> None:
        """A collective waits for who has only started it, too."""
        here = {*starts, *(device for device, _ in self.run.together[node])}
        if len(group) > len(here):
            self.run.never(node, [device for device in group if device not in here])
        for start in starts.values():
            self.run.require(node, start)

    def _hub(self, starts: Mapping[int, int], group: Sequence[int]) -> int:
        """A node that no device has: all members have started."""
        hub = self._new()
        for member in group:
            if member in starts:
                self.run.require(hub, starts[member])
        absent = [member for member in group if member not in starts]
        if absent:
            self.run.never(hub, absent)
        return hub

    def _wired(self, wire: ChannelNodes) -> None:
        """A send waits for its recv, but for those that the buffers take; a recv-done for its send."""
        buffered = int(min(self.run.context.send_buffers, len(wire.sends)))
        self._wait(wire.sends[buffered:], wire.recvs, wire.target)
        self._wait(wire.dones, wire.sends, wire.source)

    def _wait(self, nodes: Sequence[int], needs: Sequence[int], device: int) -> None:
        """Each waits for the one at its place; those that find none, for a device that will not come."""
        for node, need in zip(nodes, needs, strict=False):
            self.run.require(node, need)
        for node in nodes[len(needs) :]:
            self.run.never(node, [device])


_BY_KIND = {
    "meet": WaitGraph._met,
    "send": WaitGraph._sent,
    "recv": WaitGraph._posted,
    "recv_done": WaitGraph._received,
    "start": WaitGraph._begun,
    "done": WaitGraph._completed,
    "infeed": WaitGraph._fed,
}
_JOINED = {opcode: _BY_KIND.get(kind) for opcode, kind in KINDS.items()}
