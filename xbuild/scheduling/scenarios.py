"""What the data may decide: every choice of trips and branches that nobody knows before, and how the programs end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from ..graph import Computation, Instruction
from .analysis import key_of
from .control import Control
from .effects import Path, Site, communicates, notable, steps
from .program import Class, devices_text
from .run import World
from .simulate import Event, TooLongError, standing, takes

Chosen: TypeAlias = Mapping[Hashable, int]  # what is decided at each place of a device

MOST_SCENARIOS = 256
MOST_DEVICES = 64
LARGEST = 8


@frozen(eq=False)
class Choice:
    """A decision that data make: at one place, on devices that decide alike."""

    site: Site
    devices: list[int]
    keys: list[Hashable]

    def text(self, value: int) -> str:
        """`loop2 runs 1 trip on device 0`"""
        where = f"{self.site} on {devices_text(self.devices)}"
        if self.site.instruction.opcode == "conditional":
            return f"{where} takes branch {value}"
        return f"{where} runs {value} trip{'s' * (value != 1)}" if value else f"{where} does not run"


@define(eq=False)
class Scenarios:
    """The choices of a program."""

    world: World
    control: Control
    choices: dict[Hashable, Choice] = field(factory=dict)
    trips: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        for device, each in self.world.program.class_of.items():
            self._find(device, each, each.module.entry, ())

    def _find(self, device: int, each: Class, computation: Computation, path: Path) -> None:
        for instruction in notable(computation):
            if not any(map(communicates, instruction.called)) or instruction.opcode == "async_start":
                continue
            every = [*steps(instruction)]
            if instruction.opcode in ("while", "conditional"):
                known = self.control.decided(device, instruction, path)
                if known is None:
                    self._choice(device, each, Site(path, instruction))
                elif instruction.opcode == "conditional":
                    every = [every[known]]
                elif known:
                    self.trips.add(known)
                else:
                    every = every[:1]
            for step in every:
                self._find(device, each, step.computation, (*path, step))

    def _choice(self, device: int, each: Class, site: Site) -> None:
        who = self.control.label(device, site)
        key = each.module, site.key, who
        choice = self.choices.setdefault(key, Choice(site, [], []))
        choice.devices.append(device)
        choice.keys.append((device, key_of(site.instruction, site.path)))

    def _domain(self, choice: Choice) -> Sequence[int]:
        if choice.site.instruction.opcode == "conditional":
            return range(len(choice.site.instruction.called))
        buffers, items = self.world.send_buffers, (self.world.infeed or {}).values()
        beyond = len(self.world.program.devices) + 1 + (0 if math.isinf(buffers) else int(buffers))
        known = (count for count in self.trips if count <= LARGEST)
        return sorted({0, 1, 2, *known, max([min(beyond, LARGEST), *(count + 1 for count in items)])})

    def all(self) -> Iterator[Chosen]:
        """Every scenario, first those in which all decide alike; of too many those in which few differ."""
        domains = [self._domain(choice) for choice in self.choices.values()]
        if math.prod(map(len, domains)) <= MOST_SCENARIOS:
            rows: Iterator[Sequence[int]] = itertools.chain(_alike(domains), itertools.product(*domains))
        else:
            rows = itertools.islice(_few(domains), MOST_SCENARIOS)
        seen = set[tuple[int, ...]]()
        for row in map(tuple, rows):
            if row in seen:
                continue
            seen.add(row)
            yield {key: value for choice, value in zip(self.choices.values(), row, strict=True) for key in choice.keys}

    def decide(self, chosen: Chosen, device: int, instruction: Instruction, path: Path) -> int:
        known = self.control.decided(device, instruction, path)
        return chosen.get((device, key_of(instruction, path)), 0) if known is None else known

    def ends(self, world: World, chosen: Chosen) -> bool:
        return not self.standing(world, chosen)

    def standing(self, world: World, chosen: Chosen) -> dict[int, Event]:
        """Where devices stop in a scenario."""
        return standing(world, lambda *place: self.decide(chosen, *place))

    def outcomes(self, world: World) -> Outcomes | None:
        """How runs end in the orders of this world; None where that is too much to find out."""
        good: Chosen | None = None
        bad: Chosen | None = None
        try:
            for chosen in self.all():
                if self.ends(world, chosen):
                    good = chosen if good is None else good
                else:
                    bad = chosen if bad is None else bad
                if good is not None and bad is not None:
                    break
        except TooLongError:
            return None
        return Outcomes(good, bad)

    def asks(self, device: int) -> bool:
        """Whether a device takes an item of its infeed in any scenario."""
        try:
            return any(
                takes(self.world, lambda *place, chosen=chosen: self.decide(chosen, *place), device)
                for chosen in self.all()
            )
        except TooLongError:
            return True

    def condition(self, good: Chosen, bad: Chosen, same: Callable[[Chosen], bool]) -> tuple[str, Chosen]:
        """What of a scenario that stops makes it stop in the `same` way, in words, and that scenario."""
        bad = dict(bad)
        for choice in self.choices.values():
            kept = {key: bad[key] for key in choice.keys}
            bad |= {key: good[key] for key in choice.keys}
            if not same(bad):
                bad |= kept
        told = [c.text(bad[c.keys[0]]) for c in self.choices.values() if bad[c.keys[0]] != good[c.keys[0]]]
        return " and ".join(told), bad


@frozen
class Outcomes:
    """A scenario that ends, and one that does not, where there are such."""

    good: Chosen | None
    bad: Chosen | None

    @property
    def rank(self) -> int:
        """2 where all end, 1 where some do, 0 where none does."""
        return 0 if self.good is None else 2 if self.bad is None else 1


def _alike(domains: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    for number in range(max(map(len, domains), default=0)):
        yield [domain[min(number, len(domain) - 1)] for domain in domains]


def _few(domains: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """All choices alike, then one that differs from the others."""
    yield from _alike(domains)
    for row in _alike(domains):
        for place, domain in enumerate(domains):
            for value in domain:
                if value != row[place]:
                    yield [*row[:place], value, *row[place + 1 :]]
