"""The joint graph: what the items of one device wait for on others.

Recv before send, send before recv-done; every member of a group before a collective, and before a done of one that was
started, where some may have started it and others come to it; loops and conditionals that run together as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, field

from .effects import Site, collective_in, start_of
from .skeleton import Item

if TYPE_CHECKING:
    from .run import Place, Run


@define(eq=False)
class Joiner:
    """Makes the nodes of a run and the edges between devices."""

    run: Run
    meets: dict[Hashable, int] = field(factory=dict)
    groups: dict[int, tuple[int, ...]] = field(factory=dict)
    wires: dict[tuple[int, int, int], dict[str, list[int]]] = field(factory=dict)
    starts: dict[Hashable, dict[int, int]] = field(factory=dict)
    dones: dict[tuple[Hashable, tuple[int, ...]], list[int]] = field(factory=dict)
    fed: dict[int, int] = field(factory=dict)
    turns: dict[tuple[int, Hashable], dict[Hashable, int]] = field(factory=dict)

    def join(self) -> None:
        for device, skeleton in self.run.level.skeletons.items():
            nodes = self.run.node_of[device] = []
            for number, item in enumerate(skeleton.items):
                nodes.append(self._node(device, number, item))
        self._edges()

    def _node(self, device: int, number: int, item: Item) -> int:
        if item.kind == "meet":
            return self._meeting(device, number, *self._meeting_key(device, item.site))
        if item.kind == "unit":
            key = self.run.level.companions.get((device, number), (device, number))
            return self._meeting(device, number, ("unit", key), ())
        node = self._new(((device, number),))
        if item.kind in ("send", "recv"):
            self._transfer(device, node, item.site, item.kind)
        elif item.kind == "recv_done":
            start = start_of(item.instruction)
            if start is not None:
                self._transfer(device, node, Site(item.site.path, start), "recv_done")
        elif item.kind == "start":
            key, _ = self._meeting_key(device, item.site)
            self.starts.setdefault(key, {})[device] = node
        elif item.kind == "done":
            start = start_of(item.instruction)
            assert start is not None
            self.dones.setdefault(self._meeting_key(device, Site(item.site.path, start)), []).append(node)
        elif item.kind == "infeed":
            self._feed(device, node)
        return node

    def _new(self, members: Sequence[Place]) -> int:
        run = self.run
        run.members.append(members)
        run.pending.append(0)
        run.done.append(False)
        return len(run.members) - 1

    def _meeting_key(self, device: int, site: Site) -> tuple[Hashable, tuple[int, ...]]:
        world, collective = self.run.world, collective_in(site.instruction)
        assert collective is not None
        group = world.program.group(collective, device)
        key = world.identity.of(world.program.class_of[device].module, site), group
        if not site.path:
            return (*key, 0), group
        turns = self.turns.setdefault((device, key), {})  # a computation that is called again comes to it again
        return (*key, turns.setdefault(site.key, len(turns))), group

    def _meeting(self, device: int, number: int, key: Hashable, group: tuple[int, ...]) -> int:
        node = self.meets.get(key)
        if node is None:
            node = self.meets[key] = self._new([])
            self.groups[node] = group
        self.run.members[node].append((device, number))  # type: ignore[attr-defined]
        return node

    def _transfer(self, device: int, node: int, site: Site, role: str) -> None:
        peer = self.run.world.transfers.peer(site.instruction, device)
        if peer is not None:
            ends = (device, peer) if role == "send" else (peer, device)
            self.wires.setdefault((site.channel, *ends), {}).setdefault(role, []).append(node)

    def _feed(self, device: int, node: int) -> None:
        counts = self.run.world.infeed
        self.fed[device] = self.fed.get(device, 0) + 1
        if counts is not None and self.fed[device] > counts.get(device, 0):
            self.run.starved.add(node)
            self.run.pending[node] += 1

    def _edges(self) -> None:
        for key, node in self.meets.items():
            self._met(node, self.groups[node], self.starts.get(key, {}))
        for (_, source, target), ends in self.wires.items():
            self._wire(source, target, ends)
        for (key, group), dones in self.dones.items():
            hub = self.meets[key] if key in self.meets else self._hub(self.starts.get(key, {}), group)
            for done in dones:
                self.run.require(done, hub)

    def _met(self, node: int, group: Sequence[int], starts: Mapping[int, int]) -> None:
        """A collective waits for who has only started it, too."""
        here = {*starts, *(device for device, _ in self.run.members[node])}
        if len(group) > len(here):
            self.run.never(node, [device for device in group if device not in here])
        for start in starts.values():
            self.run.require(node, start)

    def _hub(self, starts: Mapping[int, int], group: Sequence[int]) -> int:
        """A node that no device has: all members have started."""
        hub = self._new(())
        self.run.needs[hub] = tuple(starts[member] for member in group if member in starts)
        self.run.pending[hub] = len(self.run.needs[hub])
        for start in self.run.needs[hub]:
            self.run.allows[start] = (*self.run.allows.get(start, ()), hub)
        absent = [member for member in group if member not in starts]
        if absent:
            self.run.never(hub, absent)
        return hub

    def _wire(self, source: int, target: int, ends: Mapping[str, list[int]]) -> None:
        sends, recvs = ends.get("send", []), ends.get("recv", [])
        buffers = self.run.world.send_buffers
        for number, send in enumerate(sends):
            if number >= buffers:
                number -= int(buffers)
                self._wait(send, recvs[number] if number < len(recvs) else None, target)
        for number, done in enumerate(ends.get("recv_done", [])):
            self._wait(done, sends[number] if number < len(sends) else None, source)

    def _wait(self, node: int, need: int | None, device: int) -> None:
        if need is None:
            self.run.never(node, [device])
        else:
            self.run.require(node, need)
