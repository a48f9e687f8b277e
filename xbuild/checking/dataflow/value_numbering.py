"""One round of numbers for values: by what they are made of, with the loops in whose trips they differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from .analysis import Key

Carried: TypeAlias = tuple[int, Key, int]  # a device, a loop, a place in the state of it

MOST_ROWS = 200  # of what a loop's condition is made of


@frozen
class CarriedNumber:
    """Carried values of one number; `trips` are the depths of the loops in whose trips they differ."""

    number: int
    trips: frozenset[int]


@define(eq=False)
class NumberingPass:
    """One round: numbers by what values are made of, with the loops in whose trips each differs."""

    kinds: dict[Carried, CarriedNumber]
    trips: list[frozenset[int]] = field(factory=list)
    made: list[tuple[Hashable, ...]] = field(factory=list)  # of each number the head and the parts
    decides: dict[tuple[int, Key], int] = field(factory=dict)
    carried: dict[Carried, tuple[int, int, int, int]] = field(factory=dict)
    _known: dict[Hashable, int] = field(factory=dict)

    def of(self, head: Hashable, parts: Sequence[int] = (), trips: Iterable[int] = ()) -> int:
        """The number of what is made in this way, of these."""
        made = head, *parts
        number = self._known.setdefault(made, len(self.trips))
        differs = frozenset(trips).union(*(self.trips[part] for part in parts))
        if number == len(self.trips):
            self.trips.append(differs)
            self.made.append(made)
        else:
            self.trips[number] |= differs
        return number

    def trips_of(self, holds: int, own: Mapping[int, tuple[int, int]], depth: int) -> int:
        """The number of how often a loop goes round: loops that count alike have one, at whatever depth.

        `own` has what the loop carries, by number: what came in, and what the next trip gets.
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
            head, *parts = self.made[number]
            if depth in self.trips[number] and parts and len(rows) < MOST_ROWS:
                return head, *map(visit, parts)  # type: ignore[arg-type]
            outside[number] = None
            return number

        visit(holds)
        differs = frozenset().union(*(self.trips[number] for number in outside)) - {depth}
        return self.of(("trips", *rows), (), differs)

    def refined(self) -> dict[Carried, CarriedNumber]:
        """The kinds of the next round: parted where they begin or go on differently."""
        kinds: dict[tuple[int, int, int, int], int] = {}
        trips: dict[int, frozenset[int]] = {}
        for signature in self.carried.values():
            number = kinds.setdefault(signature, len(kinds))
            _, depth, *values = signature
            trips[number] = trips.get(number, frozenset({depth})).union(*(self.trips[value] for value in values))
        return {at: CarriedNumber(kinds[signature], trips[kinds[signature]]) for at, signature in self.carried.items()}
