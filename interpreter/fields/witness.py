"""Two programs run in floating point on the same numbers: what the runs show that evaluation over fields does not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import Dims, Shape, XbuildError
from xbuild.core.attributes import Array
from xbuild.core.graph import Module, ModuleGroup
from xbuild.process.progress import over

from ..custom_calls import standing_in
from ..rules.limits import Limits
from ..runtime.report import Stopped
from ..runtime.run import execute, modules_of
from . import draws
from .probes import (
    ORDINARY,
    TIMES,
    Draw,
    Probe,
    any_integers,
    combination_table,
    combinations,
    fixed_inputs,
    is_small,
    probes,
)
from .rules.literals import digits_of, reading_of
from .variants import FACTORS, move_literals, with_float_type
from .verdict import Counterexample

if TYPE_CHECKING:
    from .comparison import ProgramComparison
    from .run import Subject

NEAR = {True: 1e-7, False: 1e-3}
"""The distance of results from which on programs that differ over the fields do so in numbers: in f64, or as they are.
"""
RELATIVE, ABSOLUTE = 1e-9, 1e-11
"""What rounding in f64 makes of an element, by its size and by that of the largest of its array."""
NOISE = {53: (RELATIVE, ABSOLUTE), 24: (1e-4, 1e-6)}
"""Likewise of programs whose floats have as many binary digits: what is less apart is not run in f64."""
STEADY = 0.25
"""A gap persists if each program differs from itself in the other precision by less than this part of the gap."""
LOST = 2.0**-44
"""A gap that is smaller, at simple numbers, comes of numbers that are lost beside 1, as in 1 - 1 / (1 + exp(-40))."""
ROUNDS = 4
"""How often literals are moved within their rounding."""
SHARE, LEAST_SECONDS = 0.3, 5.0
"""The runs may take this part of the time of the evaluation over the fields, or these seconds if that is more."""
LONGEST = 60.0
"""One run may take as long as the evaluation over the fields, or these seconds if that is more."""

Rows: TypeAlias = tuple[Any, Any]
"""The arrays of the devices of both programs."""
Results: TypeAlias = list[tuple[Array, Array]]
"""For each output and device what is to come and what comes."""


@frozen
class Witness:
    """The largest distance between results, relative to the size of the result; None if a run stops."""

    distance: float | None
    example: Counterexample | None = None
    is_wide: bool = False

    @property
    def differs(self) -> bool:
        """Whether the results are apart by more than rounding."""
        return self.distance is not None and self.distance >= NEAR[self.is_wide]

    def __str__(self) -> str:
        if self.distance is None:
            return "could not be compared"
        text = f"differ by {self.distance:.1e} of their size" if self.differs else f"agree to {self.distance:.1e}"
        return text + " in f64" * self.is_wide


@frozen(eq=False)
class ProbeResults:
    """What runs have shown of programs that are equal over the fields.

    `difference`: an input on which they differ. `far`: large and tiny inputs on which results diverge. `kinds`: the
    kinds of inputs that were run. `left_out`: why others were not.
    """

    difference: Counterexample | None = None
    far: tuple[Counterexample, ...] = ()
    kinds: tuple[str, ...] = ()
    left_out: str = ""


@define(eq=False, slots=False)
class Runs:
    """The runs of two programs: in their own types, and with all floats as f64 or f32.

    A run that takes more than `longest` seconds is stopped, and shows nothing.
    """

    comparison: ProgramComparison
    longest: float = float("inf")
    _forms: dict[tuple[str, bool], Any] = field(factory=dict)

    def programs(self, types: str, *, rounds_integers: bool = False) -> Any:
        """Both programs with floats of these types ("own", "f64", "f32"); None where one has no such form.

        `rounds_integers`: floats that are computed from integers alone are rounded to their own types.
        """
        subjects = self.comparison.one, self.comparison.other
        key = types, rounds_integers
        if key not in self._forms:
            of_own = types == "own"
            self._forms[key] = self._both_in_form(
                lambda subject: (
                    subject.program if of_own else with_float_type(subject, types, rounds_integers=rounds_integers)
                ),
                subjects,
            )
        return self._forms[key]

    def has_rounded_literals(self) -> bool:
        """Whether a literal may represent a number other than the rounded one."""
        return bool(self._with_moved_literals())

    def _with_moved_literals(self, *, rounds_integers: bool = False) -> list[Any]:
        """Both programs in f64 with other literals of the same rounding; empty if no literal changes.

        The first have the numbers that literals stand for, as 1/3 for 0.33333334, the others random ones.
        """
        subjects, key = (self.comparison.one, self.comparison.other), ("moved", rounds_integers)
        if key not in self._forms:
            random = np.random.default_rng(self.comparison.seed)
            texts = [subject.program.to_hlo() for subject in subjects]  # type: ignore[union-attr]
            stays = [move_literals(text, random) == text for text in texts]
            reading = reading_of(
                constant for subject in subjects for several in subject.constants() for constant in several
            )
            moves = [lambda text: move_literals(text, reading), *[lambda text: move_literals(text, random)] * ROUNDS]
            self._forms[key] = [
                self._both_in_form(
                    lambda subject: with_float_type(subject, "f64", move, rounds_integers=rounds_integers),  # noqa: B023
                    subjects,
                )
                for move in (() if all(stays) else moves)
            ]
        return [programs for programs in self._forms[key] if programs is not None]

    @staticmethod
    def _both_in_form(form: Callable[[Subject], Any], subjects: tuple[Subject, Subject]) -> Any:
        found = tuple(map(form, subjects))
        return None if None in found else found

    def inputs(self, number: int, probe: Probe) -> Rows:
        """The arrays of the devices of both programs."""
        return self.comparison.inputs(number, probe.draw, exact=True)

    def run_both(self, programs: Any, rows: Rows) -> Results | None:
        """The results of both programs; None if a run is refused or stops."""
        try:
            limits = self.comparison.limits
            seconds = min(self.longest, float("inf") if limits.seconds is None else limits.seconds)
            limits = evolve(limits, seconds=None if seconds == float("inf") else seconds)
            with np.errstate(all="ignore"):
                left, right = (
                    _run_program(*pair, self.comparison, limits) for pair in zip(programs, rows, strict=True)
                )
        except XbuildError:
            return None
        except Stopped as error:
            error.raise_interrupt()
            return None
        found: Results = []
        for output in range(len(right[0])):
            found += zip(*self.comparison.pair(output, left, right, exact=True), strict=True)
        return found

    def explained_by_literals(self, rows: Rows, results: Results, *, rounds_integers: bool = False) -> list[Array]:
        """Where the rounding of literals explains how far results in f64 are apart, or that one is no number."""
        noise = [np.zeros(np.shape(pair[0])) for pair in results]
        for programs in self._with_moved_literals(rounds_integers=rounds_integers):
            there = self.run_both(programs, rows)
            if there is not None:
                each = [_moves((a, c)) + _moves((b, d)) for (a, b), (c, d) in zip(results, there, strict=True)]
                noise = list(map(np.maximum, noise, each))
        return [
            (_gap(pair) <= 2 * away) & (away > 0) & (~_specials(pair) | np.isinf(away))
            for pair, away in zip(results, noise, strict=True)
        ]

    def run_probe(self, number: int, probe: Probe) -> ProbeResult | None:
        """What runs on one draw of inputs show; None if a run stops."""
        rows = self.inputs(number, probe)
        own = self.run_both(self.programs("own"), rows)
        if own is None:
            return None
        if probe.of_integers and not _integers_differ(own):
            return ProbeResult()
        special = None if probe.of_integers else self._special(rows, own, is_confirmed=probe.is_confirmed)
        if special is not None and probe.shows_overflow:
            return ProbeResult(self.example(probe, rows, own, special), counts=True)
        gap = self.find_gap(rows, of_integers=probe.of_integers) if self.may_differ(own) else None
        if gap is None and _integers_differ(own):
            gap = self.find_gap(rows, of_integers=True, rounds_integers=True)
        if gap is not None:
            found = self.example(probe, rows, *gap)
            is_lost = probe.is_confirmed and abs(complex(found.left) - complex(found.right)) < LOST
            return ProbeResult(found, counts=probe.shows_gaps) if not is_lost else ProbeResult()
        return ProbeResult() if special is None else ProbeResult(self.example(probe, rows, own, special))

    def _special(self, rows: Rows, own: Results, *, is_confirmed: bool) -> tuple[int, Dims] | None:
        """A place at which only one program has a NaN or infinity; if `is_confirmed`, also in f64."""
        masks = list(map(_specials, own))
        if is_confirmed and any(mask.any() for mask in masks):
            wide = self.programs("f64")
            results = None if wide is None else self.run_both(wide, rows)
            if results is not None:
                explained = self.explained_by_literals(rows, results)
                masks = [a & _specials(b) & ~c for a, b, c in zip(masks, results, explained, strict=True)]
        return _first_true(masks)

    def may_differ(self, own: Results) -> bool:
        """Whether results in the types of the programs leave open that they are apart by more than rounding."""
        if self._digits < 24:  # where rounding hides much
            return True
        noise = NOISE[self._digits]
        return any(bool(np.any(_is_beyond_rounding(pair, *noise))) for pair in own)

    @cached_property
    def _digits(self) -> int:
        """The binary digits of the shortest float of both programs."""
        types = {dtype for s in (self.comparison.one, self.comparison.other) for dtype in s.float_types()}
        return min((digits_of(type_) for type_ in types), default=53)

    def find_gap(
        self, rows: Rows, *, of_integers: bool = False, rounds_integers: bool = False
    ) -> tuple[Results, tuple[int, Dims]] | None:
        """The results in f64 and a place at which they are apart, as they are in f32 and by more than literals explain.

        A gap that is none in one of the two precisions, or another, comes of rounding. `of_integers`: only results
        that are integers or truth values count. `rounds_integers`: how floats that are integers are rounded to their
        own types is part of what programs compute, since integers are exact.
        """
        wide = self.programs("f64", rounds_integers=rounds_integers)
        results = None if wide is None else self.run_both(wide, rows)
        if results is None or wide is None:
            return None
        masks = [_is_beyond_rounding(pair) & (not of_integers or _is_exact(pair[0])) for pair in results]
        if not any(mask.any() for mask in masks):
            return None
        there = self.run_both(self.programs("f32", rounds_integers=rounds_integers), rows)
        if there is None:
            return None
        masks = [mask & _persists(pair, other) for mask, pair, other in zip(masks, results, there, strict=True)]
        if any(mask.any() for mask in masks):
            explained = self.explained_by_literals(rows, results, rounds_integers=rounds_integers)
            masks = [mask & ~is_explained for mask, is_explained in zip(masks, explained, strict=True)]
        place = _first_true(masks)
        return None if place is None else (results, place)

    def example(self, probe: Probe, rows: Rows, results: Results, place: tuple[int, Dims]) -> Counterexample:
        """The inputs and both values at a place of the results."""
        at, element = place
        devices = len(rows[1])
        left, right = (array[element] for array in results[at])
        parameters = [module.entry.parameters for module in self.comparison.one.modules]
        arguments = [
            tuple(draws.nest_arrays(left_over, each.shape) for each in several)
            for several, left_over in zip(parameters, map(iter, rows[0]), strict=True)
        ]
        return Counterexample(probe.name, tuple(arguments), at // devices, at % devices, element, left, right)


def _integers_differ(results: Results) -> bool:
    """Whether results that are integers or truth values differ."""
    return any(_is_exact(pair[0]) and bool(np.any(pair[0] != pair[1])) for pair in results)


def _is_beyond_rounding(pair: tuple[Array, Array], relative: float = RELATIVE, absolute: float = ABSOLUTE) -> Array:
    gap = _gap(pair)
    if _is_exact(pair[0]):
        return gap > 0
    sizes, largest = _sizes(pair)
    found: Array = gap > relative * sizes + absolute * largest
    return found


def _persists(wide: tuple[Array, Array], narrow: tuple[Array, Array]) -> Array:
    """The elements that each program computes alike in both precisions, compared with the gap between the programs."""
    gap = STEADY * _gap(wide)
    finite = np.isfinite(_as_wide(narrow[0])) & np.isfinite(_as_wide(narrow[1]))
    left, right = (_gap((a, b)) for a, b in zip(wide, narrow, strict=True))
    found: Array = finite & (left <= gap) & (right <= gap)
    return found


@np.errstate(all="ignore")
def measure_distance(comparison: ProgramComparison) -> Witness:
    """How far the results of programs that differ over the fields are apart, on all kinds of inputs but far ones.

    With all floats as f64; in their own types where a program has no such form.
    """
    runs, number = Runs(comparison), 0
    witness = Witness(None)
    shown = (probe for probe in _probes(comparison) if probe.shows_gaps and not probe.of_integers)
    for number, probe in enumerate(shown):
        found = _distance_on(runs, probe, runs.inputs(number, probe))
        if found.distance is not None and found.distance > (-1.0 if witness.distance is None else witness.distance):
            witness = found
        if witness.differs:
            return witness
    of_integers = ((runs, probe) for probe in _probes(comparison) if probe.of_integers)
    for there, probe in itertools.chain(of_integers, _combined(comparison, runs)):
        number += 1
        seen = _run_and_confirm(runs, there, number, probe)
        if seen is not None and seen.counts and seen.example is not None:
            return Witness(max(_distance(seen.example), NEAR[True]), seen.example, is_wide=True)
    return witness


def _distance(example: Counterexample) -> float:
    """The distance of the two values relative to the larger one; 1 if one is not a number."""
    left, right = (complex(value) for value in (example.left, example.right))
    most = max(abs(left), abs(right))
    return abs(left - right) / most if np.isfinite(most) and most else 1.0


def _run_and_confirm(runs: Runs, there: Runs, number: int, probe: Probe) -> ProbeResult | None:
    """What one draw shows; what it shows on many elements or at smaller extents is tested at those of the programs."""
    seen = there.run_probe(number, probe)
    if there is runs or seen is None or seen.example is None:
        return seen
    is_wide = there.comparison is runs.comparison.wide
    again = evolve(probe, draw=_inputs_of(seen.example)) if is_wide else probe
    return runs.run_probe(number, again)


@np.errstate(all="ignore")
def literals_explain(comparison: ProgramComparison) -> bool:
    """Whether ordinary results in f64 are nowhere apart by more than the rounding of literals explains."""
    runs = Runs(comparison)
    rows, wide = runs.inputs(0, ORDINARY), runs.programs("f64")
    results = None if wide is None else runs.run_both(wide, rows)
    if results is None:
        return False
    masks = list(map(_is_beyond_rounding, results))
    if not runs.has_rounded_literals() or any(_specials(pair).any() for pair in results):
        return False
    explained = runs.explained_by_literals(rows, results)
    return not any((mask & ~is_explained).any() for mask, is_explained in zip(masks, explained, strict=True))


def _probes(comparison: ProgramComparison) -> Iterator[Probe]:
    """The kinds of inputs at the programs' own extents; fewer of each if many elements are tried at once."""
    times = TIMES if comparison.is_searched and comparison.wide is None else 1
    yield from probes(_shapes(comparison), _numbers(comparison), times)
    if comparison.mixes_integers:
        for number in range(TIMES if is_small(_shapes(comparison)) else 1):
            yield any_integers(_shapes(comparison), comparison.seed + number)


