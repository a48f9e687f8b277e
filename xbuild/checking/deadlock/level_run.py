"""A run of one level without values: the wait graph, Kahn's algorithm on it, and a run in recorded order.

Sections:

    WaitGraph: what items wait for on other devices
    InOrderRun: a run in recorded order
    LevelRun: Kahn's algorithm on the wait graph
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from ...process.limits import ask
from ...process.progress import over
from ...properties.effects import TRANSFERS, Path, collective_in, rendezvous_of, start_of
from ...properties.sites import Site, members
from ...properties.waiting import CHANNEL, EVENTS, FEED, KINDS, POSTED, RECEIVED, SENT, SOURCE, EventKind, takes_item
from ..model.program import GridProgram
from ..structure.collective_matching import CollectiveIdentities
from ..structure.transfers import Transfers
from .skeleton import Skeleton

if TYPE_CHECKING:
    from ...core.graph import Instruction
    from ..structure.transfers import Channel


# ----------------------------------------------------------------------------
# WaitGraph: what items wait for on other devices
#
# By the rules of `properties/waiting.py`. A collective that several devices reach is one node, and so are loops and
# conditionals that run together.


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
    plain: dict[int, ChannelNodes] = field(factory=dict)  # of channels with one send and one recv, by number
    starts: dict[Hashable, dict[int, int]] = field(factory=dict)
    dones: dict[tuple[Hashable, tuple[int, ...]], list[int]] = field(factory=dict)
    sent_to_host: dict[tuple[int, str], dict[int, list[int]]] = field(factory=dict)
    received_from_host: dict[tuple[int, str], dict[int, list[int]]] = field(factory=dict)
    items_taken: dict[int, int] = field(factory=dict)
    sends: dict[tuple[int, Hashable], int] = field(factory=dict)  # of groups: their numbers in their channels
    dones_of_sends: dict[ChannelNodes, dict[int, int]] = field(factory=dict)
    """For sends of groups, by their numbers, the node that waits instead: that of the group's done."""
    turns: dict[tuple[int, Hashable], dict[Hashable, int]] = field(factory=dict)
    known_channels: Mapping[int, Channel] = field(init=False)
    """The channels of the program by their numbers."""

    def __attrs_post_init__(self) -> None:
        self.known_channels = self.run.context.transfers.channels

    def build(self) -> dict[int, int]:
        """Make nodes and edges, and return the node of the first item of each device."""
        skeletons, first, count = self.run.level.skeletons, {}, 0
        for device, skeleton in skeletons.items():
            first[device] = count
            self.run.node_of[device] = [*range(count, count + len(skeleton.items))]
            count += len(skeleton.items)
        self.run.pending = [0] * count
        for device, skeleton in over(skeletons.items(), "building the wait graph", "devices"):
            ask()
            for number, item in enumerate(skeleton.items):
                add = _ADDERS.get(item.instruction.opcode, WaitGraph._unit)
                if add is not None:
                    add(self, device, number, item)
        self._edges()
        return first

    def _node(self, device: int, number: int) -> int:
        return self.run.node_of[device][number]

    def _unit(self, device: int, number: int, item: Site) -> None:
        key = self.run.level.companions.get((device, number), (device, number))
        self._meeting(device, number, ("unit", key), ())

    def _blocking(self, device: int, number: int, item: Site) -> None:
        self._meeting(device, number, *self._meeting_key(device, item))

    def _start(self, device: int, number: int, item: Site) -> None:
        node = self._node(device, number)
        for site in members(item):
            if site.instruction.opcode not in TRANSFERS:
                key, _ = self._meeting_key(device, site)
                self.starts.setdefault(key, {})[device] = node
            elif (channel := self.channel(device, site.instruction)) is not None:
                channel.nodes[SENT if site.instruction.opcode == "send" else POSTED].append(node)
                self.sends[device, site.key] = len(channel.nodes[SENT]) - 1

    def _done(self, device: int, number: int, item: Site) -> None:
        start, node = start_of(item.instruction), self._node(device, number)
        assert start is not None
        for site in members(Site(item.path, start)):
            if site.instruction.opcode not in TRANSFERS:
                self.dones.setdefault(self._meeting_key(device, site), []).append(node)
            elif (channel := self.channel(device, site.instruction)) is None:
                continue
            elif site.instruction.opcode == "send":
                self.dones_of_sends.setdefault(channel, {})[self.sends[device, site.key]] = node
            else:
                channel.nodes[RECEIVED].append(node)

    def channel(self, device: int, half: Instruction) -> ChannelNodes | None:
        """The channel to or from the peer of a send or recv on a device; None if it has no peer."""
        number = half.attributes.channel_id
        channel = self.plain.get(number)
        if channel is not None:
            return channel
        known = self.known_channels[number]
        peer = known.peers.get((half, device))
        if peer is None:
            return None
        source, target = (device, peer) if half.opcode == "send" else (peer, device)
        key = number, source, target
        channel = self.channels.get(key)
        if channel is None:
            channel = self.channels[key] = ChannelNodes(source, target)
            if known.is_plain:
                self.plain[number] = channel
        return channel

    def _new(self) -> int:
        """A new node that is not an item of one device."""
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
        self.items_taken[device] = self.items_taken.get(device, 0) + 1
        if counts is not None and self.items_taken[device] > counts.get(device, 0):
            node = self._node(device, number)
            self.run.starved.add(node)
            self.run.pending[node] += 1

    def _host_edges(self, answers: Sequence[int], device: int, name: str) -> None:
        """Each result of a host function waits for the operands of its round, which the same device sends."""
        for operands in self.sent_to_host.get((device, name), {}).values():
            for answer, operand in zip(answers, operands, strict=False):
                self.run.require(answer, operand)

    def _edges(self) -> None:
        for (device, name), channels in self.received_from_host.items():
            for answers in channels.values():
                self._host_edges(answers, device, name)
        for key, node in self.meets.items():
            self._member_edges(node, self.groups[node], self.starts.get(key, {}))
        for channel in self.channels.values():
            self._channel_edges(channel)
        for (key, group), dones in self.dones.items():
            hub = self.meets[key] if key in self.meets else self._hub(self.starts.get(key, {}), group)
            for done in dones:
                self.run.require(done, hub)

    def _member_edges(self, node: int, group: Sequence[int], starts: Mapping[int, int]) -> None:
        """Edges of a collective: it waits for all members, including those that have started it."""
        here = {*starts, *(device for device, _ in self.run.shared[node])}
        if len(group) > len(here):
            self.run.require_absent(node, [device for device in group if device not in here])
        for start in starts.values():
            self.run.require(node, start)

    def _hub(self, starts: Mapping[int, int], group: Sequence[int]) -> int:
        """A hub, a node without members that is done once all devices of the group have started."""
        hub = self._new()
        for member in group:
            if member in starts:
                self.run.require(hub, starts[member])
        absent = [member for member in group if member not in starts]
        if absent:
            self.run.require_absent(hub, absent)
        return hub

    def _channel_edges(self, channel: ChannelNodes) -> None:
        """Each event of a channel waits for the event with its number, or for an earlier one if it is buffered."""
        buffers = self.run.context.send_buffers
        for event, nodes in channel.nodes.items():
            if event is SENT and channel in self.dones_of_sends:
                later = self.dones_of_sends[channel]
                nodes = [later.get(number, node) for number, node in enumerate(nodes)]
            awaited = event.awaits
            if nodes and awaited is not None:
                if event.is_buffered and buffers:
                    nodes = nodes[len(nodes) - event.needed(len(nodes), buffers) :]
                self._wait(nodes, channel.nodes[awaited], channel.source if awaited.end == SOURCE else channel.target)

    def _wait(self, nodes: Sequence[int], needs: Sequence[int], device: int) -> None:
        """Each node waits for the need with its number; if there is none, for a device that never arrives."""
        for node, need in zip(nodes, needs, strict=False):
            self.run.require(node, need)
        if len(nodes) > len(needs):
            for node in nodes[len(needs) :]:
                self.run.require_absent(node, [device])


