"""Decisions of control flow: which branch or trip count is known before the run, and whether devices decide alike."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from attrs import Factory, define, field

from ...core.graph import Instruction, Module
from ...core.report_text import join_words
from ...properties.effects import LOOPS, CallStep, Path, steps, takes_pred
from ...properties.sites import Site, site_key
from ...properties.trip_counts import never_ends
from ..model.describe import (
    bound_from_id,
    communication_inside,
    decider_row,
    deciding_id,
    equal_on_all_devices,
    finding,
    named,
)
from ..model.program import GridProgram, devices_text
from ..model.verdict import Finding
from .backward_slice import BackwardSlice, backward_slices
from .constant_propagation import propagate_constants
from .lattice import DecisionFacts, Turns
from .replication import ReplicationAnalysis, replication_of
from .value_numbering import ValueNumbers

Member = tuple[int, Site]
_ONCE = frozenset((1,))


@define(eq=False)
class Decisions:
    """The decisions of all devices, analysed on demand."""

    program: GridProgram
    assumed: Mapping[Hashable, int] = field(factory=dict)
    values: ValueNumbers = field(default=Factory(lambda self: ValueNumbers(self.program), takes_self=True))
    _agreements: dict[Module, tuple[dict[int, int], ReplicationAnalysis]] = field(factory=dict, init=False)
    _facts: dict[Any, DecisionFacts] = field(factory=dict, init=False)
    _slices: list[Mapping[Module, BackwardSlice]] = field(factory=list, init=False)

    def assuming(self, assumed: Mapping[Hashable, int]) -> Decisions:
        """These decisions, with those at some sites of devices assumed."""
        decisions = Decisions(self.program, assumed, self.values)
        decisions._agreements, decisions._facts, decisions._slices = self._agreements, self._facts, self._slices
        return decisions

    def decided(self, device: int, instruction: Instruction, path: Path) -> int | None:
        """The branch of a conditional on this device, or the trips of a loop; None if neither known nor assumed."""
        if never_ends(instruction):
            return 1
        place, ways = site_key(instruction, path), self.ways(device, instruction, path)
        return self.assumed.get((device, place)) if ways is None or len(ways) != 1 else next(iter(ways))

    def ways(self, device: int, instruction: Instruction, path: Path) -> frozenset[int] | None:
        """The possible branches of a conditional on this device, or trip counts of a loop; None if unknown."""
        return _ONCE if never_ends(instruction) else self._known(device).decides.get(site_key(instruction, path))

    def turns(self, device: int, instruction: Instruction, path: Path) -> Turns | None:
        """The decisions at a unit in the order in which a device makes them; None if they are unknown."""
        return self._known(device).turns.get(site_key(instruction, path))

    def runs(self, device: int, site: Site) -> bool:
        """Whether a device may reach a site: no known decision on its path leads elsewhere."""
        for number, step in enumerate(site.path):
            ways = self.ways(device, step.instruction, site.path[:number])
            if ways is not None and not _enters(step, ways):
                return False
        return True

    def _known(self, device: int) -> DecisionFacts:
        """The facts of a device, computed for all devices together if collectives decide, else once for equal ones."""
        module = self.program.class_of[device].module
        if not self._slices:
            self._slices.append(backward_slices(self.program, self.values.identity))
        slices = self._slices[0]
        if any(slice_.collectives for slice_ in slices.values()):
            if not self._facts:
                self._facts |= propagate_constants(self.program, self.values.identity, slices, self.program.devices)
            return self._facts[device]
        key = module, device if slices[module].depends_on_device else None
        if key not in self._facts:
            self._facts[key] = propagate_constants(self.program, self.values.identity, slices, (device,))[device]
        return self._facts[key]

    def agree(self, members: Sequence[Member]) -> bool:
        """Whether these devices make equal decisions whatever the data, each at its site."""
        module = self.program.class_of[members[0][0]].module
        if len({(self.program.class_of[device].module, site.key) for device, site in members}) > 1:
            deciders = {self.decider(device, site) for device, site in members}
            return len(deciders) == 1 and None not in deciders
        places, walk = self._replication_of(module)
        agreement = walk.decision_facts.get(site_key(members[0][1].instruction, members[0][1].path))
        if agreement is None:
            return not walk.gave_up  # the analysis never reaches the site, so no run does
        return len({agreement.labels[places[device]] for device, _ in members}) == 1

    def decider(self, device: int, site: Site) -> Hashable:
        """A key of the deciding value: sites with equal keys decide equally in each trip; None if it is unknown."""
        number = self.values.decision_number(device, site.instruction, site.path)
        return None if number is None else (number, decision_form(site.instruction))

    def label(self, device: int, site: Site) -> int:
        """Devices of one program with equal labels decide equally at this site, whatever the data."""
        places, walk = self._replication_of(self.program.class_of[device].module)
        agreement = walk.decision_facts.get(site_key(site.instruction, site.path))
        if agreement is None:
            return places[device] if walk.gave_up else 0
        label: int = agreement.labels[places[device]]
        return label

    def _replication_of(self, module: Module) -> tuple[dict[int, int], ReplicationAnalysis]:
        if module not in self._agreements:
            devices = tuple(d for d, device_class in self.program.class_of.items() if device_class.module is module)
            walk = replication_of(module.entry, devices, *self.program.grid)
            self._agreements[module] = {device: n for n, device in enumerate(devices)}, walk
        return self._agreements[module]

    def disagreement(self, members: Sequence[Member]) -> Finding | None:
        """The finding for companions that may decide differently; None if they cannot."""
        if len(members) == 1 or self.agree(members):
            return None
        if members[0][1].instruction.opcode in LOOPS:
            return self._compare_trip_counts(members)
        return _data_dependent_finding(members, "takes a different branch")

    def _compare_trip_counts(self, members: Sequence[Member]) -> Finding | None:
        trips = {device: self.decided(device, site.instruction, site.path) for device, site in members}
        if None in trips.values():
            return _data_dependent_finding(members, "runs a different number of times")
        if len(set(trips.values())) == 1:
            return None
        groups: dict[Any, list[int]] = {}
        for device, count in trips.items():
            groups.setdefault(count, []).append(device)
        places = [(devices, dict(members)[devices[0]]) for devices in groups.values()]
        counts = join_words(f"{trips_text(count)} on {devices_text(devices)}" for count, devices in groups.items())
        names = join_words(dict.fromkeys(site.instruction.name for _, site in members))
        bound = bound_from_id(members[0][1].instruction)
        return finding(
            "trip_count_mismatch",
            f"{names} runs {counts}, but these devices communicate with each other inside it",
            *places,
            facts=tuple(trips_text(count) for count in groups),
            cause_text="the devices execute these loops together, trip by trip, but one loop ends before another; the "
            "devices in the longer loop then wait forever",
            repair_text="make the trip count equal on all of these devices" + (_bound_text(bound) if bound else ""),
        )


def _enters(step: CallStep, ways: frozenset[int]) -> bool:
    """Whether one of these decisions enters the computation of a step."""
    if step.instruction.opcode == "conditional":
        return [branch.computation for branch in steps(step.instruction)].index(step.computation) in ways
    return step.role == "while condition" or ways != {0}


def decision_form(unit: Instruction) -> Hashable:
    """A key of how a value decides: equal values lead to equal decisions in units of one form."""
    return unit.opcode, unit.opcode == "conditional" and (len(unit.called), takes_pred(unit))


def _bound_text(bound: Instruction) -> str:
    """From which id, and on which line, the bound of a loop is computed."""
    lines = (each.source for each in (bound, *bound.operands) if each.source and not each.source.file.startswith("<"))
    place = "".join(f" ({line})" for line in itertools.islice(lines, 1))
    return f": its bound, {bound.name}{place}, is computed from {deciding_id(bound)}"


def trips_text(count: int) -> str:
    """`1 trip`, `5 trips`"""
    return f"{count} trip{'s' * (count != 1)}"


def _data_dependent_finding(members: Sequence[Member], verb: str) -> Finding:
    """The finding that data decide whether these devices go through a unit equally."""
    sites: dict[Site, list[int]] = {}
    alike: dict[Any, Site] = {}
    for device, site in members:
        sites.setdefault(alike.setdefault(site.key, site), []).append(device)
    unit = members[0][1].instruction
    decider = "number of slices" if unit.opcode == "scan" else "predicate"
    if unit.opcode == "conditional" and not takes_pred(unit):
        decider = "index"
    if len(sites) == 1:
        (site,) = sites
        condition = f"if the {decider} of {site} differs between {devices_text(sites[site])}"
    else:
        first, second = list(sites)[:2]
        here, there = devices_text(sites[first]), devices_text(sites[second])
        condition = f"if {named(first.instruction)} on {here} {verb} than {second} on {there}"
    return finding(
        "data_dependent",
        condition,
        *((devices, site) for site, devices in sites.items()),
        rows=[decider_row(members[0][1], [device for device, _ in members])] if unit.opcode != "scan" else [],
        cause="MISSING_MEMBER",
        cause_text=f"devices communicate inside{_in_brackets(unit)}, and the data decide which of them take part",
        repair_text=equal_on_all_devices(unit, decider),
    )


def _in_brackets(unit: Instruction) -> str:
    inside = communication_inside(unit)
    return f" ({inside})" if inside else ""
