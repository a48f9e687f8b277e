"""On which devices a value is equal: partitions of the devices, and what stands for one value in the analysis."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from ...core.graph import Instruction

Labels: TypeAlias = tuple[int, ...]  # a number for each device; two devices with one number hold equal values

MOST_DEEP = 50  # instructions one behind the other of which a value is computed


@define(eq=False)
class Formula:
    """How a value is computed from constants and ids alone; `values` has those that were asked for, by label.

    `number` is that of all formulas that are alike, once it was asked for.
    """

    instruction: Instruction
    operands: tuple[Agreement, ...]
    values: dict[int, Any] = field(factory=dict)
    number: int | None = None
    depth: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.depth = 1 + max((each.formula.depth for each in self.operands if each.formula), default=0)


@frozen(eq=False)
class Agreement:
    """A value on all devices: those with equal labels hold the same. Equal by identity, as two values are two.

    `formula` is there where the value follows from constants and ids alone.
    """

    labels: Labels
    formula: Formula | None = None

    @property
    def is_everywhere(self) -> bool:
        return not any(self.labels)


@define(eq=False)
class Partitions:
    """The partitions of some devices, each kept as one tuple, so that equal ones are identical."""

    count: int
    everywhere: Labels = field(init=False)
    nowhere: Labels = field(init=False)
    _known: dict[Labels, Labels] = field(factory=dict, init=False)
    _refined: dict[tuple[int, int], Labels] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.everywhere = self.by([0] * self.count)
        self.nowhere = self.by(range(self.count))

    def by(self, marks: Iterable[Hashable]) -> Labels:
        """The partition in which devices with equal marks stand together."""
        numbers: dict[Hashable, int] = {}
        labels = tuple([numbers.setdefault(mark, len(numbers)) for mark in marks])
        return self._known.setdefault(labels, labels)

    def refined(self, a: Labels, b: Labels) -> Labels:
        """The common refinement: devices that stand together in both."""
        if a is b or b is self.everywhere:
            return a
        if a is self.everywhere or b is self.nowhere:
            return b
        if a is self.nowhere:
            return a
        key = id(a), id(b)
        if key not in self._refined:
            self._refined[key] = self.by(zip(a, b, strict=True))
        return self._refined[key]

    def of_all(self, labels: Iterable[Labels]) -> Labels:
        """The common refinement of any number of partitions."""
        result = self.everywhere
        for each in labels:
            result = self.refined(result, each)
        return result


def grouped(labels: Labels, devices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The devices that stand together."""
    found: dict[int, list[int]] = {}
    for label, device in zip(labels, devices, strict=True):
        found.setdefault(label, []).append(device)
    return tuple(map(tuple, found.values()))
