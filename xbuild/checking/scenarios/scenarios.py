"""The scenarios of a program: combinations of the choices that data make, and how the programs end in each of them.

Sections:

    Choices: the decisions that data make, by device and site
    Domains: the values of each choice that are enumerated
    Scenarios: the combinations of these values, and their simulations
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from ...core.report_text import join_words
from ...process.limits import ask
from ...process.progress import over
from ...properties.effects import UNITS, Path, branch_name, communicates, notable, steps
from ...properties.sites import Site, site_key
from ...properties.trip_counts import slices_of
from ...properties.waiting import TAKEN
from ..dataflow.decisions import Decisions
from ..dataflow.lattice import Turns
from ..deadlock.level_run import LevelContext
from ..model.program import DeviceClass, GridProgram, devices_text
from .simulate import (
    ALL,
    Counts,
    Decide,
    DeviceWalker,
    EventKey,
    SimulatedEvent,
    TooLongError,
    Walk,
    communicating_order,
    event_totals,
    is_short_of_events,
    stopped_events,
)

# ----------------------------------------------------------------------------
# Choices: the decisions that data make, by device and site
#
# Decisions of one value are one choice.

Decision: TypeAlias = int | tuple[int, ...]  # the same each time, or alternating values
Scenario: TypeAlias = tuple[Decision, ...]  # the value of each choice

SHOWN = 3


@define(eq=False)
class Choice:
    """A decision that data make, at the sites and on the devices that decide equally."""

    site: Site
    is_steady: bool
    places: list[tuple[int, Hashable]]
    names: dict[str, None]
    ways: set[int]  # the possible values; empty if any is possible

    @property
    def devices(self) -> set[int]:
        return {device for device, _ in self.places}

    @property
    def most(self) -> float:
        """The largest value that the choice can take."""
        return slices_of(self.site.instruction)[0] if self.site.instruction.opcode == "scan" else math.inf

    def may_be(self, value: Decision) -> bool:
        """Whether the choice can take this value, or alternate between these."""
        values = {value} if isinstance(value, int) else {*value}
        return max(values) <= self.most and (not self.ways or values <= self.ways)

    def text(self, value: Decision) -> str:
        """`loop2 runs 1 trip on device 0`"""
        names = [*self.names] if len(self.names) <= SHOWN else [*self.names][: SHOWN - 1]
        more = [f"{len(self.names) - len(names)} more"] * (len(names) < len(self.names))
        where = f"{join_words([*names, *more])} on {devices_text(self.devices)}"
        is_branch = self.site.instruction.opcode == "conditional"
        if isinstance(value, tuple):
            values = join_words(self._branch(each) if is_branch else str(each) for each in value)
            return f"{where} alternates between {values}{' trips' * (not is_branch)}"
        if is_branch:
            return f"{where} takes {self._branch(value)}"
        return f"{where} runs {value} trip{'s' * (value != 1)}" if value else f"{where} does not run"

    def _branch(self, value: Decision) -> str:
        assert isinstance(value, int)
        return branch_name(self.site.instruction, value)


@define(eq=False)
class Choices:
    """All choices of the programs; `trips` are the known trip counts of other loops."""

    program: GridProgram
    decisions: Decisions
    choices: list[Choice] = field(factory=list)
    trips: set[int] = field(factory=set)
    by_site: dict[tuple[int, Hashable], int] = field(factory=dict)  # the number of a choice, by device and site
    of_device: dict[int, list[int]] = field(factory=dict)  # the numbers of the choices of a device

    def __attrs_post_init__(self) -> None:
        known: dict[Hashable, int] = {}
        for device, each in self.program.class_of.items():
            self.of_device[device] = []
            self._find_choices(device, each, each.module.entry, (), known)

    def _find_choices(
        self, device: int, device_class: DeviceClass, computation: Computation, path: Path, known: dict[Hashable, int]
    ) -> None:
        for instruction in notable(computation):
            if not any(map(communicates, instruction.called)) or instruction.opcode == "async_start":
                continue
            callees = [*steps(instruction)]
            if instruction.opcode in UNITS:
                turns = self.turns_at(device, instruction, path)
                if turns is None:
                    ways = self._add(device, device_class, Site(path, instruction), known)
                    callees = [step for n, step in enumerate(callees) if n in ways] if ways else callees
                elif instruction.opcode == "conditional":
                    callees = [step for n, step in enumerate(callees) if turns.count_decisions()[n]]
                else:
                    trips = {*turns.count_decisions()} - {0}
                    self.trips |= trips
                    callees = callees if trips else callees[:-1]
            for step in callees:
                self._find_choices(device, device_class, step.computation, (*path, step), known)

    def turns_at(self, device: int, instruction: Instruction, path: Path) -> Turns | None:
        """The known decisions at a site, in order or always the same; None if they are unknown."""
        always = self.decisions.decided(device, instruction, path)
        return self.decisions.turns(device, instruction, path) if always is None else Turns([always], [1], [1])

    def _add(self, device: int, device_class: DeviceClass, site: Site, known: dict[Hashable, int]) -> frozenset[int]:
        """Enter the choice of a site, and return the possible branches of a conditional, if they are known."""
        number = self.decisions.values.decision_number(device, site.instruction, site.path)
        is_steady = number is None or self.decisions.values.is_steady(number, site.path)
        key = self.decisions.decider(device, site) or (
            device_class.module,
            site.key,
            self.decisions.label(device, site),
        )
        at = known.setdefault((key, is_steady), len(self.choices))
        if at == len(self.choices):
            self.choices.append(Choice(site, is_steady, [], {}, set()))
        ways = self.decisions.ways(device, site.instruction, site.path) or frozenset()
        is_first = not self.choices[at].places
        self.choices[at].ways = (
            {*ways, *self.choices[at].ways} if ways and (is_first or self.choices[at].ways) else set()
        )
        place = device, site_key(site.instruction, site.path)
        self.by_site[place] = at
        self.choices[at].places.append(place)
        self.choices[at].names[str(site)] = None
        if at not in self.of_device[device]:
            self.of_device[device].append(at)
        return ways if site.instruction.opcode == "conditional" else frozenset()


# ----------------------------------------------------------------------------
# Domains: the values of each choice that are enumerated
#
# They are every branch, and the trip counts that may matter: 0, 1, 2, known counts, and the counts at which a device
# has as many events as other devices have, or have room for, and one more. Between two of them only the number of
# trips changes.

MOST_COMBINATIONS = 4096  # of all values; beyond, each choice keeps its least counts
LARGEST = 8  # trips that are enumerated though nothing says that they matter
FARTHEST = 1000  # trips
MOST_MORE = 6  # counts of a choice beside those of every loop, where there are too many combinations
MOST_LOOPS = 12  # choices; beyond, the counts that may matter are not computed
BY_TURNS = ((0, 1), (1, 0))  # alternating values of a choice that may change from time to time


@define(eq=False)
class Domains:
    """The enumeration of the values of choices; `is_rough` once it leaves out values that may matter.

    `trips` are the numbers of trips that are known of other loops, `totals` gives the events of a scenario.
    """

    context: LevelContext
    choices: Sequence[Choice]
    trips: frozenset[int]
    totals: Callable[[Scenario], Counts]
    is_rough: bool = False

    def values(self) -> list[list[Decision]]:
        """For each choice the values that are enumerated."""
        domains = [self._basic_values(choice) for choice in self.choices]
        try:
            more = self._limit_thresholds(
                [self._thresholds(number, domains) for number in range(len(domains))], domains
            )
        except TooLongError:
            more, self.is_rough = [[] for _ in domains], True
        turns = [() if choice.is_steady else BY_TURNS for choice in self.choices]
        found = [dict.fromkeys((*basic, *new, *pair)) for basic, new, pair in zip(domains, more, turns, strict=True)]
        return [[*filter(choice.may_be, values)] for values, choice in zip(found, self.choices, strict=True)]

    def _basic_values(self, choice: Choice) -> list[Decision]:
        """The values that every choice of its kind gets, whatever the devices do inside."""
        if choice.site.instruction.opcode == "conditional":
            return [*range(len(choice.site.instruction.called))]
        if choice.ways:
            return [*sorted(choice.ways)]
        buffers, items = self.context.send_buffers, (self.context.infeed or {}).values()
        beyond = len(self.context.program.devices) + 1 + (0 if math.isinf(buffers) else int(buffers))
        known = (count for count in self.trips if count <= FARTHEST)
        return [*sorted({0, 1, 2, *known, max([min(beyond, LARGEST), *(count + 1 for count in items)])})]

    def _thresholds(self, number: int, domains: Sequence[Sequence[Decision]]) -> list[int]:
        """The trip counts at which a device has as many events as others have, or have room for; and one more."""
        choice, crossings = self.choices[number], set[int]()
        if choice.site.instruction.opcode == "conditional":
            return []
        if len(domains) > MOST_LOOPS:
            self.is_rough = True
            return []
        for row in equal_positions(domains):
            none, one = (self.totals((*row[:number], trips, *row[number + 1 :])) for trips in (0, 1))
            others = Counter[Hashable]()
            for device in none.keys() - choice.devices - {ALL}:
                others |= Counter({_counter_of(key): count for key, count in none[device].items()})
            for device in choice.devices:
                for key, count in one[device].items():
                    per_trip = count - none[device][key]
                    if per_trip > 0:
                        crossings.update(self._crossings(device, key, none[device][key], per_trip, others))
        more = sorted(crossings - {*domains[number]})
        near = [count for count in more if count <= FARTHEST]
        self.is_rough |= near != more
        return near

    def _limit_thresholds(self, more: list[list[int]], domains: Sequence[Sequence[Decision]]) -> list[list[int]]:
        """These trip counts, or only the least ones of each choice if there would be too many combinations."""
        if math.prod(len(new) + len(domain) for new, domain in zip(more, domains, strict=True)) <= MOST_COMBINATIONS:
            return more
        self.is_rough |= any(len(counts) > MOST_MORE for counts in more)
        return [counts[:MOST_MORE] for counts in more]

    def _crossings(
        self, device: int, key: EventKey, now: int, per_trip: int, others: Counter[Hashable]
    ) -> Iterator[int]:
        """The trips after which a device, with `now` events and `per_trip` more each trip, has as many as have room."""
        if key[0] is TAKEN:
            limits = [] if self.context.infeed is None else [self.context.infeed.get(device, 0)]
        else:
            there = others[_counter_of(key)]
            limits = (
                [there] if math.isinf(self.context.send_buffers) else [there, there + int(self.context.send_buffers)]
            )
        for limit in limits:
            if limit >= now:
                yield from ((limit - now) // per_trip, (limit - now) // per_trip + 1)


def _counter_of(key: EventKey) -> Hashable:
    """The channel with its ends, or the collective, within which both sides count their events."""
    return key[1:]


def equal_positions(domains: Sequence[Sequence[Decision]]) -> Iterator[Scenario]:
    """The scenarios in which all choices have their first value, then their second, and so on."""
    for number in range(max(map(len, domains), default=0)):
        yield tuple(domain[min(number, len(domain) - 1)] for domain in domains)


# ----------------------------------------------------------------------------
# Scenarios: the combinations of these values, and their simulations

Traces: TypeAlias = dict[int, tuple[SimulatedEvent, ...]]

MOST_SCENARIOS = 4096
MOST_EVENTS = 300_000  # of all scenarios, estimated by the first
MOST_WORK = 3_000_000  # events of all simulations
MOST_OWN = 512  # combinations of the choices of one device


@define(eq=False, slots=False)
class Scenarios:
    """The scenarios of a program, and their simulations."""

    context: LevelContext
    decisions: Decisions
    all_choices: Choices = field(init=False)
    _domains: Domains = field(init=False)
    _work: int = 0
    _traces: dict[tuple[GridProgram, int, Scenario], tuple[SimulatedEvent, ...]] = field(factory=dict)
    _walks: dict[tuple[GridProgram, DeviceClass], Walk] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.all_choices = found = Choices(self.context.program, self.decisions)
        self._domains = Domains(self.context, found.choices, frozenset(found.trips), self._event_totals)

    @property
    def choices(self) -> list[Choice]:
        return self.all_choices.choices

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
    def is_exhaustive(self) -> bool:
        return len(self.enumerated) == self.count and not self._domains.is_rough

    def _event_totals(self, scenario: Scenario) -> Counts:
        return event_totals(self.traces(self.context, scenario))

    def _enumerate(self, domains: Sequence[Sequence[Decision]]) -> list[Scenario]:
        """The scenarios: first those at equal positions; of too many, only those in which one choice differs."""
        most = self._most(tuple(domain[0] for domain in domains))
        every = itertools.product(*domains) if self.count <= most else _one_differs(domains)
        return [*itertools.islice(dict.fromkeys(map(tuple, itertools.chain(equal_positions(domains), every))), most)]

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
        at = self.all_choices.by_site.get((device, site_key(instruction, path)))
        if at is not None:
            value = scenario[at]
            return value[turn % len(value)] if isinstance(value, tuple) else value
        turns = self.all_choices.turns_at(device, instruction, path)
        return turns.at(turn) if turns is not None and turns.total else 0

    def assumed(self, scenario: Scenario) -> dict[Hashable, int]:
        """The decisions of a scenario that are the same each time, by device and site."""
        return {
            place: value for place, at in self.all_choices.by_site.items() if isinstance(value := scenario[at], int)
        }

    def traces(self, context: LevelContext, scenario: Scenario) -> Traces:
        """The events of each device in a scenario. Raises TooLongError."""
        return {device: self._trace(context, device, scenario) for device in context.program.devices}

    def _trace(self, context: LevelContext, device: int, scenario: Scenario) -> tuple[SimulatedEvent, ...]:
        key = context.program, device, tuple(scenario[at] for at in self.all_choices.of_device[device])
        if key not in self._traces:
            each = context.program.class_of[device]
            walk = self._walks.setdefault((context.program, each), communicating_order(each))
            self._traces[key] = DeviceWalker(context, device, walk, self.decide(scenario)(device)).events()
        return self._traces[key]

    def ends(self, context: LevelContext, scenario: Scenario) -> bool:
        """Whether a scenario ends; one that is too long to simulate counts as ending."""
        try:
            return not self.stopped_events(context, scenario)
        except TooLongError:
            return True

    def stopped_events(self, context: LevelContext, scenario: Scenario) -> dict[int, SimulatedEvent]:
        """The events at which devices stop in a scenario."""
        return stopped_events(self.traces(context, scenario))

    def _simulate_within_budget(self, context: LevelContext, scenario: Scenario) -> dict[int, SimulatedEvent]:
        """The events at which devices stop, within the budget of all simulations. Raises TooLongError."""
        self._work += sum(map(len, self.traces(context, scenario).values()))
        if self._work > MOST_WORK:
            raise TooLongError
        return self.stopped_events(context, scenario)

    def is_hopeless(self, scenario: Scenario) -> bool:
        """Whether a scenario ends in no order: a device waits for more events than another has."""
        try:
            return is_short_of_events(self.traces(self.context, scenario))
        except TooLongError:
            return False

    def is_starved(self) -> bool:
        """Whether a device takes more items than its infeed has, whatever its decisions."""
        try:
            return any(
                map(self._always_starves, self.context.program.devices if self.context.infeed is not None else ())
            )
        except TooLongError:
            return False

    def _always_starves(self, device: int) -> bool:
        numbers, first = self.all_choices.of_device[device], [domain[0] for domain in self._values]
        domains = [self._values[number] for number in numbers]
        if math.prod(map(len, domains)) > MOST_OWN:
            return False
        for values in itertools.product(*domains):
            ask()
            scenario = list(first)
            for number, value in zip(numbers, values, strict=True):
                scenario[number] = value
            if not any(event.is_starved for event in self._trace(self.context, device, tuple(scenario))):
                return False
        return True

    def outcomes(self, context: LevelContext) -> Outcomes | None:
        """The outcome of the scenarios in the orders of these programs; None if simulation would take too long."""
        good: Scenario | None = None
        bad: Scenario | None = None
        try:
            for scenario in over(self.enumerated, "simulating the choices that data make", "choices"):
                if not self._simulate_within_budget(context, scenario):
                    good = scenario if good is None else good
                else:
                    bad = scenario if bad is None else bad
                if good is not None and bad is not None:
                    break
        except TooLongError:
            return None
        return Outcomes(good, bad)

    def may_take_item(self, device: int) -> bool:
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
        """The choices that make a scenario stop in the `same` way, as text, and a scenario with only these changed."""
        for number, value in enumerate(good):
            closer = (*bad[:number], value, *bad[number + 1 :])
            if same(closer):
                bad = closer
        texts = [c.text(there) for c, here, there in zip(self.choices, good, bad, strict=True) if here != there]
        return join_words(texts), bad


@frozen
class Outcomes:
    """The outcome of all scenarios: one that ends and one that stops, if there are such."""

    good: Scenario | None
    bad: Scenario | None

    @property
    def rank(self) -> int:
        """2 if all scenarios end, 1 if some do, 0 if none does."""
        return 0 if self.good is None else 2 if self.bad is None else 1


def _one_differs(domains: Sequence[Sequence[Decision]]) -> Iterator[Scenario]:
    """Scenarios with all choices at equal positions, then those in which one choice differs."""
    yield from equal_positions(domains)
    for scenario in equal_positions(domains):
        for place, domain in enumerate(domains):
            for value in domain:
                if value != scenario[place]:
                    yield (*scenario[:place], value, *scenario[place + 1 :])
