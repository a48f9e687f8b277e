"""The decisions that data make: at which places, on which devices, and which of them are one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...properties.effects import Path, branch_name, communicates, notable, steps
from ...properties.sites import Site
from ..dataflow.analysis import key_of
from ..dataflow.control import Control
from ..model.flattening import UNITS
from ..model.program import DeviceClass, Program, devices_text
from ..model.scans import slices_of

Decision: TypeAlias = int | tuple[int, ...]  # the same each time, or by turns

SHOWN = 3


@define(eq=False)
class Choice:
    """A decision that data make, on devices and at places that decide alike."""

    site: Site
    is_steady: bool
    places: list[tuple[int, Hashable]]
    names: dict[str, None]
    ways: set[int]  # what it may be; none where it may be anything

    @property
    def devices(self) -> set[int]:
        return {device for device, _ in self.places}

    @property
    def most(self) -> float:
        """The largest number that it can be."""
        return slices_of(self.site.instruction)[0] if self.site.instruction.opcode == "scan" else math.inf

    def may_be(self, value: Decision) -> bool:
        """Whether it can be this number, or these by turns."""
        each = {value} if isinstance(value, int) else {*value}
        return max(each) <= self.most and (not self.ways or each <= self.ways)

    def text(self, value: Decision) -> str:
        """`loop2 runs 1 trip on device 0`"""
        names = [*self.names] if len(self.names) <= SHOWN else [*self.names][: SHOWN - 1]
        more = "" if len(names) == len(self.names) else f" and {len(self.names) - len(names)} more"
        where = f"{' and '.join(names)}{more} on {devices_text(self.devices)}"
        is_branch = self.site.instruction.opcode == "conditional"
        if isinstance(value, tuple):
            words = (
                f"trips {', '.join(map(str, value))}"
                if not is_branch
                else ", ".join(self._branch(each) for each in value)
            )
            return f"{where} takes {words} by turns"
        if is_branch:
            return f"{where} takes {self._branch(value)}"
        return f"{where} runs {value} trip{'s' * (value != 1)}" if value else f"{where} does not run"

    def _branch(self, value: Decision) -> str:
        assert isinstance(value, int)
        return branch_name(self.site.instruction, value)


@define(eq=False)
class Choices:
    """All choices of the programs; `trips` are the numbers of trips that are known."""

    program: Program
    control: Control
    every: list[Choice] = field(factory=list)
    trips: set[int] = field(factory=set)
    at: dict[tuple[int, Hashable], int] = field(factory=dict)  # which choice it is at a place of a device
    of: dict[int, list[int]] = field(factory=dict)  # the choices of a device

    def __attrs_post_init__(self) -> None:
        known: dict[Hashable, int] = {}
        for device, each in self.program.class_of.items():
            self.of[device] = []
            self._find(device, each, each.module.entry, (), known)

    def _find(
        self, device: int, each: DeviceClass, computation: Computation, path: Path, known: dict[Hashable, int]
    ) -> None:
        for instruction in notable(computation):
            if not any(map(communicates, instruction.called)) or instruction.opcode == "async_start":
                continue
            every = [*steps(instruction)]
            if instruction.opcode in UNITS:
                turns = self.turns_at(device, instruction, path)
                if turns is None:
                    ways = self._add(device, each, Site(path, instruction), known)
                    every = [step for n, step in enumerate(every) if n in ways] if ways else every
                elif instruction.opcode == "conditional":
                    every = [step for n, step in enumerate(every) if n in turns]
                else:
                    self.trips |= {*turns} - {0}
                    every = every if any(turns) else every[:-1]
            for step in every:
                self._find(device, each, step.computation, (*path, step), known)

    def turns_at(self, device: int, instruction: Instruction, path: Path) -> Sequence[int] | None:
        """What is decided at a place time after time, or always; None where nobody knows."""
        always = self.control.decided(device, instruction, path)
        return self.control.turns(device, instruction, path) if always is None else (always,)

    def _add(self, device: int, each: DeviceClass, site: Site, known: dict[Hashable, int]) -> frozenset[int]:
        """The branches that may be taken there, where that is known."""
        number = self.control.values.decided(device, site.instruction, site.path)
        is_steady = number is None or self.control.values.is_steady(number, site.path)
        key = self.control.decider(device, site) or (each.module, site.key, self.control.label(device, site))
        at = known.setdefault((key, is_steady), len(self.every))
        if at == len(self.every):
            self.every.append(Choice(site, is_steady, [], {}, set()))
        ways = self.control.ways(device, site.instruction, site.path) or frozenset()
        is_first = not self.every[at].places
        self.every[at].ways = {*ways, *self.every[at].ways} if ways and (is_first or self.every[at].ways) else set()
        place = device, key_of(site.instruction, site.path)
        self.at[place] = at
        self.every[at].places.append(place)
        self.every[at].names[str(site)] = None
        if at not in self.of[device]:
            self.of[device].append(at)
        return ways if site.instruction.opcode == "conditional" else frozenset()
