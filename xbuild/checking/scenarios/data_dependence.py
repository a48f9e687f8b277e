"""Where the levels refuse or leave it open: the programs run in every scenario of the data, to see how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from attrs import define, evolve, frozen

from ...properties.effects import collective_in, start_of
from ...properties.sites import Site, collectives_of
from ..deadlock.examine import Examination
from ..deadlock.run import Context, ItemNumber
from ..model.describe import calls_text, finding
from ..model.flattening import UNITS
from ..model.program import devices_text
from ..model.verdict import Finding, Orders, VerdictKind
from .event_counts import lacks
from .external_waits import outside
from .scenarios import Outcomes, ScenarioRow, Scenarios
from .search import Search
from .simulate import SimulatedEvent

MOST_ORDERS = 8
MANY = 10**9
MOST_CHOICES = 64  # beyond, what the levels say of the data stands

Examine = Callable[..., Examination]


@frozen(eq=False)
class Settled:
    """How programs end, whatever the data: the kind, the findings that stay, the orders that it holds for.

    `may_end`: whether some way was seen in which all end.
    """

    kind: VerdictKind
    findings: tuple[Finding, ...]
    orders: Mapping[int, Orders]
    may_end: bool = True


@frozen(eq=False)
class Candidate:
    """Orders of the programs, and how these end in them."""

    orders: Mapping[int, Orders]
    context: Context
    outcomes: Outcomes


@define(eq=False, slots=False)
class Settlement:
    """The question of one program, whose examination has found something."""

    context: Context
    examination: Examination

    @cached_property
    def scenarios(self) -> Scenarios:
        return Scenarios(self.context, self.examination.control)

    @cached_property
    def search(self) -> Search:
        return Search(self.context)

    def settled(self) -> Settled | None:
        """None where what was found stands."""
        if not self._is_refused and len(self.scenarios.choices) > MOST_CHOICES:
            return self._open(None)
        best = self._best()
        if best is None or (best.outcomes.rank != 1 and not self._is_whole(best)):
            return self._open(best)
        findings = [*self._findings(best.outcomes, best.context)]
        if any(finding.kind != "data_dependent" for finding in findings):
            return None if self._is_refused else Settled("deadlock", tuple(findings), {})
        return Settled("depends" if findings else "ok", tuple(findings), best.orders)

    def _is_whole(self, best: Candidate) -> bool:
        """Whether all was tried that could end otherwise."""
        if not best.outcomes.rank and self.scenarios.is_starved():
            return True
        return self.scenarios.is_whole and (best.outcomes.rank == 2 or not self._gave_up)

    @property
    def _gave_up(self) -> bool:
        return not self.context.program.given and self.search.gave_up

    def _open(self, best: Candidate | None) -> Settled | None:
        """What is to say where it is too much to try all."""
        if not self._is_refused and not self.examination.fills and (best is None or best.outcomes.rank):
            return None  # the levels have told under which conditions it stops
        if self._is_certain or (self._is_refused and lacks(self.context, self.examination.control)):
            return None
        left = [f for f in self.examination.found if f.kind == "data_dependent"]
        orders = {} if best is None else best.orders
        outcomes = None if best is None else best.outcomes
        may_end = outcomes is not None and outcomes.rank > 0
        return Settled("depends", (self._not_all(outcomes), *left), orders, may_end)

    def _not_all(self, outcomes: Outcomes | None) -> Finding:
        """That not all was tried, and what came of what was."""
        tried, count = len(self.scenarios.rows), self.scenarios.count
        some = "none" if outcomes is None else f"{tried} of {count if count <= MANY else 'very many'} ways"
        order = ", not in every order" if self._gave_up else ""
        ends = "" if outcomes is None else f"; in all of these it {'ends' if outcomes.rank else 'stops'}"
        found = self.examination.found[0] if self.examination.found else Finding("data_dependent", "")
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
    def _is_refused(self) -> bool:
        """Whether the levels say more than that data decide."""
        return bool(self.examination.stuck) or any(f.kind != "data_dependent" for f in self.examination.found)

    @property
    def _is_certain(self) -> bool:
        """Whether devices stop before any loop or conditional that data decide."""
        levels, stuck = self.examination.levels, self.examination.stuck
        return any(run.level is levels[0] and not any(map(self._may_come, run.blocked())) for run in stuck)

    def _may_come(self, place: ItemNumber) -> bool:
        """Whether who is waited for there may come in a loop or conditional of theirs that data decide."""
        device, item = place[0], self.examination.levels[0].skeletons[place[0]].items[place[1]]
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

    def _best(self) -> Candidate | None:
        """The orders with which most ends; None where that is too much to find out."""
        best: Candidate | None = None
        for orders in self._candidates():
            context = evolve(self.context, program=self.context.program.ordered(orders))
            outcomes = self.scenarios.outcomes(context)
            if outcomes is None:
                return None
            if best is None or outcomes.rank > best.outcomes.rank:
                best = Candidate(orders, context, outcomes)
            if outcomes.rank == 2:
                break
        return best if best is None or best.outcomes.rank == 2 else self._searched(best)

    def _searched(self, best: Candidate) -> Candidate:
        """Better orders than these, where there are some: with which all ends, or any."""
        if self.context.program.given:
            return best
        for some in self._wanted(best.outcomes):
            orders = self.search.order([self.scenarios.scenario(row) for row in some])
            if orders is not None:
                context = evolve(self.context, program=self.context.program.ordered(orders))
                outcomes = self.scenarios.outcomes(context)
                if outcomes is not None and outcomes.rank > best.outcomes.rank:
                    return Candidate(orders, context, outcomes)
        return best

    def _wanted(self, outcomes: Outcomes) -> Iterator[list[ScenarioRow]]:
        """The scenarios of which orders are looked for in which these end: all of them, or where none ends any."""
        rows, hopeless = self.scenarios.rows, self.scenarios.is_hopeless
        is_hopeless = outcomes.bad is not None and hopeless(outcomes.bad)
        if not is_hopeless and not any(map(hopeless, rows)):
            yield [*rows]
        if not outcomes.rank:
            yield from ([row] for row in rows if not hopeless(row))

    def _candidates(self) -> Iterator[Mapping[int, Orders]]:
        """The order that binds or was found; where none was, those that run in some scenario."""
        found = self.examination.recorder.orders()
        yield found
        program = self.context.program
        if program.given or not self._is_refused:
            return
        seen = [found]
        for row in self.scenarios.rows[:MOST_ORDERS]:
            assumed = self._examined(self.context, row)
            if not assumed.stuck and assumed.recorder.torn is None:
                orders = _merged(found, assumed.recorder.orders())
                if orders not in seen:
                    seen.append(orders)
                    yield orders
        if {} not in seen:
            yield {}

    def _examined(self, context: Context, row: ScenarioRow) -> Examination:
        return Examination(context, self.examination.control.assuming(self.scenarios.assumed(row)))

    def _findings(self, outcomes: Outcomes, context: Context) -> Iterator[Finding]:
        if outcomes.good is None:
            yield from self._hopeless(outcomes, context)
            return
        told = [f for f in self.examination.found if f.kind == "data_dependent"]
        if outcomes.bad is not None:
            yield from told
            if self._is_refused or not told:
                yield self._conditional(outcomes, context)
        yield from (f for f in outside(self.context, self.scenarios.asks) if not self._is_settled(f))

    def _is_settled(self, found: Finding) -> bool:
        """Whether the scenarios have shown what becomes of it."""
        return found.cause == "TRAVELLING" or (found.cause == "STARVED" and self.context.infeed is not None)

    def _hopeless(self, outcomes: Outcomes, context: Context) -> Iterator[Finding]:
        """What is stuck in every scenario, shown in the first of them; an error that was found is one in all."""
        assert outcomes.bad is not None
        errors = [f for f in self.examination.found if f.kind != "data_dependent"]
        yield from errors or [self._stuck(outcomes.bad, self.context)]

    def _stuck(self, row: ScenarioRow, context: Context) -> Finding:
        """Where devices stand in a scenario that does not end."""
        examined = self._examined(context, row)
        found = next((f for f in examined.found if f.cycle or f.blocked), None)
        return stopped(self.scenarios.standing(context, row)) if found is None else found

    def _conditional(self, outcomes: Outcomes, context: Context) -> Finding:
        """What makes it stop, and where it then stands."""
        assert outcomes.good is not None
        assert outcomes.bad is not None
        message = self._stuck(outcomes.bad, context).message
        condition, bad = self.scenarios.condition(
            outcomes.good,
            outcomes.bad,
            lambda row: not self.scenarios.ends(context, row) and self._stuck(row, context).message == message,
        )
        found = self._stuck(bad, context)
        return evolve(found, kind="data_dependent", message=f"if {condition}: {found.message}")


def stopped(standing: Mapping[int, SimulatedEvent]) -> Finding:
    """What is to say of devices that stop, where no level shows why."""
    starved = [device for device, event in standing.items() if event.is_starved]
    shown = {device: event for device, event in standing.items() if not starved or device in starved}
    places = [((device,), event.site) for device, event in shown.items()]
    if starved:
        message = f"the infeed of {devices_text(starved)} has fewer items than are asked for"
    else:
        calls = calls_text((device, event.site.instruction) for device, event in standing.items())
        message = f"{calls} {'wait for each other' if len(standing) > 1 else 'waits for ever'}"
    found = finding(
        "infeed_starved" if starved else "deadlock",
        message,
        *places,
        cause="STARVED" if starved else "MISSING_MEMBER",
        cause_text="a device whose infeed is empty waits for ever, and so does who waits for that device"
        if starved
        else "loops and conditionals around these bring the devices apart",
    )
    rows = (
        evolve(row, waits=_waits(device, event)) for row, (device, event) in zip(found.rows, shown.items(), strict=True)
    )
    blocked = {device: (event.site.instruction,) for device, event in standing.items()}
    return evolve(found, rows=tuple(rows), blocked=blocked)


def _waits(device: int, event: SimulatedEvent) -> str:
    if event.is_starved:
        return "an item of its infeed, which has no more"
    return f"{devices_text({*event.members} - {device})} to come to the other side of it"


def _merged(first: Mapping[int, Orders], second: Mapping[int, Orders]) -> Mapping[int, Orders]:
    """The orders of both, of one computation that of the second."""
    return {d: tuple({**dict(first.get(d, ())), **dict(second.get(d, ()))}.items()) for d in {**first, **second}}
