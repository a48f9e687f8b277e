"""The scenario stage: `conclude` decides how the programs end, from the levels or by simulating all scenarios.

Sections:

    The finding for a scenario in which the programs stop
    External waits: infeed items, host callbacks, and transfers whose context a loop carries
    conclude: the levels, then the simulation of all scenarios
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property

from attrs import define, evolve, frozen

from shape_inference.escaping import in_line

from ...core.graph import Computation, Instruction
from ...core.memos import remembered
from ...process.limits import ask
from ...properties.effects import (
    FEEDS,
    PLAIN_CALLS,
    TRANSFERS,
    UNITS,
    calls_python,
    collective_in,
    communicates_itself,
    has_side_effect,
    host_function_of,
    is_debug_print,
    is_with_host,
    jax_primitive,
    notable,
    start_of,
)
from ...properties.placement import is_same
from ...properties.sites import Site, collectives_of, feeds_of, reached, sites_of
from ...properties.waiting import events_of
from ..deadlock.level_run import ItemNumber, LevelContext
from ..deadlock.levels import LevelStage
from ..model.describe import calls_text, finding, named
from ..model.program import DeviceClass, Orders, devices_text
from ..model.verdict import Finding, VerdictKind
from ..structure.structure import is_pipelined
from .scenarios import Outcomes, Scenario, Scenarios
from .search import Candidate, Candidates
from .simulate import SimulatedEvent, is_short_by_counts

# ----------------------------------------------------------------------------
# The finding for a scenario in which the programs stop: where, and under which condition


@frozen(eq=False)
class Stops:
    """The findings for scenarios that stop: from the levels if these are stuck too, else from the simulation."""

    levels: LevelStage
    scenarios: Scenarios

    def finding(self, context: LevelContext, scenario: Scenario) -> Finding:
        """Where devices stop in a scenario that does not end."""
        assumed = self.levels.assuming(context, self.scenarios.assumed(scenario))
        found = next((f for f in assumed.found if f.cycle or f.blocked), None)
        return stop_finding(self.scenarios.stopped_events(context, scenario)) if found is None else found

    def conditional(self, context: LevelContext, good: Scenario, bad: Scenario) -> Finding:
        """Which choices make the programs stop, and where; `good` is a scenario that ends."""
        message = self.finding(context, bad).message
        condition, bad = self.scenarios.condition(
            good,
            bad,
            lambda each: not self.scenarios.ends(context, each) and self.finding(context, each).message == message,
        )
        found = self.finding(context, bad)
        return evolve(found, kind="data_dependent", message=f"if {condition}: {found.message}")


def stop_finding(stopped: Mapping[int, SimulatedEvent]) -> Finding:
    """The finding for devices that stop at these events, if no level shows why."""
    starved = [device for device, event in stopped.items() if event.is_starved]
    ended = {device: {*event.members} - stopped.keys() for device, event in stopped.items()}
    shown = {device: event for device, event in stopped.items() if not starved or device in starved}
    places = [((device,), event.site) for device, event in shown.items()]
    cause = "these devices take different branches or trip counts around these instructions"
    if starved:
        cause = "a device whose infeed is empty hangs, and so does every device that waits for it"
        message = f"the infeed of {devices_text(starved)} holds fewer items than the program takes"
    elif any(ended.values()):
        site = next(event.site for device, event in stopped.items() if ended[device])
        waiting = [device for device, event in stopped.items() if ended[device] and f"{event.site}" == f"{site}"]
        missing = set().union(*(ended[device] for device in waiting))
        message = f"{devices_text(waiting)} wait{'s' * (len(waiting) == 1)} at {site} for {_ends_first(missing)}"
        cause = f"{devices_text(sorted(missing))} took another branch, or fewer trips, around {site.instruction.name}"
    else:
        calls = calls_text((device, event.site.instruction) for device, event in stopped.items())
        message = f"{calls} {'wait for each other' if len(stopped) > 1 else 'hangs'}"
    found = finding(
        "infeed_starved" if starved else "deadlock",
        message,
        *places,
        cause="STARVED" if starved else "MISSING_MEMBER",
        cause_text=cause,
    )
    rows = (
        evolve(row, waits=_waits(device, event, ended[device]))
        for row, (device, event) in zip(found.rows, shown.items(), strict=True)
    )
    blocked = {device: (event.site.instruction,) for device, event in stopped.items()}
    return evolve(found, rows=tuple(rows), blocked=blocked)


def _waits(device: int, event: SimulatedEvent, ended: Set[int]) -> str:
    if event.is_starved:
        return "an item of its infeed, which is empty"
    return _ends_first(ended) if ended else f"{devices_text({*event.members} - {device})} to reach the other side"


def _ends_first(devices: Set[int]) -> str:
    return f"{devices_text(sorted(devices))}, which end{'s' * (len(devices) == 1)} first"


# ----------------------------------------------------------------------------
# External waits: infeed items, host callbacks, and transfers whose context a loop carries

_DONES = frozenset(TRANSFERS.values())


def external_wait_findings(
    context: LevelContext, may_take_item: Callable[[int], bool] = lambda device: True
) -> Iterator[Finding]:
    """A finding for each wait that no device ends; `may_take_item` says whether a device takes infeed items."""
    for device_class in context.program.without_orders().classes:
        yield from _infeed_findings(context, device_class, may_take_item)
        yield from _callback_findings(context, device_class)
        for site in sites_of(device_class.module.entry):
            if site.instruction.opcode in _DONES and is_pipelined(site.instruction):
                yield finding(
                    "data_dependent",
                    f"if {site} completes a transfer from a different trip than the other side expects",
                    (device_class.devices, site),
                    cause="TRAVELLING",
                    cause_text=(
                        "the loop state carries the context of the transfer, so the trip decides which transfer "
                        "completes"
                    ),
                )


def _infeed_findings(
    context: LevelContext, device_class: DeviceClass, may_take_item: Callable[[int], bool]
) -> Iterator[Finding]:
    """The finding for infeeds without a stated number of items, or inside loops and conditionals."""
    places = [site for site in feeds_of(device_class.module.entry) if events_of(site.instruction)]
    repeated = [site for site in places if any(step.instruction.opcode not in PLAIN_CALLS for step in site.path)]
    if not repeated and (not places or context.infeed is not None):
        return
    asking = [device for device in device_class.devices if may_take_item(device)]
    if not asking:
        return
    one = f"{'one of ' * (len(asking) > 1)}{devices_text(asking)}"
    items = f"fewer than {len(places)} item{'s' * (len(places) != 1)}"
    yield finding(
        "data_dependent",
        f"if the infeed of {one} holds {'fewer items than the program takes' if repeated else items}",
        *((device_class.devices, site) for site in repeated or places),
        cause="STARVED",
        cause_text="a device whose infeed is empty hangs, and so does every device that waits for it",
        repair_text="" if repeated else "state how many items each device gets: check(..., infeed=...)",
    )


def _callback_findings(context: LevelContext, device_class: DeviceClass) -> Iterator[Finding]:
    """The findings for callbacks before communication, where other devices wait for the callback."""
    computations = reached(device_class.module.entry)
    if len(context.program.devices) < 2 or not any(_has_callback(c) for c in computations):
        return
    found: dict[Instruction, None] = {}
    for computation in computations:
        order, meets = device_class.order(computation), False
        for instruction in reversed(order):
            ask()
            meets = meets or _meets_devices(instruction)
            if meets and _is_callback(instruction):
                found[instruction] = None
            if meets:
                found |= dict.fromkeys(each for called in instruction.called for each in _callbacks_in(called))
    for instruction in reversed(found):
        yield finding(
            "data_dependent",
            f"if {_callback_text(instruction)} does not return on one of {devices_text(device_class.devices)}",
            (device_class.devices, Site((), instruction)),
            cause="CALLBACK",
            cause_text="a host callback may never return",
        )


@remembered
def _callbacks_in(computation: Computation) -> tuple[Instruction, ...]:
    """The callbacks of a computation and of all that it calls."""
    return tuple(
        [instruction for one in reached(computation) for instruction in one.instructions if _is_callback(instruction)]
    )


def _has_callback(computation: Computation) -> bool:
    return any(_is_callback(i) for i in notable(computation) if i.opcode in ("custom_call", "recv_done"))


def _is_callback(instruction: Instruction) -> bool:
    """Whether a function of the host has to return before the program continues here."""
    is_call = (has_side_effect(instruction) or calls_python(instruction)) and not is_same(instruction)
    return (is_call and not is_debug_print(instruction)) or (
        instruction.opcode == "recv_done" and is_with_host(instruction)
    )


_JAX_CALLBACKS = {"pure_callback": "jax.pure_callback", "io_callback": "jax.experimental.io_callback"}


def _callback_text(instruction: Instruction) -> str:
    """The function that has to return, as text."""
    start = start_of(instruction) if instruction.opcode == "recv_done" else None
    function = None if start is None else host_function_of(start)
    label = "" if function is None else f" {in_line(function.label)!r}"
    if start is None:
        api = _JAX_CALLBACKS.get(jax_primitive(instruction), "a Python callback")
        return f"{named(instruction)}{f' ({api})' * calls_python(instruction)}"
    return f"the host function{label}, whose result {instruction.name} takes,"


def _meets_devices(instruction: Instruction) -> bool:
    """Whether an instruction, or what it calls, communicates with devices."""
    sites = (site.instruction for called in instruction.called for site in sites_of(called))
    found = (*((instruction,) if communicates_itself(instruction) else ()), *sites)
    return any(i.opcode not in FEEDS and not is_with_host(i) for i in found)


# ----------------------------------------------------------------------------
# conclude: the levels, then the simulation of all scenarios

MANY = 10**9
MOST_CHOICES = 64  # beyond, the findings of the levels hold


@frozen(eq=False)
class Conclusion:
    """How the programs end, whatever the data: the kind of verdict, its findings, the orders that it holds for.

    `is_simulated`: whether the scenarios decided it; else the levels did. `may_end`: whether the programs end in some
    order and scenario that was tried.
    """

    kind: VerdictKind
    findings: tuple[Finding, ...]
    orders: Mapping[int, Orders]
    may_end: bool = True
    is_simulated: bool = True


def conclude(context: LevelContext, levels: LevelStage) -> Conclusion:
    """The conclusion from what the levels found, or by simulation if that leaves anything open."""
    waits = tuple(external_wait_findings(context))
    if not (levels.stuck or levels.found or levels.fills_buffers or waits):
        return Conclusion("ok", (), levels.recorder.orders(), is_simulated=False)
    return ScenarioStage(context, levels).conclusion() or _conclude_by_levels(levels, (*levels.found, *waits))


def _conclude_by_levels(levels: LevelStage, findings: tuple[Finding, ...]) -> Conclusion:
    """What the levels and the external waits show without simulation."""
    if levels.stuck:
        return Conclusion("deadlock", tuple(levels.found), {}, is_simulated=False)
    errors = tuple(found for found in findings if found.kind != "data_dependent")
    kind: VerdictKind = "error" if errors else "depends" if findings else "ok"
    return Conclusion(kind, errors or findings, levels.recorder.orders(), is_simulated=False)


@define(eq=False, slots=False)
class ScenarioStage:
    """The simulation of all scenarios of programs for which the levels have findings."""

    context: LevelContext
    levels: LevelStage

    @cached_property
    def scenarios(self) -> Scenarios:
        return Scenarios(self.context, self.levels.decisions)

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates(self.context, self.levels, self.scenarios)

    def conclusion(self) -> Conclusion | None:
        """What the scenarios show; None if the findings of the levels hold."""
        if self._is_certain and not any(each.units for each in self.levels.levels[0].skeletons.values()):
            return None  # nothing is left to choose, so the level is stuck in every order
        if not self.levels.is_refused and len(self.scenarios.choices) > MOST_CHOICES:
            return self._undecided(None)
        best = self.candidates.best()
        if best is None or (best.outcomes.rank != 1 and not self._is_decided(best)):
            return self._undecided(best)
        findings = [*self._findings(best)]
        if any(finding.kind != "data_dependent" for finding in findings):
            return None if self.levels.is_refused else Conclusion("deadlock", tuple(findings), {})
        return Conclusion("depends" if findings else "ok", tuple(findings), best.orders)

    def _is_decided(self, best: Candidate) -> bool:
        """Whether no scenario or order is left that could end differently."""
        if not best.outcomes.rank and self.scenarios.is_starved():
            return True
        return self.scenarios.is_exhaustive and (best.outcomes.rank == 2 or not self.candidates.gave_up)

    def _undecided(self, best: Candidate | None) -> Conclusion | None:
        """The conclusion if there are too many scenarios or orders to try all; None if that of the levels holds."""
        if not self.levels.is_refused and not self.levels.fills_buffers and (best is None or best.outcomes.rank):
            return None  # the findings of the levels name the conditions
        if self._is_certain or (self.levels.is_refused and is_short_by_counts(self.context, self.levels.decisions)):
            return None
        left = [f for f in self.levels.found if f.kind == "data_dependent"]
        orders = {} if best is None else best.orders
        outcomes = None if best is None else best.outcomes
        may_end = outcomes is not None and outcomes.rank > 0
        return Conclusion("depends", (self._untried_finding(outcomes), *left), orders, may_end)

    def _untried_finding(self, outcomes: Outcomes | None) -> Finding:
        """The finding that not all scenarios and orders were tried, and how the tried ones ended."""
        tried, count = len(self.scenarios.enumerated), self.scenarios.count
        some = "none were" if outcomes is None else f"{tried} of {count if count <= MANY else 'very many'} were"
        order = ", but not in every order" if self.candidates.gave_up else ""
        ends = "" if outcomes is None else f"; the program {'ends' if outcomes.rank else 'hangs'} in all cases tried"
        found = self.levels.found[0] if self.levels.found else Finding("data_dependent", "")
        return Finding(
            "data_dependent",
            f"the data decide whether the program completes, and the check could not try all cases: {some} "
            f"tried{order}{ends}",
            found.rows,
            found.instructions,
            found.devices,
            cause="NOT_ALL_TRIED",
            cause_text=(
                "the data may lead to too many combinations of choices, or the instructions have too many possible "
                "orders"
            ),
            repair_text="state a schedule for each program, or make the deciding values equal on all devices",
        )

    @property
    def _is_certain(self) -> bool:
        """Whether devices stop before any loop or conditional that data decide."""
        levels, stuck = self.levels.levels, self.levels.stuck
        return any(run.level is levels[0] and not any(map(self._may_come, run.blocked())) for run in stuck)

    def _may_come(self, place: ItemNumber) -> bool:
        """Whether an awaited device may reach this place in a loop or conditional that data decide."""
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
        """What stops, and under which condition; nothing if the programs end in all scenarios."""
        stops, outcomes = Stops(self.levels, self.scenarios), best.outcomes
        if outcomes.good is None:
            assert outcomes.bad is not None
            errors = [f for f in self.levels.found if f.kind != "data_dependent"]
            yield from errors or [stops.finding(self.context, outcomes.bad)]
            return
        conditions = [f for f in self.levels.found if f.kind == "data_dependent"]
        if outcomes.bad is not None:
            yield from conditions
            if self.levels.is_refused or not conditions:
                yield stops.conditional(best.context, outcomes.good, outcomes.bad)
        waits = external_wait_findings(self.context, self.scenarios.may_take_item)
        yield from (found for found in waits if not self._is_simulated(found))

    def _is_simulated(self, found: Finding) -> bool:
        """Whether the scenarios have shown whether this external wait ends."""
        return found.cause == "TRAVELLING" or (found.cause == "STARVED" and self.context.infeed is not None)
