"""Values that are equal on all devices: the analysis that finds them, and the pool from which devices take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import define, field

from xbuild.checking.dataflow.recording import recorded, recording_by_path
from xbuild.core.graph import Instruction, Module

from .facts import weight

CallPath: TypeAlias = tuple[int, ...]
MOST_PLACES = 1_000_000


def shared_sites(module: Module, uniform: Sequence[bool]) -> frozenset[CallPath]:
    """The call paths whose values are equal on all devices, given which parameters are equal on all devices.

    The set is empty where the program has too many call paths to analyse.
    """
    if weight(module.entry) >= MOST_PLACES:
        return frozenset()
    walk = recording_by_path(tuple(range(module.num_devices)), (module.num_replicas, module.num_partitions, False))
    labels = [walk.everywhere if same else walk.nowhere for same in uniform]
    parameters = [walk.spread(label, p.shape) for label, p in zip(labels, module.entry.parameters, strict=True)]
    found, everywhere = recorded(walk, module, parameters), walk.partitions.everywhere
    return frozenset(
        site_of(instruction, [step.instruction for step in path])
        for key, (path, instruction) in walk.paths.items()
        if instruction.opcode != "parameter" and key in found and all(each is everywhere for each in found[key])
    )


def site_of(instruction: Instruction, callers: Sequence[Instruction]) -> CallPath:
    """The identity of an instruction at a call path: the ids of its callers and its own."""
    return (*map(id, callers), id(instruction))


@define
class Pool:
    """Values of shared blocks: the first device puts them, and the last device that takes them removes them."""

    devices: int
    _kept: dict[tuple[int, int], list[Any]] = field(factory=dict)

    def take(self, block: int, turn: int) -> Any:
        """The values of one execution of a block; None for the first device, which then computes and puts them."""
        entry = self._kept.get((block, turn))
        if entry is None:
            return None
        entry[1] -= 1
        if not entry[1]:
            del self._kept[block, turn]
        return entry[0]

    def put(self, block: int, turn: int, values: Any) -> None:
        self._kept[block, turn] = [values, self.devices - 1]
