"""The replication analysis with its result for every value: for each leaf the labels of the devices."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction, Module
from ...properties.effects import Path
from ..model.program import Extent
from .agreement import Labels
from .analysis import Reading, TooMuchError, flat, key_of, path_key
from .replication import Replication, varies

Labelled: TypeAlias = Mapping[Any, list[Labels]]


@define(eq=False)
class Recording(Replication):
    """The analysis with the labels of each instruction, leaf by leaf, over all call paths that lead to it.

    Devices with equal labels execute the instruction equally often, with equal values each time. Where not `is_joined`,
    the values are equal in those trips that both devices execute.
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
class RecordingByPath(Recording):
    """The same with labels for each call path by itself; `paths` has the path and the instruction of each key."""

    paths: dict[Any, tuple[Path, Instruction]] = field(factory=dict, init=False)

    def key(self, instruction: Instruction, path: Path) -> Hashable:
        key = key_of(instruction, path)
        self.paths[key] = path, instruction
        return key

    def where(self, computation: Computation, path: Path) -> Hashable:
        return path_key(path)


def recorded(walk: Recording, module: Module, parameters: list[Reading]) -> Labelled:
    """The labels of all instructions, given readings of the parameters; empty where the program is too large."""
    try:
        walk.run(module.entry, parameters)
    except TooMuchError:
        walk.gave_up = True
        walk.found.clear()
    return walk.found


def recording(devices: tuple[int, ...], grid: Extent, **known: Any) -> Recording:
    return Recording(varies, devices, *grid, **known)


def recording_by_path(devices: tuple[int, ...], grid: Extent) -> RecordingByPath:
    return RecordingByPath(varies, devices, *grid)
