"""A run of one level without values: Kahn's algorithm on the wait graph, to the end or until all devices are stuck."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, field, frozen

from ...properties.effects import Path
from ...properties.sites import Site
from ..model.program import Program
from ..structure.collective_matching import CollectiveIdentities
from ..structure.transfers import Transfers
from .in_order_run import InOrderRun
from .skeleton import Skeleton
from .wait_graph import WaitGraph

ItemNumber = tuple[int, int]  # a device, and the number of an item on it
# Kinds of items in the order in which they are taken out of recorded order: first those that unblock others.
FIRST = (("recv", "start"), ("send", "outfeed"), ("send_done", "infeed", "unit"), ("recv_done", "done", "meet"))
RANK = {kind: rank for rank, kinds in enumerate(FIRST) for kind in kinds}


@frozen(eq=False)
class Context:
    """What the levels of a program have in common: programs, channels, identities, send buffers, infeed items."""

    program: Program
    transfers: Transfers
    identity: CollectiveIdentities
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None


@frozen(eq=False)
class Level:
    """A level: the items of each device, and the companions among their units."""

    skeletons: Mapping[int, Skeleton]
    companions: Mapping[ItemNumber, Hashable]


@define(eq=False, slots=False)
class LevelRun:
    """A run of a level. A node is an item of one device, a collective or unit of several devices, or a hub.

    The items are numbered first, device after device; `shared` has the other nodes with their members: collectives
    and units, in place of the items `replaced`, and hubs, which have no members.
    """

    context: Context
    level: Level
    node_of: dict[int, list[int]] = field(factory=dict)
    shared: dict[int, list[ItemNumber]] = field(factory=dict)
    replaced: set[int] = field(factory=set)
    pending: list[int] = field(factory=list)
    done: list[bool] = field(factory=list)
    absent: dict[int, tuple[int, ...]] = field(factory=dict)
    starved: set[int] = field(factory=set)
    order: dict[int, Sequence[int]] = field(factory=dict)
    allows: dict[int, tuple[int, ...]] = field(factory=dict)
    _taken: dict[int, list[int]] = field(factory=dict)
    _local: dict[int, list[int]] = field(factory=dict)
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
        elif all(each.given for each in self.level.skeletons.values()):
            self._stop_at_cursors(cursors)
        else:
            self._search()

    def _stop_at_cursors(self, cursors: InOrderRun) -> None:
        """The end of a run in given orders, which leave nothing to search: each device is at its cursor."""
        self.done = [not count for count in cursors.waits]
        for device, cursor in cursors.cursor.items():
            self.order[device] = range(cursor)
            self._local[device] = [int(number > cursor) for number in range(len(self.node_of[device]))]

    @cached_property
    def members(self) -> list[Sequence[ItemNumber]]:
        """The items of each node, as device and number."""
        skeletons = self.level.skeletons.items()
        alone = (((device, number),) for device, each in skeletons for number in range(len(each.items)))
        return [*alone, *self.shared.values()]

    @cached_property
    def needs(self) -> dict[int, list[int]]:
        """The nodes that each node waits for."""
        found: dict[int, list[int]] = {}
        for need, nodes in self.allows.items():
            for node in nodes:
                found.setdefault(node, []).append(need)
        return found

    def _search(self) -> None:
        """Search an order that dependencies allow, nearest to the recorded one."""
        self.done = [node in self.replaced for node in range(len(self.pending))]
        for device, skeleton in self.level.skeletons.items():
            self._local[device] = [len(before) for before in skeleton.before]
            self._after[device] = skeleton.after
            self._taken[device] = self.order[device] = []
            self._queue[device], self._place[device], self._next[device] = range(len(skeleton.items)), 0, 0
        for node, members in enumerate(self.members):
            ready = sum(not self._local[device][item] for device, item in members)
            self.pending[node] += len(members) - ready
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
        for device, counts in self._local.items():
            nodes = self.node_of[device]
            pairs = enumerate(zip(nodes, counts, strict=False))
            yield from ((device, n) for n, (node, count) in pairs if not count and not self.done[node])

    def is_ready(self, place: ItemNumber) -> bool:
        """Whether all predecessors of an item on its device are done."""
        return not self._local[place[0]][place[1]]

    def _drain(self) -> None:
        while True:
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
        """Queue a node that has become possible: at once where it is the next on all its devices, else for later."""
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
            self._taken[device].append(number)
            self._free(device, number)
            if self._next[device] == number:
                self._advance(device)
            elif self.level.skeletons[device].has_calls:
                self._finish_call(device, number)
        for allowed in self.allows.get(node, ()):
            self._allow(allowed)

    def _free(self, device: int, point: int) -> None:
        """Count an item or joint as done for its successors on its device."""
        counts, nodes, after = self._local[device], self.node_of[device], self._after[device]
        points = [point]
        while points:
            for each in after[points.pop()]:
                counts[each] -= 1
                if not counts[each]:
                    if each < len(nodes):
                        self._allow(nodes[each])
                    else:
                        points.append(each)

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
        left = [each for each in self._queue[device] if not self.done[nodes[each]]]
        path = items[number].path
        self._queue[device] = sorted(left, key=lambda each: -common(items[each].path, path))
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


def common(a: Path, b: Path) -> int:
    """The length of the common prefix of two paths."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