def _adder_of(events: Sequence[EventKind]) -> Callable[[WaitGraph, int, int, Site], None] | None:
    """How an item with these events gets its node and its edges; None if it has no events, so that nothing waits."""
    if not events:
        return None
    if events[0].within == CHANNEL:
        return _channel_adder(events[0])
    if events[0].within == FEED:
        return WaitGraph._take_item
    waits = [event.awaits is not None for event in events]
    return WaitGraph._start if not any(waits) else WaitGraph._done if all(waits) else WaitGraph._blocking


def _channel_adder(event: EventKind) -> Callable[[WaitGraph, int, int, Site], None]:
    """How an item with this event of a channel enters the nodes of that channel."""
    is_source = event.end == SOURCE

    def add(graph: WaitGraph, device: int, number: int, item: Site) -> None:
        run, instruction = graph.run, item.instruction
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        channel = None if half is None else graph.channel(device, half)
        if channel is None:
            if half is not None and event is not POSTED and (name := rendezvous_of(half)):
                rounds = graph.sent_to_host if is_source else graph.received_from_host
                nodes = rounds.setdefault((device, name), {}).setdefault(instruction.attributes.channel_id, [])
                nodes.append(run.node_of[device][number])
            return
        channel.nodes[event].append(run.node_of[device][number])

    return add


