"""Facts of the replication analysis: for each value, which devices hold equal values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from ...core.graph import Instruction

Labels: TypeAlias = tuple[int, ...]  # a number for each device; devices with equal numbers hold equal values

MOST_DEEP = 50  # the greatest depth of a formula


@define(eq=False)
class Formula:
    """An expression of constants and device ids.

    `values` has the results that were computed, by label; `number` is the value number, which equal expressions share.
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
    """What is known of one value: devices with equal labels hold equal values.

    Two agreements are equal only as one object, which stands for one value. `formula` is None where the value does not
    follow from constants and device ids alone.
    """

    labels: Labels
    formula: Formula | None = None

    @property
    def is_everywhere(self) -> bool:
        return not any(self.labels)


@define(eq=False)
class Partitions:
    """Partitions of the devices as tuples of labels; equal partitions are one object."""

    count: int
    everywhere: Labels = field(init=False)
    nowhere: Labels = field(init=False)
    _known: dict[Labels, Labels] = field(factory=dict, init=False)
    _refined: dict[tuple[int, int], Labels] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.everywhere = self.by([0] * self.count)
        self.nowhere = self.by(range(self.count))

    def by(self, marks: Iterable[Hashable]) -> Labels:
        """The partition in which devices with equal marks have equal labels."""
        numbers: dict[Hashable, int] = {}
        labels = tuple([numbers.setdefault(mark, len(numbers)) for mark in marks])
        return self._known.setdefault(labels, labels)

    def refined(self, a: Labels, b: Labels) -> Labels:
        """The common refinement: devices have equal labels where both partitions give them equal labels."""
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
    """The classes of a partition, each as a tuple of devices."""
    found: dict[int, list[int]] = {}
    for label, device in zip(labels, devices, strict=True):
        found.setdefault(label, []).append(device)
    return tuple(map(tuple, found.values()))
