"""The finding for a scenario in which the programs stop: where devices stand, and under which condition."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from ..deadlock.level_run import Context
from ..deadlock.levels import LevelStage
from ..model.describe import calls_text, finding
from ..model.program import devices_text
from ..model.verdict import Finding
from .choices import Scenario
from .scenarios import Scenarios
from .simulate import SimulatedEvent


@frozen(eq=False)
class Stops:
    """The findings for scenarios that stop, by the levels where these are stuck too, else by the simulation."""

    levels: LevelStage
    scenarios: Scenarios

    def finding(self, context: Context, scenario: Scenario) -> Finding:
        """Where devices stand in a scenario that does not end."""
        assumed = self.levels.assuming(context, self.scenarios.assumed(scenario))
        found = next((f for f in assumed.found if f.cycle or f.blocked), None)
        return standing_finding(self.scenarios.standing(context, scenario)) if found is None else found

    def conditional(self, context: Context, good: Scenario, bad: Scenario) -> Finding:
        """Which choices make the programs stop, and where devices then stand; `good` is a scenario that ends."""
        message = self.finding(context, bad).message
        condition, bad = self.scenarios.condition(
            good,
            bad,
            lambda each: not self.scenarios.ends(context, each) and self.finding(context, each).message == message,
        )
        found = self.finding(context, bad)
        return evolve(found, kind="data_dependent", message=f"if {condition}: {found.message}")


def standing_finding(standing: Mapping[int, SimulatedEvent]) -> Finding:
    """The finding for devices that stop at these events, where no level shows why."""
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