_ADDERS = {opcode: _adder_of(EVENTS[kind]) for opcode, kind in KINDS.items()}


# ----------------------------------------------------------------------------
# InOrderRun: a run in recorded order
#
# Each device has a cursor; items that waiting devices need are taken early.


@define(eq=False)
class InOrderRun:
    """The run: each device is at its first item that is not done; a node waits for its members and for its needs.

    Dependencies are looked up only if no device can continue, and only for items that others wait for.
    """

    run: LevelRun
    first: Mapping[int, int]
    waits: list[int] = field(init=False)
    cursor: dict[int, int] = field(init=False)
    _early: dict[int, list[tuple[int, int]]] = field(factory=dict)
    _node_at: list[int] = field(init=False)
    _last: frozenset[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        node_of = self.run.node_of
        self.cursor = dict.fromkeys(node_of, 0)
        self._node_at = [node for nodes in node_of.values() for node in nodes]
        self._last = frozenset(self.first[device] + len(nodes) - 1 for device, nodes in node_of.items())
        self.waits = [pending + 1 for pending in self.run.pending]
        for node in self.run.replaced:
            self.waits[node] = 0
        for node, sharers in self.run.shared.items():
            self.waits[node] += len(sharers) - 1
        self._count_down([nodes[0] for nodes in node_of.values()])

    def finish(self) -> bool:
        """Run to the end, taking early the items that stopped devices wait for; False if the end is not reached."""
        while any(self.waits):
            ask()
            self._move_cursors()
            node = next(self._needed(), None)
            if node is None or any(self.run.level.skeletons[device].has_calls for device, _ in self.run.members[node]):
                return False
            self._run_early(node)
        return True

    def order(self, device: int) -> Sequence[int]:
        """The order in which a device ran its items."""
        count = len(self.run.node_of[device])
        if device not in self._early:
            return range(count)
        before: dict[int, list[int]] = {}
        for cursor, number in self._early[device]:
            before.setdefault(cursor, []).append(number)
        early = {number for _, number in self._early[device]}
        return [
            n for cursor in range(count) for n in (*before.get(cursor, ()), cursor) if n != cursor or n not in early
        ]

    def _count_down(self, nodes: list[int]) -> None:
        """Count one condition of each of these nodes as met, and continue from there as far as possible."""
        waits, node_at, last, allows = self.waits, self._node_at, self._last, self.run.allows
        while nodes:
            node = nodes.pop()
            waits[node] -= 1
            if waits[node]:
                continue
            if node in allows:
                nodes += allows[node]
            if node >= len(node_at):
                nodes += self._after(self.run.shared[node])
            elif node not in last:
                after = node_at[node + 1]
                nodes += (after,) if waits[after] else self._after(self.run.members[node])

    def _after(self, places: Sequence[ItemNumber]) -> Iterator[int]:
        """The next node that is not done after each of these items on its device."""
        for device, number in places:
            ask()
            rest = islice(self.run.node_of[device], number + 1, None)
            yield from islice((node for node in rest if self.waits[node]), 1)

    def _move_cursors(self) -> None:
        for device, nodes in self.run.node_of.items():
            cursor = self.cursor[device]
            while cursor < len(nodes) and not self.waits[nodes[cursor]]:
                cursor += 1
            self.cursor[device] = cursor

    def _needed(self) -> Iterator[int]:
        """The nodes that a device is at or waits for, and that could be done now."""
        for device, cursor in self.cursor.items():
            for node in self.run.node_of[device][cursor : cursor + 1]:
                needs: Sequence[int] = self.run.needs.get(node, ())
                yield from (n for n in (*needs, node) if self.waits[n] and self._is_possible(n))

    def _is_possible(self, node: int) -> bool:
        run = self.run
        if node in run.absent or node in run.starved or any(self.waits[need] for need in run.needs.get(node, ())):
            return False
        return all(self._is_ready(device, number) for device, number in run.members[node])

    def _is_ready(self, device: int, number: int) -> bool:
        """Whether all predecessors of an item on its device are done."""
        before, nodes = self.run.level.skeletons[device].before, self.run.node_of[device]
        points = [*before[number]]
        while points:
            point = points.pop()
            if point >= len(nodes):
                points += before[point]
            elif self.waits[nodes[point]]:
                return False
        return True

    def _run_early(self, node: int) -> None:
        self.waits[node] = 0
        here = [(device, number) for device, number in self.run.members[node] if self.cursor[device] == number]
        for device, number in self.run.members[node]:
            if self.cursor[device] != number:
                self._early.setdefault(device, []).append((self.cursor[device], number))
        self._count_down([*self._after(here), *self.run.allows.get(node, ())])


# ----------------------------------------------------------------------------
# LevelRun: Kahn's algorithm on the wait graph
#
# Runs to the end, or until all devices are stuck.

ItemNumber = tuple[int, int]  # a device, and the number of an item on it
# Kinds of items in the order in which they are taken out of recorded order: those that unblock others come first.
FIRST = (("recv", "start"), ("send", "outfeed"), ("send_done", "infeed", "unit"), ("recv_done", "done", "meet"))
RANK = {kind: rank for rank, kinds in enumerate(FIRST) for kind in kinds}


@frozen(eq=False)
class LevelContext:
    """What all levels of a program share: programs, channels, identities, send buffers, infeed items."""

    program: GridProgram
    transfers: Transfers
    identity: CollectiveIdentities
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None


@frozen(eq=False)
class ScheduleLevel:
    """A level: the items of each device, and the companions among their units."""

    skeletons: Mapping[int, Skeleton]
    companions: Mapping[ItemNumber, Hashable]


@define(eq=False, slots=False)
class LevelRun:
    """A run of a level. A node is an item of one device, a collective or unit of several devices, or a hub.

    The items are numbered first, device after device; `shared` has the other nodes with their members: collectives
    and units, in place of the items `replaced`, and hubs, which have no members.
    """

    context: LevelContext
    level: ScheduleLevel
    node_of: dict[int, list[int]] = field(factory=dict)
    shared: dict[int, list[ItemNumber]] = field(factory=dict)
    replaced: set[int] = field(factory=set)
    pending: list[int] = field(factory=list)
    done: list[bool] = field(factory=list)
    absent: dict[int, tuple[int, ...]] = field(factory=dict)
    starved: set[int] = field(factory=set)
    order: dict[int, Sequence[int]] = field(factory=dict)
    allows: dict[int, tuple[int, ...]] = field(factory=dict)
    _order_taken: dict[int, list[int]] = field(factory=dict)
    _missing_predecessors: dict[int, list[int]] = field(factory=dict)
    _after: dict[int, tuple[tuple[int, ...], ...]] = field(factory=dict)
    _queue: dict[int, Sequence[int]] = field(factory=dict)
    _place: dict[int, int] = field(factory=dict)
    _next: dict[int, int] = field(factory=dict)
    _now: deque[int] = field(factory=deque)
    _later: tuple[deque[int], ...] = field(factory=lambda: tuple(deque[int]() for _ in FIRST))

    def __attrs_post_init__(self) -> None:
        cursors = InOrderRun(self, WaitGraph(self).build())
        if cursors.finish():
            self.done = [True] * len(self.pending)
            self.order = {device: cursors.order(device) for device in self.node_of}
        elif all(skeleton.given for skeleton in self.level.skeletons.values()):
            self._stop_at_cursors(cursors)
        else:
            self._search()

    def _stop_at_cursors(self, cursors: InOrderRun) -> None:
        """The end of a run in given orders, which leave nothing to search: each device is at its cursor."""
        self.done = [not count for count in cursors.waits]
        for device, cursor in cursors.cursor.items():
            self.order[device] = range(cursor)
            self._missing_predecessors[device] = [int(number > cursor) for number in range(len(self.node_of[device]))]

    @cached_property
    def members(self) -> list[Sequence[ItemNumber]]:
        """The items of each node, as device and number."""
        skeletons = self.level.skeletons.items()
        own = (((device, number),) for device, skeleton in skeletons for number in range(len(skeleton.items)))
        return [*own, *self.shared.values()]

    @cached_property
    def needs(self) -> dict[int, list[int]]:
        """The nodes that each node waits for."""
        needs: dict[int, list[int]] = {}
        for need, nodes in self.allows.items():
            for node in nodes:
                needs.setdefault(node, []).append(need)
        return needs

    def _search(self) -> None:
        """Search for an order that dependencies allow, as near as possible to the recorded one."""
        self.done = [node in self.replaced for node in range(len(self.pending))]
        for device, skeleton in self.level.skeletons.items():
            self._missing_predecessors[device] = [len(before) for before in skeleton.before]
            self._after[device] = skeleton.after
            self._order_taken[device] = self.order[device] = []
            self._queue[device], self._place[device], self._next[device] = range(len(skeleton.items)), 0, 0
        for node, participants in enumerate(self.members):
            ready = sum(not self._missing_predecessors[device][item] for device, item in participants)
            self.pending[node] += len(participants) - ready
        for node in range(len(self.members)):
            self._offer(node)
        self._drain()

    @property
    def finished(self) -> bool:
        return all(self.done)

    def item(self, place: ItemNumber) -> Site:
        return self.level.skeletons[place[0]].items[place[1]]

    def node(self, place: ItemNumber) -> int:
        return self.node_of[place[0]][place[1]]

    def missing(self, node: int) -> tuple[int, ...]:
        """The devices that a node waits for and that never arrive."""
        hubs = (need for need in self.needs.get(node, ()) if not self.members[need])
        return (*self.absent.get(node, ()), *(device for hub in hubs for device in self.absent.get(hub, ())))

    def blocked(self) -> Iterator[ItemNumber]:
        """The items whose predecessors on their device are done and that wait for other devices."""
        for device, counts in self._missing_predecessors.items():
            nodes = self.node_of[device]
            pairs = enumerate(zip(nodes, counts, strict=False))
            yield from ((device, n) for n, (node, count) in pairs if not count and not self.done[node])

    def is_ready(self, place: ItemNumber) -> bool:
        """Whether all predecessors of an item on its device are done."""
        return not self._missing_predecessors[place[0]][place[1]]

    def _drain(self) -> None:
        while True:
            ask()
            while self._now:
                self._execute(self._now.popleft())
            node = self._out_of_order()
            if node is None:
                return
            self._execute(node)

    def _out_of_order(self) -> int | None:
        """A node to take out of recorded order: one that a waiting device needs, else the first by kind."""
        for device, number in self._next.items():
            nodes = self.node_of[device]
            if number >= 0:
                needs: Sequence[int] = self.needs.get(nodes[number], ())
                for need in (*needs, nodes[number]):
                    if not self.pending[need] and not self.done[need]:
                        return need
        for nodes_of_rank in self._later:
            while nodes_of_rank:
                node = nodes_of_rank.popleft()
                if not self.done[node]:
                    return node
        return None

    def _offer(self, node: int) -> None:
        """Queue a node that has become possible: now if it is the next one on all its devices, else for later."""
        if self.pending[node] or self.done[node]:
            return
        for device, number in self.members[node]:
            if self._next[device] != number:
                self._later[RANK[self.level.skeletons[device].items[number].kind]].append(node)
                return
        self._now.append(node)

    def _execute(self, node: int) -> None:
        if self.done[node]:
            return
        self.done[node] = True
        for device, number in self.members[node]:
            self._order_taken[device].append(number)
            self._free(device, number)
            if self._next[device] == number:
                self._advance(device)
            elif self.level.skeletons[device].has_calls:
                self._finish_call(device, number)
        for allowed in self.allows.get(node, ()):
            self._allow(allowed)

    def _free(self, device: int, point: int) -> None:
        """Count an item or joint as done for its successors on its device."""
        counts, nodes, after = self._missing_predecessors[device], self.node_of[device], self._after[device]
        points = [point]
        while points:
            for successor in after[points.pop()]:
                counts[successor] -= 1
                if not counts[successor]:
                    if successor < len(nodes):
                        self._allow(nodes[successor])
                    else:
                        points.append(successor)

    def _allow(self, node: int) -> None:
        self.pending[node] -= 1
        self._offer(node)

    def _advance(self, device: int) -> None:
        nodes, queue, place = self.node_of[device], self._queue[device], self._place[device]
        while place < len(queue) and self.done[nodes[queue[place]]]:
            place += 1
        self._place[device] = place
        self._next[device] = queue[place] if place < len(queue) else -1
        if place < len(queue):
            self._offer(nodes[queue[place]])

    def _finish_call(self, device: int, number: int) -> None:
        """Put the rest of a call that was entered early next on its device."""
        items, nodes = self.level.skeletons[device].items, self.node_of[device]
        rest = [n for n in self._queue[device] if not self.done[nodes[n]]]
        path = items[number].path
        self._queue[device] = sorted(rest, key=lambda n: -common_length(items[n].path, path))
        self._place[device] = 0
        self._advance(device)

    def require(self, node: int, need: int) -> None:
        """A node waits for another."""
        self.allows[need] = (*self.allows[need], node) if need in self.allows else (node,)
        self.pending[node] += 1

    def require_absent(self, node: int, devices: Sequence[int]) -> None:
        """A node waits for devices that never arrive."""
        self.absent[node] = (*self.absent.get(node, ()), *devices)
        self.pending[node] += 1


def common_length(a: Path, b: Path) -> int:
    """The length of the common prefix of two paths."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
