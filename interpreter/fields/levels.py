"""Two programs evaluated in a tower of fields, where exponentials and logarithms obey their laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from .bound import BOUNDING, MOST, draws_wanted, log2_error
from .degrees import Degrees
from .nesting import is_nested
from .rules.laws import LAWFUL, Calls, Choices, Level, evaluating
from .rules.places import drawing
from .rules.primes import TOWER, Pair, over
from .rules.tables import Undecidable
from .verdict import Equivalence

if TYPE_CHECKING:
    from .comparison import Arrays, Comparison

HEIGHTS = (2, 4)
"""How many levels are tried: exponentials of exponentials obey the laws on the levels above the second."""
MOST_SWEEPS = 5
"""How often all levels are evaluated, since logarithms take arguments from the level above."""


@define(eq=False)
class Evaluation:
    """A program evaluated on all levels of a tower for one draw.

    `chooser`: the level by whose numbers choices are made; before it has been evaluated it is the lowest.
    """

    tower: Sequence[Pair]
    scales: tuple[int, int]
    chooser: int
    run: Callable[[int, Degrees | None], Arrays]
    choices: Choices | None = None
    calls: dict[int, Calls] = field(factory=dict)

    def results(self, degrees: Degrees | None) -> list[Arrays]:
        """The results on each level, when what each level takes from the others no longer changes."""
        for sweep in range(MOST_SWEEPS):
            before, chosen = dict(self.calls), self.choices
            found = [self._on(number, None if sweep else degrees) for number in range(len(self.tower))]
            if sweep == 0 and not self.calls[0]["log"] and self.choices is not None and not self.choices.proposed:
                break
            if before and _same_calls(before, self.calls) and chosen is not None and self._is_settled():
                break
            self._choose()
        return found

    def _on(self, number: int, degrees: Degrees | None) -> Arrays:
        upper = number + 1
        proposes = number == self.chooser
        choices = Choices() if self.choices is None else self.choices.repeated(proposes=proposes)
        level = Level(
            self.scales,
            choices,
            self.calls.get(number - 1),
            self.calls.get(upper),
            self.tower[upper] if upper < len(self.tower) else None,
        )
        with evaluating(level):
            found = self.run(number, degrees if upper == len(self.tower) else None)
        level.choices.check_ended()
        self.calls[number] = level.own
        if self.choices is None or proposes:
            self.choices = choices
        return found

    def _is_settled(self) -> bool:
        """Whether the choices are those by the numbers of the level that chooses."""
        assert self.choices is not None
        return _same(self.choices.proposed, self.choices.made)

    def _choose(self) -> None:
        """Take the choices that the level proposes."""
        assert self.choices is not None
        if self.choices.proposes:
            self.choices = Choices(self.choices.proposed)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(*pair, equal_nan=True) for pair in zip(one, other, strict=True)
    )


def _same_calls(one: dict[int, Calls], other: dict[int, Calls]) -> bool:
    return all(_same(one[number][name], other[number][name]) for number in one for name in one[number])


@define(eq=False)
class Laws:
    """Whether two programs agree in a tower of a height; draw by draw, until the bound is reached or they differ."""

    comparison: Comparison
    height: int
    chooser: int
    degrees: tuple[Degrees, Degrees] = field(init=False)
    agreeing: list[set[int]] = field(init=False)
    done: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.degrees = self.comparison.bounds(by_laws=True)
        outputs = len(self.comparison.other.outputs(0))
        self.agreeing = [set(range(self.height)) for _ in range(outputs)]

    @property
    def tower(self) -> Sequence[Pair]:
        return TOWER[-self.height :]

    @property
    def bits(self) -> float:
        """Those of the smallest fields."""
        return self.tower[0].bits

    def hold(self) -> bool:
        """Whether each output is the same on one level at every draw, of as many as the bound needs."""
        wanted = self.comparison.least
        while self.done < wanted:
            if not self._draw(self.done):
                return False
            self.done += 1
            if self.done <= BOUNDING:
                continue
            wanted = max(self.comparison.least, draws_wanted(self.degrees, self.bits))
            if wanted > MOST:
                raise Undecidable(f"arithmetic of degree {self.degree}, for which the fields are too small")
        return True

    @property
    def degree(self) -> int:
        return max(each.most for each in self.degrees)

    def _draw(self, number: int) -> bool:
        scales = np.random.default_rng([self.comparison.seed, number, 7]).integers(1, 1 << 27, 2)
        left, right = (self._results(side, number, (int(scales[0]), int(scales[1]))) for side in (0, 1))
        for output, levels in enumerate(self.agreeing):
            levels.intersection_update(self._levels(output, left, right))
        return all(self.agreeing)

    def _results(self, side: int, number: int, scales: tuple[int, int]) -> list[Arrays]:
        run = partial(self._run, side, number)
        return Evaluation(self.tower, scales, self.chooser, run).results(
            self.degrees[side] if number == BOUNDING else None
        )

    def _levels(self, output: int, left: list[Arrays], right: list[Arrays]) -> Iterator[int]:
        """The levels on which an output is the same in both programs."""
        for number, pair in enumerate(self.tower):
            with over(pair):
                expected, given = self.comparison.pair(output, left[number], right[number])
            if all(map(np.array_equal, expected, given)):
                yield number

    def _run(self, side: int, number: int, level: int, degrees: Degrees | None) -> Arrays:
        comparison = self.comparison
        subject = (comparison.one, comparison.other)[side]
        literals = [*comparison.one.literals(), *comparison.other.literals()]
        with ExitStack() as stack:
            stack.enter_context(over(self.tower[level]))
            stack.enter_context(drawing(comparison.seed * 7919 + number, literals))
            rows: Any = comparison.inputs(number)[side]
            return subject.run(rows, None if degrees is None else degrees.observe, comparison.limits)


def by_laws(comparison: Comparison) -> Equivalence | None:
    """The verdict equal, where the laws of exponentials and logarithms say so; else None."""
    count = dict(comparison.assumed_of(LAWFUL)).get("exponents", 0)
    for height, chooser in _ways(comparison) if count else ():
        laws = Laws(comparison, height, chooser)
        try:
            if laws.hold():
                return _equal(laws)
        except Undecidable:
            continue
    return None


def _ways(comparison: Comparison) -> Iterator[tuple[int, int]]:
    """The heights of towers, and the levels that choose, which may make a difference."""
    modules = dict.fromkeys((*comparison.one.modules, *comparison.other.modules))
    has_order = "order" in dict(comparison.assumed)
    for height in HEIGHTS if any(is_nested(each.entry) for each in modules) else HEIGHTS[:1]:
        yield height, 0
        if has_order:
            yield height, height - 1


def _equal(laws: Laws) -> Equivalence:
    error = laws.done * log2_error(laws.degrees, laws.bits)
    assumed = laws.comparison.assumed_of(LAWFUL)
    return Equivalence(kind="equal", draws=laws.done, log2_error=error, degree=laws.degree, assumed=assumed)
