"""A run of a level in recorded order: a cursor on each device; items that waiting devices need are taken early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from .level_run import ItemNumber, LevelRun


@define(eq=False)
class InOrderRun:
    """The run: each device is at its first item that is not done; a node waits for its members and for its needs.

    Dependencies are looked up only where no device can go on, and only of items that others wait for.
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
        for node, members in self.run.shared.items():
            self.waits[node] += len(members) - 1
        self._count_down([nodes[0] for nodes in node_of.values()])

    def finish(self) -> bool:
        """Run to the end, with items taken early that stopped devices wait for; False where the end is not reached."""
        while any(self.waits):
            self._move_cursors()
            node = next(self._needed(), None)
            if node is None or any(self.run.level.skeletons[device].has_calls for device, _ in self.run.members[node]):
                return False
            self._run_early(node)
        return True

    def order(self, device: int) -> Sequence[int]:
        """The order in which a device has run its items."""
        count = len(self.run.node_of[device])
        if device not in self._early:
            return range(count)
        before: dict[int, list[int]] = {}
        for cursor, number in self._early[device]:
            before.setdefault(cursor, []).append(number)
        early = {number for _, number in self._early[device]}
        return [n for each in range(count) for n in (*before.get(each, ()), each) if n != each or n not in early]

    def _count_down(self, nodes: list[int]) -> None:
        """Count one condition of each of these nodes as met, and go on from there as far as possible."""
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
            rest = islice(self.run.node_of[device], number + 1, None)
            yield from islice((node for node in rest if self.waits[node]), 1)

    def _move_cursors(self) -> None:
        for device, nodes in self.run.node_of.items():
            cursor = self.cursor[device]
            while cursor < len(nodes) and not self.waits[nodes[cursor]]:
                cursor += 1
            self.cursor[device] = cursor

    def _needed(self) -> Iterator[int]:
        """The nodes that a device stands at or waits for, and that could be done now."""
        for device, cursor in self.cursor.items():
            for node in self.run.node_of[device][cursor : cursor + 1]:
                needs: Sequence[int] = self.run.needs.get(node, ())
                yield from (each for each in (*needs, node) if self.waits[each] and self._is_possible(each))

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
