"""Domains: the values of each choice that are enumerated: every branch, and the trip counts that may matter.

Those are 0, 1, 2, known counts, and the counts at which a device has as many events as other devices have, or have
room for, and one more. Between two of them nothing changes but the number of trips.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from attrs import define

from ...properties.waiting import TAKEN
from ..deadlock.level_run import Context
from .choices import Choice, Decision, Scenario
from .simulate import ALL, Counts, EventKey, TooLongError

MOST_COMBINATIONS = 4096  # of all values; beyond, each choice keeps its least counts
LARGEST = 8  # trips that are enumerated though nothing says that they matter
FARTHEST = 1000  # trips
MOST_MORE = 6  # counts of a choice beside those of every loop, where there are too many combinations
MOST_LOOPS = 12  # choices; beyond, the counts that may matter are not computed
BY_TURNS = ((0, 1), (1, 0))  # values of a choice that may differ from time to time


@define(eq=False)
class Domains:
    """The enumeration of the values of choices; `is_rough` once it leaves out values that may matter.

    `trips` are the numbers of trips that are known of other loops, `totals` gives the events of a scenario.
    """

    context: Context
    choices: Sequence[Choice]
    trips: frozenset[int]
    totals: Callable[[Scenario], Counts]
    is_rough: bool = False

    def values(self) -> list[list[Decision]]:
        """For each choice the values that are enumerated."""
        domains = [self._basic(choice) for choice in self.choices]
        try:
            more = self._near([self._thresholds(number, domains) for number in range(len(domains))], domains)
        except TooLongError:
            more, self.is_rough = [[] for _ in domains], True
        turns = [() if choice.is_steady else BY_TURNS for choice in self.choices]
        found = [dict.fromkeys((*basic, *new, *pair)) for basic, new, pair in zip(domains, more, turns, strict=True)]
        return [[*filter(choice.may_be, values)] for values, choice in zip(found, self.choices, strict=True)]

    def _basic(self, choice: Choice) -> list[Decision]:
        """The values that every choice of its kind gets, whatever the devices do in it."""
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
        for row in alike(domains):
            none, one = (self.totals((*row[:number], trips, *row[number + 1 :])) for trips in (0, 1))
            others = Counter[Hashable]()
            for device in none.keys() - choice.devices - {ALL}:
                others |= Counter({_within(key): count for key, count in none[device].items()})
            for device in choice.devices:
                for key, count in one[device].items():
                    each = count - none[device][key]
                    if each > 0:
                        crossings.update(self._crossings(device, key, none[device][key], each, others))
        more = sorted(crossings - {*domains[number]})
        near = [each for each in more if each <= FARTHEST]
        self.is_rough |= near != more
        return near

    def _near(self, more: list[list[int]], domains: Sequence[Sequence[Decision]]) -> list[list[int]]:
        """These trip counts, or the least of each choice where there would be too many combinations."""
        if math.prod(len(new) + len(domain) for new, domain in zip(more, domains, strict=True)) <= MOST_COMBINATIONS:
            return more
        self.is_rough |= any(len(each) > MOST_MORE for each in more)
        return [each[:MOST_MORE] for each in more]

    def _crossings(self, device: int, key: EventKey, now: int, each: int, others: Counter[Hashable]) -> Iterator[int]:
        """The trips at which a device that has `now` events, and `each` more a trip, has as many as have room."""
        if key[0] is TAKEN:
            limits = [] if self.context.infeed is None else [self.context.infeed.get(device, 0)]
        else:
            there = others[_within(key)]
            limits = (
                [there] if math.isinf(self.context.send_buffers) else [there, there + int(self.context.send_buffers)]
            )
        for limit in limits:
            if limit >= now:
                yield from ((limit - now) // each, (limit - now) // each + 1)


def _within(key: EventKey) -> Hashable:
    """The channel with its ends, or the collective, within which both sides count their events."""
    return key[1:]


def alike(domains: Sequence[Sequence[Decision]]) -> Iterator[Scenario]:
    """The scenarios in which all choices have their first value, then all their second, and so on."""
    for number in range(max(map(len, domains), default=0)):
        yield tuple(domain[min(number, len(domain) - 1)] for domain in domains)