def _shapes(comparison: ProgramComparison) -> list[Shape]:
    return [shape for device in range(comparison.one.devices) for shape in comparison.one.inputs(device)]


def _numbers(comparison: ProgramComparison) -> list[float]:
    return [*comparison.one.numbers(), *comparison.other.numbers()]


def _combined(comparison: ProgramComparison, runs: Runs) -> Iterator[tuple[Runs, Probe]]:
    """More inputs of programs that are the same by more than arithmetic: signs, zeros and exponents in combination.

    Programs whose ops are all elementwise are run on many elements at once, all combinations of simple numbers among
    them; others of few inputs are run several times.
    """
    if not comparison.is_searched:
        return
    wide = comparison.wide
    if wide is None:
        there, probes_here = runs, combinations(_shapes(comparison)) if is_small(_shapes(comparison)) else iter(())
    else:
        there, shapes = Runs(wide), _shapes(wide)
        ordinary = (probe for probe in probes(shapes, _numbers(comparison)) if probe.shows_gaps)
        integer_probes = [any_integers(shapes, comparison.seed)] if comparison.mixes_integers else []
        probes_here = itertools.chain([combination_table(shapes, comparison.seed)], ordinary, integer_probes)
    yield from ((there, evolve(probe, is_confirmed=True)) for probe in probes_here)


