"""The scenario stage: `conclude` says how the programs end, by the levels alone or by simulation of all scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import define, frozen

from ...properties.effects import UNITS, collective_in, start_of
from ...properties.sites import Site, collectives_of
from ..deadlock.level_run import Context, ItemNumber
from ..deadlock.levels import LevelStage
from ..model.verdict import Finding, Orders, VerdictKind
from .candidates import Candidate, Candidates
from .event_counts import is_short_by_counts
from .external_waits import external_wait_findings
from .scenarios import Outcomes, Scenarios
from .stops import Stops

MANY = 10**9
MOST_CHOICES = 64  # beyond, the findings of the levels stand


@frozen(eq=False)
class Conclusion:
    """How the programs end, whatever the data: the kind of verdict, its findings, the orders that it holds for.

    `is_simulated`: whether the scenarios decided it; else the levels did. `may_end`: whether the programs end in some
    order and scenario that was looked at.
    """

    kind: VerdictKind
    findings: tuple[Finding, ...]
    orders: Mapping[int, Orders]
    may_end: bool = True
    is_simulated: bool = True


def conclude(context: Context, levels: LevelStage) -> Conclusion:
    """The conclusion for programs by what the levels found, by simulation where that leaves anything open."""
    waits = tuple(external_wait_findings(context))
    if not (levels.stuck or levels.found or levels.fills or waits):
        return Conclusion("ok", (), levels.recorder.orders(), is_simulated=False)
    return ScenarioStage(context, levels).conclusion() or _by_levels(levels, (*levels.found, *waits))


def _by_levels(levels: LevelStage, findings: tuple[Finding, ...]) -> Conclusion:
    """What the levels and the external waits say by themselves."""
    if levels.stuck:
        return Conclusion("deadlock", tuple(levels.found), {}, is_simulated=False)
    errors = tuple(found for found in findings if found.kind != "data_dependent")
    kind: VerdictKind = "error" if errors else "depends" if findings else "ok"
    return Conclusion(kind, errors or findings, levels.recorder.orders(), is_simulated=False)


@define(eq=False, slots=False)
class ScenarioStage:
    """The simulation of all scenarios of programs of which the levels have found something."""

    context: Context
    levels: LevelStage

    @cached_property
    def scenarios(self) -> Scenarios:
        return Scenarios(self.context, self.levels.decisions)

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates(self.context, self.levels, self.scenarios)

    def conclusion(self) -> Conclusion | None:
        """What the scenarios show; None where what the levels found stands."""
        if not self.levels.is_refused and len(self.scenarios.choices) > MOST_CHOICES:
            return self._undecided(None)
        best = self.candidates.best()
        if best is None or (best.outcomes.rank != 1 and not self._is_whole(best)):
            return self._undecided(best)
        findings = [*self._findings(best)]
        if any(finding.kind != "data_dependent" for finding in findings):
            return None if self.levels.is_refused else Conclusion("deadlock", tuple(findings), {})
        return Conclusion("depends" if findings else "ok", tuple(findings), best.orders)

    def _is_whole(self, best: Candidate) -> bool:
        """Whether no scenario or order is left that could end otherwise."""
        if not best.outcomes.rank and self.scenarios.is_starved():
            return True
        return self.scenarios.is_whole and (best.outcomes.rank == 2 or not self.candidates.gave_up)

    def _undecided(self, best: Candidate | None) -> Conclusion | None:
        """The conclusion where there are too many scenarios or orders to try all; None where the levels' stands."""
        if not self.levels.is_refused and not self.levels.fills and (best is None or best.outcomes.rank):
            return None  # the findings of the levels name the conditions
        if self._is_certain or (self.levels.is_refused and is_short_by_counts(self.context, self.levels.decisions)):
            return None
        left = [f for f in self.levels.found if f.kind == "data_dependent"]
        orders = {} if best is None else best.orders
        outcomes = None if best is None else best.outcomes
        may_end = outcomes is not None and outcomes.rank > 0
        return Conclusion("depends", (self._not_all(outcomes), *left), orders, may_end)

    def _not_all(self, outcomes: Outcomes | None) -> Finding:
        """The finding that not all scenarios and orders were tried, and how those ended that were."""
        tried, count = len(self.scenarios.enumerated), self.scenarios.count
        some = "none" if outcomes is None else f"{tried} of {count if count <= MANY else 'very many'} ways"
        order = ", not in every order" if self.candidates.gave_up else ""
        ends = "" if outcomes is None else f"; in all of these it {'ends' if outcomes.rank else 'stops'}"
        found = self.levels.found[0] if self.levels.found else Finding("data_dependent", "")
        return Finding(
            "data_dependent",
            f"where the data decide, not all could be tried: {some}{order}{ends}",
            found.rows,
            found.instructions,
            found.devices,
            cause="NOT_ALL_TRIED",
            cause_text="there are too many ways in which the data may decide, or too many orders",
            repair_text="give the programs a schedule, or make what decides the same everywhere",
        )

    @property
    def _is_certain(self) -> bool:
        """Whether devices stop before any loop or conditional that data decide."""
        levels, stuck = self.levels.levels, self.levels.stuck
        return any(run.level is levels[0] and not any(map(self._may_come, run.blocked())) for run in stuck)

    def _may_come(self, place: ItemNumber) -> bool:
        """Whether a device that is waited for at this place may come in a loop or conditional that data decide."""
        device, item = place[0], self.levels.levels[0].skeletons[place[0]].items[place[1]]
        begun = start_of(item.instruction) if item.kind == "done" else item.instruction
        collective = None if begun is None else collective_in(begun)
        if item.kind == "unit" or begun is None or collective is None:
            return item.kind == "unit"
        program, identity = self.context.program, self.context.identity
        key = identity.of(program.class_of[device].module, Site(item.path, begun))
        modules = {program.class_of[member].module for member in program.group(collective, device)}
        sites = (
            site for module in modules for site in collectives_of(module.entry) if identity.of(module, site) == key
        )
        return any(step.instruction.opcode in UNITS for site in sites for step in site.path)

    def _findings(self, best: Candidate) -> Iterator[Finding]:
        """What stops, and under which condition: nothing where the programs end in all scenarios."""
        stops, outcomes = Stops(self.levels, self.scenarios), best.outcomes
        if outcomes.good is None:
            assert outcomes.bad is not None
            errors = [f for f in self.levels.found if f.kind != "data_dependent"]
            yield from errors or [stops.finding(self.context, outcomes.bad)]
            return
        told = [f for f in self.levels.found if f.kind == "data_dependent"]
        if outcomes.bad is not None:
            yield from told
            if self.levels.is_refused or not told:
                yield stops.conditional(best.context, outcomes.good, outcomes.bad)
        waits = external_wait_findings(self.context, self.scenarios.asks)
        yield from (found for found in waits if not self._is_simulated(found))

    def _is_simulated(self, found: Finding) -> bool:
        """Whether the scenarios have shown whether this external wait ends."""
        return found.cause == "TRAVELLING" or (found.cause == "STARVED" and self.context.infeed is not None)
