"""What is the same on every device is computed once: where that is so, and where it is kept until all have it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from xbuild.checking.dataflow.analysis import Reading, TooMuchError, flat, key_of, spread, way_of
from xbuild.checking.dataflow.replication import Replication, varies
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.properties.effects import Path

from .facts import weight

CallPath: TypeAlias = tuple[int, ...]
MOST_PLACES = 1_000_000


@define(eq=False)
class _Recording(Replication):
    """The walk, with what it finds at each place."""

    found: dict[Any, tuple[Path, Instruction, Reading]] = field(factory=dict)

    def form(self, computation: Computation, parameters: list[Reading], path: Path) -> Hashable | None:
        """What is found is kept by place."""
        return computation, way_of(path), tuple(parameters)

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        reading = super()._read(instruction, operands, path)
        key = key_of(instruction, path)
        known = self.joined(self.found[key][2], reading) if key in self.found else reading
        self.found[key] = path, instruction, known
        return reading

    def is_reached_by_all(self, path: Path) -> bool:
        """Whether all devices come to a place equally often: nothing on the way is decided otherwise on one of them."""
        for depth, step in enumerate(path):
            decision = self.decides.get(key_of(step.instruction, path[:depth]))
            if decision is not None and not decision.is_everywhere:
                return False
        return True


def shared_sites(module: Module, uniform: Sequence[bool]) -> frozenset[CallPath]:
    """The places whose values all devices agree on, where the parameters marked uniform are the same on all.

    None where there are too many places: each call of a computation has its own.
    """
    if weight(module.entry) >= MOST_PLACES:
        return frozenset()
    devices = tuple(range(module.num_devices))
    walk = _Recording(varies, devices, module.num_replicas, module.num_partitions)
    labels = [walk.everywhere if same else walk.nowhere for same in uniform]
    parameters = [spread(label, p.shape) for label, p in zip(labels, module.entry.parameters, strict=True)]
    try:
        walk.run(module.entry, parameters)
    except TooMuchError:
        return frozenset()
    return frozenset(
        site_of(instruction, [step.instruction for step in path])
        for path, instruction, reading in walk.found.values()
        if all(leaf.is_everywhere for leaf in flat(reading)) and walk.is_reached_by_all(path)
    )


def site_of(instruction: Instruction, callers: Sequence[Instruction]) -> CallPath:
    """A place by the instructions on the way."""
    return (*map(id, callers), id(instruction))


@define
class Pool:
    """Values that the first device to come has computed, each kept until the last has taken it."""

    devices: int
    _kept: dict[tuple[int, int], list[Any]] = field(factory=dict)

    def take(self, block: int, turn: int) -> Any:
        """The values of a block's turn; None for the first device, which then must put them."""
        entry = self._kept.get((block, turn))
        if entry is None:
            return None
        entry[1] -= 1
        if not entry[1]:
            del self._kept[block, turn]
        return entry[0]

    def put(self, block: int, turn: int, values: Any) -> None:
        self._kept[block, turn] = [values, self.devices - 1]