def _inputs_of(example: Counterexample) -> Draw:
    """The inputs of one element for all elements."""
    return fixed_inputs(example.kind, [np.asarray(argument)[example.element] for argument in example.arguments[0]]).draw


def _distance_on(runs: Runs, probe: Probe, rows: Rows) -> Witness:
    wide = runs.programs("f64")
    is_wide = wide is not None
    results = runs.run_both(wide if is_wide else runs.programs("own"), rows)
    if results is None:
        return Witness(None, is_wide=is_wide)
    parts = [_relative_gap(*pair, specials=probe.shows_overflow) for pair in results]
    if is_wide and any(np.any(part >= NEAR[True]) for part in parts):
        parts = [
            np.where(e, 0.0, part) for e, part in zip(runs.explained_by_literals(rows, results), parts, strict=True)
        ]
    at, most = max(enumerate(float(part.max(initial=0.0)) for part in parts), key=lambda pair: pair[1])
    example = runs.example(probe, rows, results, (at, _place(parts[at] == most))) if parts[at].size else None
    return Witness(most, example, is_wide=is_wide)


@np.errstate(all="ignore")
def run_probes(comparison: ProgramComparison, seconds: float) -> ProbeResults:
    """What runs show of programs that are equal over the fields; `seconds` is how long those evaluations took.

    Where all runs would take too long, the later ones are at smaller extents, if that is possible, and what they
    find is tested at the whole extents.
    """
    reason = _not_run(comparison)
    if reason:
        return ProbeResults(left_out=reason)
    runs, kept, left_out = Runs(comparison, max(LONGEST, seconds)), list(_probes(comparison)), ""
    begun, most = time.process_time(), max(LEAST_SECONDS, SHARE * seconds)
    far: dict[str, Counterexample] = {}
    kinds: dict[str, None] = {}
    search, is_slow = runs, False
    planned = itertools.chain(((None, probe) for probe in kept), _combined(comparison, runs))
    for number, (elsewhere, probe) in enumerate(over(planned, "running both in floating point", "kinds of inputs")):
        if time.process_time() > begun + most:
            left_out = "; ".join(filter(None, (left_out, "other kinds would take too long")))
            break
        if probe.name in far:
            continue
        seen = _run_and_confirm(runs, elsewhere or search, number, probe)
        if seen is None:
            continue
        kinds[probe.name] = None
        if seen.example is not None and seen.counts:
            return ProbeResults(seen.example, tuple(far.values()), tuple(kinds))
        if seen.example is not None:
            far[probe.name] = seen.example
        if not is_slow and (time.process_time() - begun) * len(kept) > most * (number + 1):
            is_slow = True
            search, left_out = _smaller_runs(comparison, runs, after=probe.name)

    stopped = f"every run stopped, at an error or after {runs.longest:.0f} s"
    return ProbeResults(None, tuple(far.values()), tuple(kinds), left_out if kinds else stopped)


