"""Where the levels refuse or leave it open: the programs run in every scenario of the data, to see how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve, field, frozen

from .control import Control
from .describe import finding
from .examine import Examination
from .outside import outside
from .program import Program, devices_text
from .run import World
from .scenarios import Chosen, Outcomes, Scenarios
from .simulate import Event
from .verdict import Finding, Orders, VerdictKind

MOST_ORDERS = 8

Examine = Callable[..., Examination]


@frozen(eq=False)
class Settled:
    """How programs end, whatever the data: the kind, the findings that stay, the orders that it holds for."""

    kind: VerdictKind
    findings: tuple[Finding, ...]
    orders: Mapping[int, Orders]


@frozen(eq=False)
class Settlement:
    """The question of one program, whose examination has found something."""

    world: World
    examination: Examination
    scenarios: Scenarios = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "scenarios", Scenarios(self.world, self.examination.control))

    def settled(self) -> Settled | None:
        """None where that is too much to find out, or where what was found stands."""
        best: tuple[Outcomes, Program, Mapping[int, Orders]] | None = None
        for orders in self._candidates():
            program = self.world.program.ordered(orders)
            outcomes = self.scenarios.outcomes(evolve(self.world, program=program))
            if outcomes is None:
                return None
            if best is None or outcomes.rank > best[0].rank:
                best = outcomes, program, orders
            if outcomes.rank == 2:
                break
        assert best is not None
        outcomes, program, orders = best
        findings = [*self._findings(outcomes, evolve(self.world, program=program))]
        if any(finding.kind != "data_dependent" for finding in findings):
            return None if self._is_refused else Settled("deadlock", tuple(findings), {})
        return Settled("depends" if findings else "ok", tuple(findings), orders)

    @property
    def _is_refused(self) -> bool:
        """Whether the levels say more than that data decide."""
        return bool(self.examination.stuck) or any(f.kind != "data_dependent" for f in self.examination.found)

    def _candidates(self) -> Iterator[Mapping[int, Orders]]:
        """The order that binds or was found; where none was, those that run in some scenario."""
        found = self.examination.recorder.orders()
        yield found
        program = self.world.program
        if program.given or not self._is_refused:
            return
        seen = [found]
        for number, chosen in enumerate(self.scenarios.all()):
            if number == MOST_ORDERS:
                return
            assumed = self._examined(self.world, chosen)
            if not assumed.stuck and assumed.recorder.torn is None:
                orders = _merged(found, assumed.recorder.orders())
                if orders not in seen:
                    seen.append(orders)
                    yield orders
        if {} not in seen:
            yield {}

    def _examined(self, world: World, chosen: Chosen) -> Examination:
        return Examination(world, Control(world.program, chosen))

    def _findings(self, outcomes: Outcomes, world: World) -> Iterator[Finding]:
        if outcomes.good is None:
            yield from self._hopeless(outcomes, world)
            return
        told = [f for f in self.examination.found if f.kind == "data_dependent"]
        if outcomes.bad is not None:
            yield from told
            if self._is_refused or not told:
                yield self._conditional(outcomes, world)
        yield from (f for f in outside(self.world, self.scenarios.asks) if not self._is_settled(f))

    def _is_settled(self, found: Finding) -> bool:
        """Whether the scenarios have shown what becomes of it."""
        return found.cause == "TRAVELLING" or (found.cause == "STARVED" and self.world.infeed is not None)

    def _hopeless(self, outcomes: Outcomes, world: World) -> Iterator[Finding]:
        """What is stuck in every scenario, shown in the first of them; an error that was found is one in all."""
        assert outcomes.bad is not None
        errors = [f for f in self.examination.found if f.kind != "data_dependent"]
        yield from errors or [self._stuck(outcomes.bad, self.world)]

    def _stuck(self, chosen: Chosen, world: World) -> Finding:
        """Where devices stand in a scenario that does not end."""
        examined = self._examined(world, chosen)
        found = next((f for f in examined.found if f.cycle or f.blocked), None)
        return stopped(self.scenarios.standing(world, chosen)) if found is None else found

    def _conditional(self, outcomes: Outcomes, world: World) -> Finding:
        """What makes it stop, and where it then stands."""
        assert outcomes.good is not None
        assert outcomes.bad is not None
        message = self._stuck(outcomes.bad, world).message
        condition, bad = self.scenarios.condition(
            outcomes.good,
            outcomes.bad,
            lambda chosen: not self.scenarios.ends(world, chosen) and self._stuck(chosen, world).message == message,
        )
        found = self._stuck(bad, world)
        return evolve(found, kind="data_dependent", message=f"if {condition}: {found.message}")


def stopped(standing: Mapping[int, Event]) -> Finding:
    """What is to say of devices that stop, where no level shows why."""
    starved = [device for device, event in standing.items() if event.is_starved]
    shown = {device: event for device, event in standing.items() if not starved or device in starved}
    places = [((device,), event.site) for device, event in shown.items()]
    if starved:
        message = f"the infeed of {devices_text(starved)} has fewer items than are asked for"
    else:
        message = f"{devices_text(standing)} {'wait for each other' if len(standing) > 1 else 'waits for ever'}"
    found = finding(
        "infeed_starved" if starved else "deadlock",
        message,
        *places,
        cause="STARVED" if starved else "MISSING_MEMBER",
        cause_text="a device whose infeed is empty waits for ever, and so does who waits for that device"
        if starved
        else "loops and conditionals around these bring the devices apart",
    )
    rows = (evolve(row, waits=_waits(event)) for row, event in zip(found.rows, shown.values(), strict=True))
    blocked = {device: (event.site.instruction,) for device, event in standing.items()}
    return evolve(found, rows=tuple(rows), blocked=blocked)


def _waits(event: Event) -> str:
    if event.is_starved:
        return "an item of its infeed, which has no more"
    return f"{devices_text({device for device, _, _ in event.needs})} to come to the other side of it"


def _merged(first: Mapping[int, Orders], second: Mapping[int, Orders]) -> Mapping[int, Orders]:
    """The orders of both, of one computation that of the second."""
    return {d: tuple({**dict(first.get(d, ())), **dict(second.get(d, ()))}.items()) for d in {**first, **second}}
