"""Columns of lanes, which are logical time: each executed node stands right of all nodes that had to come before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, field

from ...checking.deadlock.level_run import LevelRun


@define
class Columns:
    """The columns of the nodes of a run that some devices have executed."""

    run: LevelRun
    devices: Collection[int]
    of: dict[int, int] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        before = {node: set(self._before(node)) for device in self.devices for node in self._nodes(device)}
        for device in self.devices:
            last = None
            for node in self._nodes(device):
                if last is not None and last != node:
                    before[node].add(last)
                last = node
        self._assign_columns({node: {each for each in first if each in before} for node, first in before.items()})

    def _nodes(self, device: int) -> list[int]:
        return [self.run.node((device, number)) for number in self.run.order[device]]

    def _before(self, node: int) -> Iterator[int]:
        for need in self.run.needs.get(node, ()):
            if self.run.members[need]:
                yield need
            else:
                yield from self._before(need)

    def _assign_columns(self, before: Mapping[int, set[int]]) -> None:
        missing = {node: len(first) for node, first in before.items()}
        after: dict[int, list[int]] = {}
        for node, first in before.items():
            for each in first:
                after.setdefault(each, []).append(node)
        ready = [node for node, count in missing.items() if not count]
        for node in ready:
            self.of[node] = max((self.of[each] + 1 for each in before[node]), default=0)
            for each in after.get(node, ()):
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)
