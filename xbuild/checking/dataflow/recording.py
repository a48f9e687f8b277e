"""What the analysis of replication says of every value: for each leaf the devices that hold equal ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction, Module
from ...properties.effects import Path
from ..model.program import Extent
from .agreement import Labels
from .analysis import Reading, TooMuchError, flat, key_of, way_of
from .replication import Replication, varies

Labelled: TypeAlias = Mapping[Any, list[Labels]]


@define(eq=False)
class Recording(Replication):
    """The walk, with what it finds of each instruction in all the ways that lead there, leaf by leaf.

    Devices in one part come to it equally often, and hold equal values each time; where not `is_joined`, those that
    come there in one trip hold equal values then.
    """

    is_joined: bool = True
    found: dict[Any, list[Labels]] = field(factory=dict, init=False)

    def key(self, instruction: Instruction, path: Path) -> Hashable:
        return instruction

    def where(self, computation: Computation, path: Path) -> Hashable:
        return ()

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        reading = super()._read(instruction, operands, path)
        self.note(instruction, reading, path)
        return reading

    def _run(self, computation: Computation, parameters: list[Reading], path: Path) -> Reading:
        for parameter, reading in zip(computation.parameters, parameters, strict=True):
            self.note(parameter, reading, path)
        return super()._run(computation, parameters, path)

    def note(self, instruction: Instruction, reading: Reading, path: Path) -> None:
        refined, key = self.partitions.refined, self.key(instruction, path)
        context = self.context if self.is_joined else self.partitions.everywhere
        labels = [refined(leaf.labels, context) for leaf in flat(reading)]
        known = self.found.get(key)
        self.found[key] = labels if known is None else [*map(refined, known, labels)]


@define(eq=False)
class Placed(Recording):
    """The same, with each place of a called computation by itself; `ways` has the calls that lead there."""

    ways: dict[Any, tuple[Path, Instruction]] = field(factory=dict, init=False)

    def key(self, instruction: Instruction, path: Path) -> Hashable:
        key = key_of(instruction, path)
        self.ways[key] = path, instruction
        return key

    def where(self, computation: Computation, path: Path) -> Hashable:
        return way_of(path)


def recorded(walk: Recording, module: Module, parameters: list[Reading]) -> Labelled:
    """What is found, by parameters of which as much is known; nothing where that would be too much."""
    try:
        walk.run(module.entry, parameters)
    except TooMuchError:
        walk.gave_up = True
        walk.found.clear()
    return walk.found


def recording(devices: tuple[int, ...], grid: Extent, **known: Any) -> Recording:
    return Recording(varies, devices, *grid, **known)


def placed(devices: tuple[int, ...], grid: Extent) -> Placed:
    return Placed(varies, devices, *grid)
