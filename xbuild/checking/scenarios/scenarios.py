"""What the data may decide: every choice of trips and branches that nobody knows before, and how the programs end.

Choices that follow from one value are one choice. Of trips those counts are tried at which what a device does comes to
as much as others do or have room for, and one more: between two of them nothing changes but how often it goes round.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Instruction
from ...process.deadline import ask
from ...properties.effects import Path
from ..dataflow.analysis import key_of
from ..dataflow.control import Control
from ..deadlock.run import Context
from ..model.program import DeviceClass, Program
from .choices import Choice, Choices, Decision
from .simulate import ALL, Counts, Decide, SimulatedEvent, TooLongError, Tracer, Walk, never, order_of, stopping, totals

ScenarioRow: TypeAlias = tuple[Decision, ...]  # a scenario: the value of each choice
Traces: TypeAlias = dict[int, tuple[SimulatedEvent, ...]]

MOST_SCENARIOS = 4096
MOST_EVENTS = 300_000  # of all scenarios, if all were like the first
MOST_WORK = 3_000_000  # events that are followed
LARGEST = 8
FARTHEST = 1000  # trips
MOST_MORE = 6
MOST_OWN = 512  # ways in which one device decides
MOST_LOOPS = 12  # beyond, nobody looks what number of trips would matter
BY_TURNS = ((0, 1), (1, 0))


@define(eq=False, slots=False)
class Scenarios:
    """The choices of a program, and the scenarios that they make."""

    context: Context
    control: Control
    found: Choices = field(init=False)
    _is_rough: bool = False
    _work: int = 0
    _traces: dict[tuple[Program, int, ScenarioRow], tuple[SimulatedEvent, ...]] = field(factory=dict)
    _walks: dict[tuple[Program, DeviceClass], Walk] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.found = Choices(self.context.program, self.control)

    @property
    def choices(self) -> list[Choice]:
        return self.found.every

    @cached_property
    def rows(self) -> list[ScenarioRow]:
        """The scenarios that are looked at."""
        return self._rows(self._values)

    @cached_property
    def count(self) -> int:
        """How many there are in all."""
        return math.prod(map(len, self._values))

    @cached_property
    def _values(self) -> list[list[Decision]]:
        return self._domains()

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.count and not self._is_rough

    def _domains(self) -> list[list[Decision]]:
        domains = [self._basic(choice) for choice in self.choices]
        try:
            more = self._near([self._thresholds(number, domains) for number in range(len(domains))], domains)
        except TooLongError:
            more, self._is_rough = [[] for _ in domains], True
        turns = [() if choice.is_steady else BY_TURNS for choice in self.choices]
        found = [dict.fromkeys((*basic, *new, *pair)) for basic, new, pair in zip(domains, more, turns, strict=True)]
        return [[*filter(choice.may_be, values)] for values, choice in zip(found, self.choices, strict=True)]

    def _basic(self, choice: Choice) -> list[Decision]:
        if choice.site.instruction.opcode == "conditional":
            return [*range(len(choice.site.instruction.called))]
        if choice.ways:
            return [*sorted(choice.ways)]
        buffers, items = self.context.send_buffers, (self.context.infeed or {}).values()
        beyond = len(self.context.program.devices) + 1 + (0 if math.isinf(buffers) else int(buffers))
        known = (count for count in self.found.trips if count <= FARTHEST)
        return [*sorted({0, 1, 2, *known, max([min(beyond, LARGEST), *(count + 1 for count in items)])})]

    def _thresholds(self, number: int, domains: Sequence[Sequence[Decision]]) -> list[int]:
        """The trips with which a device does as much as others do, or have room for; and one more."""
        choice, found = self.choices[number], set[int]()
        if choice.site.instruction.opcode == "conditional":
            return []
        if len(domains) > MOST_LOOPS:
            self._is_rough = True
            return []
        for row in _alike(domains):
            none, one = (self._totals((*row[:number], trips, *row[number + 1 :])) for trips in (0, 1))
            others = Counter[Hashable]()
            for device in none.keys() - choice.devices - {ALL}:
                others |= Counter({_meets(key): count for key, count in none[device].items()})
            for device in choice.devices:
                for key, count in one[device].items():
                    each = count - none[device][key]
                    if each > 0:
                        found.update(self._crossings(device, key, none[device][key], each, others))
        more = sorted(found - {*domains[number]})
        near = [each for each in more if each <= FARTHEST]
        self._is_rough |= near != more
        return near

    def _near(self, more: list[list[int]], domains: Sequence[Sequence[Decision]]) -> list[list[int]]:
        """The least of these, where all of them would be too many."""
        if math.prod(len(new) + len(domain) for new, domain in zip(more, domains, strict=True)) <= MOST_SCENARIOS:
            return more
        self._is_rough |= any(len(each) > MOST_MORE for each in more)
        return [each[:MOST_MORE] for each in more]

    def _crossings(self, device: int, key: Hashable, now: int, each: int, others: Counter[Hashable]) -> Iterator[int]:
        if key == "infeed":
            limits = [] if self.context.infeed is None else [self.context.infeed.get(device, 0)]
        else:
            there = others[_meets(key)]
            limits = (
                [there] if math.isinf(self.context.send_buffers) else [there, there + int(self.context.send_buffers)]
            )
        for limit in limits:
            if limit >= now:
                yield from ((limit - now) // each, (limit - now) // each + 1)

    def _totals(self, row: ScenarioRow) -> Counts:
        return totals(self.traces(self.context, row))

    def _rows(self, domains: Sequence[Sequence[Decision]]) -> list[ScenarioRow]:
        """First those in which all decide alike; of too many those in which few differ."""
        most = self._most(tuple(domain[0] for domain in domains))
        every = itertools.product(*domains) if self.count <= most else _few(domains)
        return [*itertools.islice(dict.fromkeys(map(tuple, itertools.chain(_alike(domains), every))), most)]

    def _most(self, row: ScenarioRow) -> int:
        try:
            events = sum(map(len, self.traces(self.context, row).values()))
        except TooLongError:
            return 1
        return max(1, min(MOST_SCENARIOS, MOST_EVENTS // max(events, len(self.context.program.devices))))

    def scenario(self, row: ScenarioRow) -> Callable[[int], Decide]:
        """How each device decides."""
        return lambda device: lambda *place: self._decide(row, device, *place)

    def _decide(self, row: ScenarioRow, device: int, instruction: Instruction, path: Path, turn: int) -> int:
        at = self.found.at.get((device, key_of(instruction, path)))
        if at is not None:
            value = row[at]
            return value[turn % len(value)] if isinstance(value, tuple) else value
        turns = self.found.turns_at(device, instruction, path)
        return 0 if not turns else turns[min(turn, len(turns) - 1)]

    def assumed(self, row: ScenarioRow) -> dict[Hashable, int]:
        """The choices of a scenario that stay the same."""
        return {place: value for place, at in self.found.at.items() if isinstance(value := row[at], int)}

    def traces(self, context: Context, row: ScenarioRow) -> Traces:
        """What each device does. Raises TooLongError."""
        return {device: self._trace(context, device, row) for device in context.program.devices}

    def _trace(self, context: Context, device: int, row: ScenarioRow) -> tuple[SimulatedEvent, ...]:
        key = context.program, device, tuple(row[at] for at in self.found.of[device])
        if key not in self._traces:
            each = context.program.class_of[device]
            walk = self._walks.setdefault((context.program, each), order_of(each))
            self._traces[key] = Tracer(context, device, walk, self.scenario(row)(device)).events()
        return self._traces[key]

    def ends(self, context: Context, row: ScenarioRow) -> bool:
        """Whether it ends; what is too long to follow counts as ending."""
        try:
            return not self.standing(context, row)
        except TooLongError:
            return True

    def standing(self, context: Context, row: ScenarioRow) -> dict[int, SimulatedEvent]:
        """Where devices stop in a scenario."""
        return stopping(self.traces(context, row))

    def _followed(self, context: Context, row: ScenarioRow) -> dict[int, SimulatedEvent]:
        """Where devices stop, as long as that is worth finding out."""
        self._work += sum(map(len, self.traces(context, row).values()))
        if self._work > MOST_WORK:
            raise TooLongError
        return self.standing(context, row)

    def is_hopeless(self, row: ScenarioRow) -> bool:
        """Whether it cannot end, in whatever order: somebody waits for what comes too seldom."""
        try:
            return never(self.traces(self.context, row))
        except TooLongError:
            return False

    def is_starved(self) -> bool:
        """Whether a device, however it decides, asks for more items than its infeed has."""
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
            row = list(first)
            for at, value in zip(of, values, strict=True):
                row[at] = value
            if not any(event.is_starved for event in self._trace(self.context, device, tuple(row))):
                return False
        return True

    def outcomes(self, context: Context) -> Outcomes | None:
        """How runs end in the orders of this context; None where that is too much to find out."""
        good: ScenarioRow | None = None
        bad: ScenarioRow | None = None
        try:
            for row in self.rows:
                if not self._followed(context, row):
                    good = row if good is None else good
                else:
                    bad = row if bad is None else bad
                if good is not None and bad is not None:
                    break
        except TooLongError:
            return None
        return Outcomes(good, bad)

    def asks(self, device: int) -> bool:
        """Whether a device takes an item of its infeed in any scenario."""
        try:
            return any(event.does == "infeed" for row in self.rows for event in self.traces(self.context, row)[device])
        except TooLongError:
            return True

    def condition(
        self, good: ScenarioRow, bad: ScenarioRow, same: Callable[[ScenarioRow], bool]
    ) -> tuple[str, ScenarioRow]:
        """What of a scenario that stops makes it stop in the `same` way, in words, and that scenario."""
        for number, value in enumerate(good):
            closer = (*bad[:number], value, *bad[number + 1 :])
            if same(closer):
                bad = closer
        told = [c.text(there) for c, here, there in zip(self.choices, good, bad, strict=True) if here != there]
        return " and ".join(told), bad


@frozen
class Outcomes:
    """A scenario that ends, and one that does not, where there are such."""

    good: ScenarioRow | None
    bad: ScenarioRow | None

    @property
    def rank(self) -> int:
        """2 where all end, 1 where some do, 0 where none does."""
        return 0 if self.good is None else 2 if self.bad is None else 1


def _meets(key: Hashable) -> Hashable:
    """What one side does, as the other side of it counts: of a transfer the wire, of a collective itself."""
    return key[1:] if isinstance(key, tuple) else key


def _alike(domains: Sequence[Sequence[Decision]]) -> Iterator[ScenarioRow]:
    for number in range(max(map(len, domains), default=0)):
        yield tuple(domain[min(number, len(domain) - 1)] for domain in domains)


def _few(domains: Sequence[Sequence[Decision]]) -> Iterator[ScenarioRow]:
    """All choices alike, then one that differs from the others."""
    yield from _alike(domains)
    for row in _alike(domains):
        for place, domain in enumerate(domains):
            for value in domain:
                if value != row[place]:
                    yield (*row[:place], value, *row[place + 1 :])
