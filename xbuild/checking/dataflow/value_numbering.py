"""One pass of global value numbering: a number for each value, by its op and the numbers of its operands."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from .analysis import Key

Carried: TypeAlias = tuple[int, Key, int]  # a device, a loop, the index of a leaf in its state

MOST_ROWS = 200  # of the expression of a loop's condition


@frozen
class CongruenceClass:
    """A class of loop-carried values with one number; `trips` are the depths of the loops in which they change."""

    number: int
    trips: frozenset[int]


@define(eq=False)
class NumberingPass:
    """One pass; `classes` are the congruence classes of carried values that the pass before has found."""

    classes: dict[Carried, CongruenceClass]
    trips: list[frozenset[int]] = field(factory=list)  # by number: depths of the loops in which the value changes
    expressions: list[tuple[Hashable, ...]] = field(factory=list)  # by number: head and numbers of the parts
    decides: dict[tuple[int, Key], int] = field(factory=dict)
    carried: dict[Carried, tuple[int, int, int, int]] = field(factory=dict)
    _known: dict[Hashable, int] = field(factory=dict)

    def of(self, head: Hashable, parts: Sequence[int] = (), trips: Iterable[int] = ()) -> int:
        """The number of a value, given the head of its expression and the numbers of its parts."""
        made = head, *parts
        number = self._known.setdefault(made, len(self.trips))
        differs = frozenset(trips).union(*(self.trips[part] for part in parts))
        if number == len(self.trips):
            self.trips.append(differs)
            self.expressions.append(made)
        else:
            self.trips[number] |= differs
        return number

    def trips_of(self, holds: int, own: Mapping[int, tuple[int, int]], depth: int) -> int:
        """The number of the trip count of a loop; loops that count alike share it, at any depth.

        `own` has, by number, each value that the loop carries: its number before the loop, and for the next trip.
        """
        rows: list[Hashable] = []
        at: dict[int, int] = {}
        outside: dict[int, None] = {}

        def visit(number: int) -> int:
            if number not in at:
                at[number] = len(rows)
                rows.append(None)
                rows[at[number]] = row(number)
            return at[number]

        def row(number: int) -> Hashable:
            if number in own:
                came, following = own[number]
                outside[came] = None
                return "own", came, visit(following)
            head, *parts = self.expressions[number]
            if depth in self.trips[number] and parts and len(rows) < MOST_ROWS:
                return head, *map(visit, parts)  # type: ignore[arg-type]
            outside[number] = None
            return number

        visit(holds)
        differs = frozenset().union(*(self.trips[number] for number in outside)) - {depth}
        return self.of(("trips", *rows), (), differs)

    def refined(self) -> dict[Carried, CongruenceClass]:
        """The classes for the next pass: partition refinement by the numbers of initial and next values."""
        classes: dict[tuple[int, int, int, int], int] = {}
        trips: dict[int, frozenset[int]] = {}
        for signature in self.carried.values():
            number = classes.setdefault(signature, len(classes))
            _, depth, *values = signature
            trips[number] = trips.get(number, frozenset({depth})).union(*(self.trips[value] for value in values))
        return {
            at: CongruenceClass(classes[signature], trips[classes[signature]]) for at, signature in self.carried.items()
        }