def _smaller_runs(comparison: ProgramComparison, runs: Runs, *, after: str) -> tuple[Runs, str]:
    """Runs at smaller extents at which the programs agree on ordinary inputs, with a note; else the original runs."""
    for factor in FACTORS:
        there = comparison.smaller(factor)
        if there is not None:
            found = Runs(there, runs.longest)
            seen = found.run_probe(0, ORDINARY)
            if seen is not None and seen.example is None:
                return found, f"the inputs after the {after} ones were run with large extents divided by {factor}"
    return runs, ""


@frozen(eq=False)
class ProbeResult:
    """What one run has shown: an example on which the programs differ, and whether that counts as a difference."""

    example: Counterexample | None = None
    counts: bool = False


def _not_run(comparison: ProgramComparison) -> str:
    """The reason not to run the programs; empty if there is none."""
    subjects = comparison.one, comparison.other
    draws_numbers = any(instruction.opcode == "rng" for s in subjects for instruction in s.instructions())
    if draws_numbers and max(subject.devices for subject in subjects) > 1:
        return "each device draws its own random numbers"
    return ""


def _first_true(masks: Any) -> tuple[int, Dims] | None:
    """The first of several arrays of truth values that has a true one, and the place there."""
    for number, mask in enumerate(masks):
        if mask.any():
            return number, _place(mask)
    return None


