"""Two programs evaluated in a tower of fields, where exponentials and logarithms obey their laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import LOOPS
from xbuild.properties.sites import reached

from .degrees import BOUNDING, CHOOSING, ERROR, MOST, Degrees, draws_needed, log2_error
from .rules import residues
from .rules.laws import LAWFUL, LAWFUL_BY_SIGNS, Calls, OrderChoices, TowerLevel, evaluating
from .rules.places import drawing
from .rules.primes import SIGNED, TOWER, Pair, over
from .rules.tables import Undecidable
from .verdict import ROOTS, Equivalence

if TYPE_CHECKING:
    from .comparison import Arrays, ProgramComparison


# ----------------------------------------------------------------------------
# Whether a program has exponentials of what exponentials have part in.

EXPONENTIALS = LAWFUL - {"log", "log_plus_one"}


def is_nested(entry: Computation) -> bool:
    """Whether an exponential may have the value of another in its argument; in a loop that of an earlier trip.

    >>> import xbuild as xb
    >>> functions = (lambda x: xb.exp(x) + xb.tanh(x)), (lambda x: xb.exp(xb.tanh(x)))
    >>> [is_nested(xb.computation(xb.f32[2])(each)) for each in functions]
    [False, True]
    """
    return any(_has_nested_exponential(computation) for computation in reached(entry))


def _has_nested_exponential(computation: Computation) -> bool:
    above: dict[Instruction, bool] = {}
    for instruction in computation.instructions:
        own = _is_exponential(instruction)
        before = any(above[operand] for operand in instruction.operands)
        if own and (before or instruction.opcode in LOOPS):
            return True
        above[instruction] = own or before
    return False


def _is_exponential(instruction: Instruction) -> bool:
    """Whether an instruction is an exponential, or calls one."""
    if instruction.opcode in EXPONENTIALS:
        return True
    return any(
        i.opcode in EXPONENTIALS for callee in instruction.called for c in reached(callee) for i in c.instructions
    )


# ----------------------------------------------------------------------------
# Two programs evaluated in a tower of fields, where exponentials and logarithms obey their laws.

HEIGHTS = (2, 4)
"""The numbers of levels to try: exponentials of exponentials obey the laws on the levels above the second."""
MOST_SWEEPS = 5
"""How often all levels are evaluated, since logarithms take arguments from the level above."""
MOST_SIGNED, MOST_EMPTY, MOST_SILENT = 96, 16, 3
"""The most draws if signs count, and the draws after which each element, or any, must have been a number."""


@define(eq=False)
class TowerEvaluation:
    """A program evaluated on all levels of a tower for one draw.

    `chooser`: the level by whose numbers choices are made; before it has been evaluated it is the lowest.
    """

    tower: Sequence[Pair]
    scales: tuple[int, int]
    chooser: int
    run: Callable[[int, Degrees | None], Arrays]
    by_signs: bool = False
    choices: OrderChoices | None = None
    calls: dict[int, Calls] = field(factory=dict)

    def results(self, degrees: Degrees | None) -> list[Arrays]:
        """The results on each level, when what each level takes from the others no longer changes."""
        for sweep in range(MOST_SWEEPS):
            before, chosen = dict(self.calls), self.choices
            found = [self._evaluate_level(number, None if sweep else degrees) for number in range(len(self.tower))]
            if sweep == 0 and not self.calls[0]["log"] and self.choices is not None and not self.choices.proposed:
                break
            if before and _same_calls(before, self.calls) and chosen is not None and self._are_choices_final():
                break
            self._choose()
        return found

    def _evaluate_level(self, number: int, degrees: Degrees | None) -> Arrays:
        upper = number + 1
        proposes = number == self.chooser
        choices = OrderChoices() if self.choices is None else self.choices.repeated(proposes=proposes)
        level = TowerLevel(
            self.scales,
            choices,
            self.calls.get(number - 1),
            self.calls.get(upper),
            self.tower[upper] if upper < len(self.tower) else None,
            self.by_signs,
        )
        with evaluating(level):
            found = self.run(number, degrees if upper == len(self.tower) else None)
        level.choices.check_ended()
        self.calls[number] = level.own
        if self.choices is None or proposes:
            self.choices = choices
        return found

    def _are_choices_final(self) -> bool:
        """Whether the choices are those by the numbers of the level that chooses."""
        assert self.choices is not None
        return _same(self.choices.proposed, self.choices.made)

    def _choose(self) -> None:
        """Take the choices that the level proposes."""
        assert self.choices is not None
        if self.choices.proposes:
            self.choices = OrderChoices(self.choices.proposed)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(*pair, equal_nan=True) for pair in zip(one, other, strict=True)
    )


def _same_calls(one: dict[int, Calls], other: dict[int, Calls]) -> bool:
    return all(_same(one[number][name], other[number][name]) for number in one for name in one[number])


@define(eq=False)
class Laws:
    """Whether two programs agree in a tower of a height; draw by draw, until the bound is reached or they differ."""

    comparison: ProgramComparison
    height: int
    chooser: int
    degrees: tuple[Degrees, Degrees] = field(init=False)
    agreeing: list[set[int]] = field(init=False)
    done: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.degrees = self.comparison.degree_bounds(by_laws=True)
        outputs = len(self.comparison.other.outputs(0))
        self.agreeing = [set(range(self.height)) for _ in range(outputs)]

    by_signs = False

    @property
    def tower(self) -> Sequence[Pair]:
        return TOWER[-self.height :]

    @property
    def bits(self) -> float:
        """Those of the smallest fields."""
        return self.tower[0].bits

    def hold(self) -> bool:
        """Whether each output is the same on one level at every draw, of as many as the bound needs."""
        required = self.comparison.least
        while self.done < required:
            if not self._draw(self.done):
                return False
            self.done += 1
            if self.done <= BOUNDING:
                continue
            required = max(self.comparison.least, draws_needed(self.degrees, self.bits))
            if required > MOST:
                raise Undecidable(f"arithmetic of degree {self.degree}, which is too high for the prime fields")
        return True

    @property
    def log2_error(self) -> float:
        """The logarithm of the probability that all draws miss a difference."""
        return self.done * log2_error(self.degrees, self.bits)

    @property
    def degree(self) -> int:
        return max(degree.most for degree in self.degrees)

    def _draw(self, number: int) -> bool:
        left, right = self._results_of_both(number)
        for output, levels in enumerate(self.agreeing):
            levels.intersection_update(self._agreeing_levels(output, left, right))
        return all(self.agreeing)

    def _results_of_both(self, number: int) -> tuple[list[Arrays], list[Arrays]]:
        """The results of both programs at a draw, on each level."""
        scales = np.random.default_rng([self.comparison.seed, number, 7]).integers(1, 1 << 27, 2)
        left, right = (self._results(side, number, (int(scales[0]), int(scales[1]))) for side in (0, 1))
        return left, right

    def _results(self, side: int, number: int, scales: tuple[int, int]) -> list[Arrays]:
        evaluation = TowerEvaluation(self.tower, scales, self.chooser, partial(self._run, side, number), self.by_signs)
        return evaluation.results(self.degrees[side] if number == BOUNDING else None)

    def _agreeing_levels(self, output: int, left: list[Arrays], right: list[Arrays]) -> Iterator[int]:
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


@define(eq=False)
class SignedLaws(Laws):
    """The same, with the squares modulo the first prime as the positive numbers.

    What is NaN there, such as a root of a negative number, is left out: each element is to be the same on one level
    wherever it is a number in both programs, and to be one often enough.
    """

    by_signs = True
    clean: dict[tuple[int, int], list[Array]] = field(factory=dict)

    @property
    def tower(self) -> Sequence[Pair]:
        return SIGNED[-self.height :]

    def hold(self) -> bool:
        while self.done < MOST_SIGNED:
            if not self._draw(self.done):
                return False
            self.done += 1
            if self._fewest_comparisons() == 0 and (
                self.done > MOST_EMPTY or (self.done > MOST_SILENT and not self._was_any_compared())
            ):
                return False
            if self.done > BOUNDING and self.log2_error < ERROR and self._fewest_comparisons() >= CHOOSING:
                return True
        return False

    @property
    def log2_error(self) -> float:
        """That of all draws, for the element that was a number least often.

        An algebraic number of k roots, which exist at one of 2^k draws, is a root of a polynomial of 2^k times the
        degree.
        """
        share = self._fewest_comparisons() / self.done
        if not share:
            return 0.0
        own = log2_error(self.degrees, log2(self.tower[0].primes[0]), primes=1) - 2 * log2(share)
        return min(self._fewest_comparisons() * own, 0.0)

    def _was_any_compared(self) -> bool:
        """Whether any element was compared."""
        return any(bool(counts.any()) for several in self.clean.values() for counts in several)

    def _fewest_comparisons(self) -> int:
        """How often each element was compared, on the level that served it best."""
        found = []
        for output, levels in enumerate(self.agreeing):
            counts = [self.clean[output, level] for level in levels]
            found.append(max(min((int(array.min(initial=MOST_SIGNED)) for array in one), default=0) for one in counts))
        return min(found, default=MOST_SIGNED)

    def _agreeing_levels(self, output: int, left: list[Arrays], right: list[Arrays]) -> Iterator[int]:
        for number, pair in enumerate(self.tower):
            with over(pair):
                several = [*zip(*self.comparison.pair(output, left[number], right[number]), strict=True)]
                rows = [row for pair in several if (row := self._compared(*pair)) is not None]
            if len(rows) < len(several):
                continue
            before = self.clean.get((output, number)) or [np.zeros(row.shape, np.int64) for row in rows]
            self.clean[output, number] = [a + b for a, b in zip(before, rows, strict=True)]
            yield number

    @staticmethod
    def _compared(expected: Array, given: Array) -> Array | None:
        """The elements that are numbers in both and equal modulo the first prime; None if two numbers differ."""
        if expected.dtype != np.uint64 or given.dtype != np.uint64:
            return np.ones(expected.shape, bool) if np.array_equal(expected, given) else None
        is_number = (expected != residues.UNDEFINED) & (given != residues.UNDEFINED)
        special = residues.is_special(expected) | residues.is_special(given)
        a, b = (np.where(special, words, residues.halves(words)[0]) for words in (expected, given))
        return None if np.any(is_number & (a != b)) else is_number


def by_laws(comparison: ProgramComparison) -> Equivalence | None:
    """The verdict "equal" if laws of exponentials and logarithms, roots or signs imply it; else None."""
    for laws in _laws_to_try(comparison):
        try:
            if laws.hold():
                return _equal(laws)
        except Undecidable:
            continue
    return None


def _laws_to_try(comparison: ProgramComparison) -> Iterator[Laws]:
    """The heights of towers, and the levels that choose, which may make a difference."""
    modules = dict.fromkeys((*comparison.one.modules, *comparison.other.modules))
    has_order = "order" in dict(comparison.assumed)
    has_exponents = "exponents" in dict(comparison.assumptions(LAWFUL_BY_SIGNS))
    if "exponents" in dict(comparison.assumptions(LAWFUL)):
        for height in HEIGHTS if any(is_nested(module.entry) for module in modules) else HEIGHTS[:1]:
            yield Laws(comparison, height, 0)
            if has_order:
                yield Laws(comparison, height, height - 1)
    if has_order or "roots" in dict(comparison.assumptions(ROOTS)):
        yield SignedLaws(comparison, 1, 0)
    if has_exponents:
        yield SignedLaws(comparison, 2, 1)


def _equal(laws: Laws) -> Equivalence:
    lawful = LAWFUL_BY_SIGNS | ROOTS if laws.by_signs else LAWFUL
    assumed = laws.comparison.assumptions(lawful)
    return Equivalence(kind="equal", draws=laws.done, log2_error=laws.log2_error, degree=laws.degree, assumed=assumed)
