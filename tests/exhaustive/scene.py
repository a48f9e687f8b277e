"""One level of a program while it is made: the computations of all its modules side by side, and who comes there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, field

from .builder import Builder, Module
from .program import Instruction

PAYLOAD = "f32[2]"
Step = Callable[[], None]
Groups = tuple[tuple[int, ...], ...]


@define(eq=False)
class Drawing:
    """What all levels share: the chances, the grid, channels, the numbers that are data."""

    rng: random.Random
    replicas: int
    partitions: int
    is_one: bool
    is_given: bool
    wild: float
    channel: int = 0
    named: int = 0
    slots: list[tuple[int, ...]] = field(factory=list)
    used: dict[int, set[int]] = field(factory=dict)
    room: int = 96
    data_share: float = 0.15
    feeds: bool = False

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(range(self.replicas * self.partitions))

    def next_channel(self) -> int:
        self.channel += 1
        return self.channel

    def next_name(self, stem: str) -> str:
        self.named += 1
        return f"{stem}{self.named}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def modules(self) -> list[Module]:
        on = [self.devices] if self.is_one else [(device,) for device in self.devices]
        return [Module(each, self.replicas, self.partitions, self.rng) for each in on]


@define(eq=False)
class Part:
    """The computation of one module on this level."""

    builder: Builder
    data: Instruction
    x: Instruction
    parts: list[Instruction] = field(factory=list)
    chains: list[list[Step]] = field(factory=list)
    last: Instruction | None = None

    @property
    def devices(self) -> tuple[int, ...]:
        return self.builder.module.devices

    def payload(self, drawing: Drawing) -> Instruction:
        """What came with the level, or what has arrived by now, which ties the order."""
        if not self.parts or drawing.chance(0.75):
            return self.x
        return self.total()

    def total(self) -> Instruction:
        while self.parts:
            self.x = self.builder.binary("add", self.x, self.parts.pop())
        return self.x

    def state(self) -> list[Instruction]:
        return [self.data, self.x, *self.builder.pool[-2:]]

    def finish(self, drawing: Drawing) -> Instruction:
        self.advance(drawing, 1.0)
        return self.total()

    def advance(self, drawing: Drawing, share: float) -> None:
        """Go on with what has been begun."""
        chains = [*self.chains]
        if drawing.chance(0.2):
            drawing.rng.shuffle(chains)
        for chain in chains:
            while chain and drawing.chance(share):
                chain.pop(0)()
        self.chains = [chain for chain in self.chains if chain]


@define(eq=False)
class Scene:
    """A level: its parts by module, and the devices that come there, in sets that come and go alike."""

    drawing: Drawing
    parts: list[Part]
    cohorts: Groups
    depth: int

    @property
    def active(self) -> tuple[int, ...]:
        return tuple(sorted(device for cohort in self.cohorts for device in cohort))

    def present(self) -> Iterator[Part]:
        """The parts of modules some device of which comes here."""
        active = set(self.active)
        for part in self.parts:
            if active & set(part.devices):
                yield part

    def part_of(self, device: int) -> Part:
        return self.parts[0] if self.drawing.is_one else self.parts[device]

    def begin(self, part: Part, steps: Sequence[Step]) -> None:
        """Take the first step at once (rarely later), the others by and by."""
        chain = [*steps]
        if not self.drawing.chance(0.06):
            chain.pop(0)()
        if chain:
            part.chains.append(chain)


def grouped(rng: random.Random, devices: Sequence[int], size: int = 0) -> list[tuple[int, ...]]:
    """Devices in groups of one size, or of any."""
    left, groups = [*devices], []
    rng.shuffle(left)
    if rng.random() < 0.5:
        left.sort()
    while left:
        count = size or rng.randint(1, len(left)) if rng.random() < 0.6 or size else len(left)
        groups.append(tuple(left[:count]))
        left = left[count:]
    return groups


def refined(cohorts: Groups, key: Callable[[int], Any]) -> Groups:
    """Each set parted by what differs in it."""
    found: list[tuple[int, ...]] = []
    for cohort in cohorts:
        parts: dict[Any, list[int]] = {}
        for device in cohort:
            parts.setdefault(key(device), []).append(device)
        found += map(tuple, parts.values())
    return tuple(found)


def wrapped(b: Builder, outer: Part) -> Part:
    """A level whose state is one tuple."""
    state = outer.state()
    whole = b.parameter(0, f"({', '.join(each.shape for each in state)})")
    data, x, *pool = (element(b, whole, number, each) for number, each in enumerate(state))
    b.pool = pool
    return Part(b, data, x)


def element(b: Builder, whole: Instruction, number: int, like: Instruction) -> Instruction:
    made = b.element(whole, number, like.shape)
    made.values, made.uniform = like.values, like.uniform
    return made