def _place(mask: Array) -> Dims:
    return tuple(map(int, np.unravel_index(int(np.argmax(mask)), mask.shape)))


def _is_exact(array: Array) -> bool:
    """Whether an array has integers or truth values."""
    return array.dtype.kind in "biu" or "int" in array.dtype.name  # those of 2 and 4 bits are no types of NumPy


def _as_wide(array: Array) -> Array:
    if _is_exact(array):
        return array.astype(np.float64) if array.dtype.itemsize < 8 else array.astype(np.longdouble)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _specials(pair: tuple[Array, Array]) -> Array:
    """Where one has a NaN or infinity that the other has not."""
    a, b = map(_as_wide, pair)
    found: Array = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b)))
    return found


def _gap(pair: tuple[Array, Array]) -> Array:
    """The distance of the elements of two arrays; 0 if one is not finite or they are equal."""
    a, b = map(_as_wide, pair)
    found: Array = np.abs(np.where(np.isfinite(a) & np.isfinite(b) & (a != b), a - b, 0.0))
    return found


def _moves(pair: tuple[Array, Array]) -> Array:
    """The distance of the elements of two arrays; infinite if only one is a number."""
    found: Array = np.where(_specials(pair), np.inf, _gap(pair))
    return found


def _sizes(pair: tuple[Array, Array]) -> tuple[Array, float]:
    """The size of each element, and of the largest finite one."""
    sizes = np.maximum(*(np.where(np.isfinite(array), np.abs(array), 0.0) for array in map(_as_wide, pair)))
    return sizes, float(sizes.max(initial=0.0))


