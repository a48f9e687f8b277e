"""The scenarios of a program: the combinations of values of its choices, and how the programs end in each of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Instruction
from ...process.deadline import ask
from ...properties.effects import Path
from ...properties.waiting import TAKEN
from ..dataflow.analysis import key_of
from ..dataflow.decisions import Decisions
from ..deadlock.level_run import Context
from ..model.program import DeviceClass, Program
from .choices import Choice, Choices, Decision, Scenario
from .domains import Domains, alike
from .simulate import (
    Counts,
    Decide,
    SimulatedEvent,
    TooLongError,
    Tracer,
    Walk,
    communicating_order,
    event_totals,
    is_short_of_events,
    standing_events,
)

Traces: TypeAlias = dict[int, tuple[SimulatedEvent, ...]]

MOST_SCENARIOS = 4096
MOST_EVENTS = 300_000  # of all scenarios, estimated by the first
MOST_WORK = 3_000_000  # events of all simulations
MOST_OWN = 512  # combinations of the choices of one device


@define(eq=False, slots=False)
class Scenarios:
    """The scenarios of a program, and their simulations."""

    context: Context
    decisions: Decisions
    found: Choices = field(init=False)
    _domains: Domains = field(init=False)
    _work: int = 0
    _traces: dict[tuple[Program, int, Scenario], tuple[SimulatedEvent, ...]] = field(factory=dict)
    _walks: dict[tuple[Program, DeviceClass], Walk] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.found = found = Choices(self.context.program, self.decisions)
        self._domains = Domains(self.context, found.every, frozenset(found.trips), self._totals)

    @property
    def choices(self) -> list[Choice]:
        return self.found.every

    @cached_property
    def enumerated(self) -> list[Scenario]:
        """The scenarios that are simulated."""
        return self._enumerate(self._values)

    @cached_property
    def count(self) -> int:
        """The number of combinations of all values."""
        return math.prod(map(len, self._values))

    @cached_property
    def _values(self) -> list[list[Decision]]:
        return self._domains.values()

    @property
    def is_whole(self) -> bool:
        return len(self.enumerated) == self.count and not self._domains.is_rough

    def _totals(self, scenario: Scenario) -> Counts:
        return event_totals(self.traces(self.context, scenario))

    def _enumerate(self, domains: Sequence[Sequence[Decision]]) -> list[Scenario]:
        """The scenarios: first those in which all choices are alike; of too many those in which one choice differs."""
        most = self._most(tuple(domain[0] for domain in domains))
        every = itertools.product(*domains) if self.count <= most else _few(domains)
        return [*itertools.islice(dict.fromkeys(map(tuple, itertools.chain(alike(domains), every))), most)]

    def _most(self, scenario: Scenario) -> int:
        try:
            events = sum(map(len, self.traces(self.context, scenario).values()))
        except TooLongError:
            return 1
        return max(1, min(MOST_SCENARIOS, MOST_EVENTS // max(events, len(self.context.program.devices))))

    def decide(self, scenario: Scenario) -> Callable[[int], Decide]:
        """The decisions of each device in a scenario."""
        return lambda device: lambda *place: self._decide(scenario, device, *place)

    def _decide(self, scenario: Scenario, device: int, instruction: Instruction, path: Path, turn: int) -> int:
        at = self.found.at.get((device, key_of(instruction, path)))
        if at is not None:
            value = scenario[at]
            return value[turn % len(value)] if isinstance(value, tuple) else value
        turns = self.found.turns_at(device, instruction, path)
        return 0 if not turns else turns[min(turn, len(turns) - 1)]

    def assumed(self, scenario: Scenario) -> dict[Hashable, int]:
        """The decisions of a scenario that are the same each time, by device and site."""
        return {place: value for place, at in self.found.at.items() if isinstance(value := scenario[at], int)}

    def traces(self, context: Context, scenario: Scenario) -> Traces:
        """The events of each device in a scenario. Raises TooLongError."""
        return {device: self._trace(context, device, scenario) for device in context.program.devices}

    def _trace(self, context: Context, device: int, scenario: Scenario) -> tuple[SimulatedEvent, ...]:
        key = context.program, device, tuple(scenario[at] for at in self.found.of[device])
        if key not in self._traces:
            each = context.program.class_of[device]
            walk = self._walks.setdefault((context.program, each), communicating_order(each))
            self._traces[key] = Tracer(context, device, walk, self.decide(scenario)(device)).events()
        return self._traces[key]

    def ends(self, context: Context, scenario: Scenario) -> bool:
        """Whether a scenario ends; one that is too long to simulate counts as ending."""
        try:
            return not self.standing(context, scenario)
        except TooLongError:
            return True

    def standing(self, context: Context, scenario: Scenario) -> dict[int, SimulatedEvent]:
        """The events at which devices stop in a scenario."""
        return standing_events(self.traces(context, scenario))

    def _followed(self, context: Context, scenario: Scenario) -> dict[int, SimulatedEvent]:
        """The same, within the budget of all simulations. Raises TooLongError."""
        self._work += sum(map(len, self.traces(context, scenario).values()))
        if self._work > MOST_WORK:
            raise TooLongError
        return self.standing(context, scenario)

    def is_hopeless(self, scenario: Scenario) -> bool:
        """Whether a scenario ends in no order: a device waits for more events than another has."""
        try:
            return is_short_of_events(self.traces(self.context, scenario))
        except TooLongError:
            return False

    def is_starved(self) -> bool:
        """Whether a device takes more items than its infeed has, whatever its decisions."""
        try:
            return any(map(self._starves, self.context.program.devices if self.context.infeed is not None else ()))
        except TooLongError:
            return False

    def _starves(self, device: int) -> bool:
        of, first = self.found.of[device], [domain[0] for domain in self._values]
        domains = [self._values[at] for at in of]
        if math.prod(map(len, domains)) > MOST_OWN:
            return False
        for values in itertools.product(*domains):
            ask()
            scenario = list(first)
            for at, value in zip(of, values, strict=True):
                scenario[at] = value
            if not any(event.is_starved for event in self._trace(self.context, device, tuple(scenario))):
                return False
        return True

    def outcomes(self, context: Context) -> Outcomes | None:
        """The outcome of the scenarios in the orders of these programs; None where simulation would take too long."""
        good: Scenario | None = None
        bad: Scenario | None = None
        try:
            for scenario in self.enumerated:
                if not self._followed(context, scenario):
                    good = scenario if good is None else good
                else:
                    bad = scenario if bad is None else bad
                if good is not None and bad is not None:
                    break
        except TooLongError:
            return None
        return Outcomes(good, bad)

    def asks(self, device: int) -> bool:
        """Whether a device takes an item of its infeed in any scenario."""
        try:
            return any(
                event.does[0] is TAKEN
                for scenario in self.enumerated
                for event in self.traces(self.context, scenario)[device]
            )
        except TooLongError:
            return True

    def condition(self, good: Scenario, bad: Scenario, same: Callable[[Scenario], bool]) -> tuple[str, Scenario]:
        """The choices that make a scenario stop in the `same` way, in words, and a scenario with only these changed."""
        for number, value in enumerate(good):
            closer = (*bad[:number], value, *bad[number + 1 :])
            if same(closer):
                bad = closer
        told = [c.text(there) for c, here, there in zip(self.choices, good, bad, strict=True) if here != there]
        return " and ".join(told), bad


@frozen
class Outcomes:
    """The outcome of all scenarios: one that ends and one that stops, where there are such."""

    good: Scenario | None
    bad: Scenario | None

    @property
    def rank(self) -> int:
        """2 where all scenarios end, 1 where some do, 0 where none does."""
        return 0 if self.good is None else 2 if self.bad is None else 1


def _few(domains: Sequence[Sequence[Decision]]) -> Iterator[Scenario]:
    """Scenarios in which all choices are alike, then those in which one choice differs."""
    yield from alike(domains)
    for scenario in alike(domains):
        for place, domain in enumerate(domains):
            for value in domain:
                if value != scenario[place]:
                    yield (*scenario[:place], value, *scenario[place + 1 :])