def _relative_gap(expected: Array, given: Array, *, specials: bool = True) -> Array:
    """The distance of elements relative to the largest; 1 for integers and if only one is NaN."""
    gap = _gap((expected, given))
    if _is_exact(expected):
        return np.where(gap > 0, 1.0, 0.0)
    own = np.abs(np.where(np.isfinite(_as_wide(expected)), _as_wide(expected), 0.0)).max(initial=0.0)
    found = np.minimum(gap / max(float(own), 1e-30), 1e300)
    return np.where(_specials((expected, given)), 1.0, found) if specials else found


def _run_program(
    program: Module | ModuleGroup, rows: Any, comparison: ProgramComparison, limits: Limits
) -> list[list[Any]]:
    inputs, modules = [], modules_of(program)
    for module, row in zip(modules, rows, strict=True):
        arrays = iter([_of_type(*pair) for pair in zip(row, draws.shapes_of(module.entry.parameters), strict=True)])
        inputs.append([draws.nest_arrays(arrays, parameter.shape) for parameter in module.entry.parameters])
    with standing_in(comparison.stand_in):
        found = execute(program, inputs, limits=limits)
    return [draws.flat_arrays(value, m.entry.root.shape) for value, m in zip(found, modules, strict=True)]


def _of_type(array: Any, shape: Shape) -> Any:
    return np.asarray(array).astype(shape.dtype.dtype, copy=False)
