"""Two programs evaluated on the same random inputs, draw by draw, until the error bound is reached or they differ."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from attrs import define, evolve, field

from shape_inference import Dims, Shape, TupleShape
from xbuild.checking.dataflow.promises import share_equal_arguments
from xbuild.core.attributes import Array
from xbuild.core.callbacks import CALLBACKS
from xbuild.core.graph import Instruction, Module
from xbuild.process.progress import during
from xbuild.properties.placement import target_of
from xbuild.properties.sources import nearest_source

from ..rules.limits import LimitReached, Limits, check_time, running
from ..runtime.report import Stopped
from . import draws, layouts
from .cuts import DEGREES, CutChooser, CutRun, Cuts
from .degrees import BOUNDING, CHOOSING, LEAST, MOST, Degrees, draws_needed, log2_error, watched
from .device_axes import axis_extents, has_axes
from .divergence import find_divergence
from .draws import Domain
from .layouts import ResolvedLayouts
from .loops import FewTrips, IntegerStates, LoopDraw, LoopPair, LoopSide, next_pair
from .probes import rows_of
from .reduction import has_long_loops, is_long_loop
from .rules import residues
from .rules.evaluation import OMITTED
from .rules.literals import EXACT, LiteralReading, reading_of
from .rules.literals import reading as read_by
from .rules.opaque import is_opaque, stand_in
from .rules.places import drawing
from .rules.primes import PLAIN
from .rules.tables import Undecidable
from .run import Subject
from .towers import by_laws
from .trip_kinds import kinds_of_trips
from .unknowns import UnknownPair
from .value_matching import ValueMatching, ValueRecorder, first_difference
from .variants import converts_integers, has_loops
from .verdict import Counterexample, Equivalence, ProgramDifference, classes_of
from .witness import literals_explain, measure_distance, run_probes

Arrays: TypeAlias = list[list[Array]]
"""The arrays of each device."""

Decided = TypeVar("Decided")

BEYOND_ARITHMETIC = "identities of functions, beyond arithmetic"
"""The class of a verdict "undecided" on programs that agree in numbers, but not if functions are random."""

_WORD_BYTES = 8  # a number of the fields, or an integer while it is drawn

_SURE = {"literals", "types", "domain", "constants", "layouts", "rows", "extents"}
"""Classes that need no more inputs than arithmetic does."""
_ARITHMETIC = {"quotients", "integers", "literals", "types", "constants", "layouts", "rows", "extents"}
"""Classes of programs that compute what the fields do, so that those which differ there are different."""


MOST_HUNG = 64
"""How many inputs are drawn in place of one, if both programs hang on them."""
_APART = 1 << 20
"""How far apart the numbers of such draws are."""
_HANGS = "a program hangs on the drawn inputs (deadlock); `xbuild check` says on which inputs it hangs"
_HANGS_ALONE = "one program hangs on a drawn input (deadlock), and the other does not; `xbuild check` says on which"


def _arrays_or_hang(run: Callable[[], Arrays]) -> Arrays | Stopped:
    """What a run returns, or the deadlock that stopped it."""
    try:
        return run()
    except Stopped as error:
        if error.report.kind != "deadlock":
            raise
        return error


@define(eq=False, slots=False)
class ProgramComparison:
    """Two programs, the layout of the arrays of one on the devices of the other, and what the runs have shown.

    `smaller` gives the comparison of both with extents divided by a number; `wider` that of both with a number of
    elements in each array; None if that is not possible. The last parameters of both are their `unknowns`; `unpaired`
    says of which other constants the text omits elements. `extents` has a text for each extent that is smaller than in
    the given programs, and `trips` one for each loop of which a few trips are evaluated. `corresponds` says whether the
    states of two loops that correspond here do so in the given programs, too.
    """

    one: Subject
    other: Subject
    laid: ResolvedLayouts
    seed: int
    limits: Limits
    arguments: Mapping[int, Any] = field(factory=dict)
    values: Mapping[str, tuple[str, Any]] = field(factory=dict)
    domains: Mapping[int, Domain] = field(factory=dict)
    smaller: Callable[[int], ProgramComparison | None] = field(default=lambda factor: None)
    wider: Callable[[int], ProgramComparison | None] = field(default=lambda count: None)
    unknowns: tuple[UnknownPair, ...] = ()
    unpaired: str = ""
    extents: tuple[str, ...] = ()
    trips: tuple[str, ...] = ()
    corresponds: Callable[[LoopPair], bool] = field(default=lambda pair: True)
    degrees: tuple[Degrees, Degrees] = field(init=False)
    assumed: tuple[tuple[str, int], ...] = field(init=False)
    done: int = field(default=0, init=False)
    hung: int = field(default=0, init=False)
    _drawn: dict[int, int] = field(factory=dict, init=False)
    functions_are_constant: bool = field(default=False, init=False)
    reading: LiteralReading = field(default=EXACT, init=False)
    draws_known: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._restart(EXACT, draws_known=False)

    def _restart(self, reading: LiteralReading, *, draws_known: bool) -> None:
        """Restart the draws with this reading of literals, and with known or arbitrary numbers of bounded domains."""
        self.reading, self.draws_known, self.done, self.hung = reading, draws_known, 0, 0
        self.degrees = self.degree_bounds()
        self.assumed = self.assumptions()

    def stand_in(self, instruction: Instruction, *operands: Any) -> Any:
        """The results of a custom call of an unknown function, in floating point."""
        return stand_in(instruction, operands, self.one.rowwise, is_constant=self.functions_are_constant)

    def degree_bounds(self, *, by_laws: bool = False) -> tuple[Degrees, Degrees]:
        """The degrees of both programs before anything is observed."""
        one, other = (Degrees(watched(dict.fromkeys(subject.modules)), by_laws) for subject in (self.one, self.other))
        return one, other

    def assumptions(self, lawful: frozenset[str] = frozenset()) -> tuple[tuple[str, int], ...]:
        """The classes on which a verdict rests; ops that are read by laws have a class of their own."""
        found = classes_of(dict.fromkeys((*self.one.modules, *self.other.modules)), lawful)
        found += Counter(domain=len(self.domains), types=self._other_widths(), literals=self._read_literals())
        found += Counter({name: len(texts) for name, texts in self.details.items()})
        return tuple(sorted(found.items()))

    @property
    def details(self) -> dict[str, tuple[str, ...]]:
        """The texts of assumptions about arrays and constants, by their class."""
        rows = [f"{target} along {list(dims)}" for target, dims in self.one.rowwise.items()]
        every = {"constants": tuple(map(str, self.unknowns)), "layouts": self.laid.pieces, "rows": tuple(rows),
                 "extents": self.extents, "trips": self.trips}  # fmt: skip
        return {name: texts for name, texts in every.items() if texts}

    def _other_widths(self) -> int:
        """The number of outputs that are floats of different widths in the two programs."""
        pairs = zip(self.one.outputs(0), self.other.outputs(0), strict=True)
        return sum(left.dtype is not right.dtype for left, right in pairs)

    def _read_literals(self) -> int:
        """The number of constants that are not read as the numbers to which they are rounded."""
        if self.reading.is_exact:
            return 0
        both = (*self.one.constants(), *self.other.constants())
        return sum(any(self.reading.fraction(*constant) != constant[0] for constant in several) for several in both)

    @property
    def least(self) -> int:
        """The least number of draws."""
        return CHOOSING if any(name in ("order", "integers") for name, _ in self.assumed) else LEAST

    @property
    def is_searched(self) -> bool:
        """Whether the verdict rests on more than arithmetic, so that signs, zeros or exponents may matter."""
        return any(name not in _SURE for name, _ in self.assumed)

    @cached_property
    def mixes_integers(self) -> bool:
        """Whether integers are converted to floats and results are integers, which floats may not hold."""
        subjects = self.one, self.other
        is_exact = any(not leaf.dtype.is_float and leaf.dtype.kind != "complex" for leaf in self.one.outputs(0))
        return is_exact and any(map(converts_integers, subjects)) and not any(map(has_loops, subjects))

    @cached_property
    def wide(self) -> ProgramComparison | None:
        """The comparison of the programs at many elements; None if an element depends on others."""
        return self.wider(rows_of(self.one.inputs(0)))

    @property
    def bits(self) -> float:
        """The bits of the numbers that are drawn."""
        if not self.draws_known:
            return PLAIN.bits
        return min(domain.bits for domain in self.domains.values() if domain.is_bounded)

    def verdict(self) -> Equivalence:
        """The verdict, after as many draws as the bound needs, and runs in floating point."""
        return evolve(self._verdict(), details=self.details)

    def verdict_by_trips(self) -> Equivalence | None:
        """The verdict "equal" if the programs agree at the trips of loops that are evaluated; else None."""

        def found() -> Equivalence | None:
            begun = time.process_time()
            for reading in self._restarts():
                with read_by(reading):
                    by_trips = self._verdict_by_trips()
                if by_trips is not None:
                    return self.after_float_runs(by_trips, time.process_time() - begun)
            return None

        return self._decided(found)

    def difference(self) -> Equivalence | None:
        """The verdict "different" if one draw shows a difference with each reading of literals; else None."""

        def found() -> Equivalence | None:
            for reading in self._restarts():
                with read_by(reading):
                    if self._draw(0) is None:
                        return None
            with read_by(self.reading):
                verdict = self._verdict_on_difference()
            return verdict if verdict.kind == "different" else None

        return self._decided(found)

    def _verdict(self) -> Equivalence:
        def found() -> Equivalence:
            by_types = self._verdict_by_types()
            return self._verdict_by_values() if by_types is None else by_types

        return self._decided(found)

    def _decided(self, decide: Callable[[], Decided]) -> Decided | Equivalence:
        """What a function decides; "undecided" if a run cannot be evaluated, or stops."""
        try:
            with during("comparing the programs"):
                return decide()
        except Undecidable as error:
            return self._undecided(error.reason, reason=self.unpaired if error.reason == OMITTED else "")
        except LimitReached as error:
            return self._undecided(f"a run stopped: {error.kind}")
        except Stopped as error:
            error.raise_interrupt()
            if error.report.kind == "deadlock":
                return self._undecided(_HANGS, reason=error.report.message)
            return self._undecided(f"a run stopped: {error.report.kind}")

    def _verdict_by_types(self) -> Equivalence | None:
        """The verdict "different" if the types of results distinguish the programs; widths of floats may differ."""
        for number, (left, right) in enumerate(zip(self.one.outputs(0), self.other.outputs(0), strict=True)):
            if left.dtype is not right.dtype and (left.dtype.kind != right.dtype.kind or left.dtype.is_integer):
                return self._different(f"output {number} is {left} in one program and {right} in the other")
        return None

    def _verdict_by_values(self) -> Equivalence:
        begun = time.process_time()
        for reading in self._restarts():
            with read_by(reading):
                found = self._verdict_over_fields()
            if found is not None:
                return self.after_float_runs(found, time.process_time() - begun) if found else found
        with read_by(self.reading):
            found = self._verdict_on_difference()
        return self.after_float_runs(found, time.process_time() - begun) if found else found

    def _restarts(self) -> Iterator[LiteralReading]:
        """The readings of literals to try, in order; the draws start again with each."""
        for reading, draws_known in self._readings():
            self._restart(reading, draws_known=draws_known)
            yield reading

    def _readings(self) -> Iterator[tuple[LiteralReading, bool]]:
        """The readings of literals and draws of domains to try, in order, until the programs are equal."""
        yield EXACT, False
        both = [*self.one.constants(), *self.other.constants()]
        rounded = reading_of(constant for several in both for constant in several)
        if any(rounded.fraction(*constant) != constant[0] for several in both for constant in several):
            yield rounded, False
        if any(domain.is_bounded for domain in self.domains.values()):
            yield rounded, True

    def _verdict_over_fields(self) -> Equivalence | None:
        """The verdict of the draws; None if the programs differ at the last one."""
        required = least = self.least
        depends = least == CHOOSING
        if all(map(has_long_loops, (self.one, self.other))):
            by_trips = self._verdict_by_trips()
            if by_trips is not None:
                return by_trips
        while self.done < required:
            with during("evaluating both", lambda: self.done, required, "random inputs"):
                found = self._draw(self.done)
            # Arithmetic that differs does so at every draw; if only one draw differs, a divisor was 0 by chance.
            if found is not None and (depends or self._draw(MOST + self.done) is not None):
                return None
            self.done += 1
            required = max(least, draws_needed(self.degrees, self.bits)) if self.done > BOUNDING else least
            if required > MOST:
                too_high = f"arithmetic of degree {self._degree()}, which is too high for the prime fields"
                return self._verdict_in_parts() or self._undecided(too_high)
        return self._equal()

    def _equal(self) -> Equivalence:
        """The verdict of the draws that were made."""
        error = self.done * log2_error(self.degrees, self.bits)
        assumed = dict(self.assumed)
        if self.hung:  # the first of so many inputs on which the programs do not hang
            error += self.done * math.log2(MOST_HUNG)
            assumed["hangs"] = self.hung
        return Equivalence(
            kind="equal",
            draws=self.done,
            log2_error=error,
            degree=self._degree(),
            assumed=tuple(sorted(assumed.items())),
        )

    def _verdict_by_trips(self) -> Equivalence | None:
        """The verdict "equal" on programs with long loops, of which a few trips are evaluated; else None."""
        if self.one.devices != 1:
            return None
        pairs: list[LoopPair] = []
        while True:
            with self._random_functions_of(0) as (arrays, cut):
                sides = self._loop_sides(0, pairs)
                self.one.run(arrays, None, self.limits, sides[0])
                self.other.run(cut, None, self.limits, sides[1])
            unpaired = [side.unpaired for side in sides]
            if not any(each.states for each in unpaired):
                break
            pair = next_pair(unpaired[0], unpaired[1], self._axes)
            if pair is None or not self.corresponds(pair):
                return None
            integers = [each.integers[key] for each, key in zip(unpaired, pair.keys, strict=True)]
            pairs.append(evolve(pair, kinds=self._kinds(pair, pairs, integers)))
        self.trips = tuple(str(pair) for pair in pairs if pair.kinds is None)
        self.assumed = self.assumptions()
        found = self._verdict_in_parts(pairs)
        if found is None:
            self.trips = ()
            self.assumed = self.assumptions()
        return found

    @cached_property
    def _axes(self) -> list[int]:
        """The extents of the grid of the devices of the other program."""
        program = self.other.program
        is_grid = isinstance(program, Module) and has_axes(program)
        return axis_extents(program, self.laid) if is_grid else [self.other.devices]  # type: ignore[arg-type]

    def _kinds(
        self, pair: LoopPair, earlier: Sequence[LoopPair], integers: Sequence[IntegerStates | None]
    ) -> list[int] | None:
        """The first trip of each kind of two loops; None if that is not known."""
        known = [each for each in integers if each is not None]
        if len(known) < len(integers) or self.arguments or self.domains:  # else parameters are variables
            return None
        entries = [subject.modules[0].entry for subject in (self.one, self.other)]
        states, evaluates = ([getattr(each, name) for each in known] for name in ("states", "evaluate"))
        return kinds_of_trips(pair, earlier, states, evaluates, entries)

    def _loop_sides(self, number: int, pairs: Sequence[LoopPair]) -> tuple[LoopSide, LoopSide]:
        """What both programs do at loops in one draw; loops that are not paired end after a few trips."""
        draw = LoopDraw(pairs, np.random.default_rng([self.seed, number, 2]))
        return draw.side(0), draw.side(1)

    def _verdict_in_parts(self, pairs: Sequence[LoopPair] = ()) -> Equivalence | None:
        """The verdict "equal" on programs that are compared in parts: at values of both, and at these loops."""
        before = self.degrees, self.done
        recorders = ValueRecorder(only_computed=True), ValueRecorder(only_computed=True)
        with self._random_functions_of(self.done) as (arrays, cut):
            loops = self._loop_sides(self.done, pairs) if pairs else (None, None)
            self.one.run(arrays, recorders[0].observe, self.limits, loops[0])
            self.other.run(cut, recorders[1].observe, self.limits, loops[1])
            matching = ValueMatching(*recorders)
            for above in DEGREES:
                chooser = CutChooser(matching, self._degree_bounds_of(pairs)[0], above)
                side = self._loop_sides(self.done, pairs)[0] if pairs else None
                self.one.run(arrays, chooser.observe, self.limits, side)
                cuts, self.degrees, self.done = chooser.cuts(), self._degree_bounds_of(pairs), 0
                required = self.least
                while self.done < required <= MOST and self._agree_at(cuts, pairs, self.done):
                    self.done += 1
                    required = max(self.least, draws_needed(self.degrees, self.bits))
                if self.done == required:
                    return self._equal()
        self.degrees, self.done = before
        return None

    def _degree_bounds_of(self, pairs: Sequence[LoopPair]) -> tuple[Degrees, Degrees]:
        """The degrees of both programs, in which the states of these loops are new variables."""
        found = self.degree_bounds()
        for side, degrees in enumerate(found):
            degrees.renewed = {pair.keys[side]: (pair.carried(side), pair.renewed(side)) for pair in pairs}
        return found

    def _agree_at(self, cuts: Cuts, pairs: Sequence[LoopPair], number: int) -> bool:
        """Whether the programs agree at one draw: cuts, loops and results; the first draw also bounds degrees."""
        with self._random_functions_of(number) as (arrays, cut):
            run = CutRun(cuts, np.random.default_rng([self.seed, number, 1]))
            loops = self._loop_sides(number, pairs) if pairs else (None, None)
            sides = zip((self.one, self.other), (arrays, cut), (cuts.one, cuts.other), self.degrees, loops, strict=True)
            left, right = (
                subject.run(rows, run.observer(places, None if number else degrees), self.limits, loop)
                for subject, rows, places, degrees, loop in sides
            )
            if run.differs or (loops[0] is not None and loops[0].draw.differs):
                return False
            return self._first_difference(left, right) is None

    def after_float_runs(self, found: Equivalence, seconds: float = 0.0) -> Equivalence:
        """The verdict on programs that are equal over the fields, which took so many seconds, after float runs."""
        seen = run_probes(self, seconds)
        if seen.difference is not None:
            reason = "the programs agree over prime fields, but differ in floating point"
            return self._different(reason, example=seen.difference)
        assumed = Counter(dict(found.assumed)) + Counter(range=len(seen.far))
        return evolve(
            found,
            assumed=tuple(sorted(assumed.items())),
            kinds=seen.kinds,
            reason=seen.left_out,
            example=next(iter(seen.far), None),
        )

    def _undecided(self, *reasons: str, reason: str = "", difference: ProgramDifference | None = None) -> Equivalence:
        return Equivalence(
            kind="undecided",
            draws=self.done,
            degree=self._degree(),
            assumed=self.assumed,
            undecided=reasons,
            reason=reason,
            difference=difference,
        )

    def _degree(self) -> int:
        return max(degree.most for degree in self.degrees)

    @contextmanager
    def _random_functions_of(self, number: int) -> Iterator[tuple[Arrays, Arrays]]:
        """Inside the block, the random functions are those of a draw; yields the inputs of both programs.

        A draw on which both programs hang is replaced by the one that `_draw` found instead.
        """
        number = self._drawn.get(number, number)
        with drawing(self.seed * 7919 + number, [*self.one.literals(), *self.other.literals()]):
            with running(self.limits):
                found = self.inputs(number)
            yield found

    def _draw(self, number: int) -> tuple[int, int, Dims] | None:
        """The first output, device and place at which one draw differs; one draw also bounds degrees.

        If both programs hang on a draw, it says nothing, and the next one takes its place. Raises Stopped if they hang
        on MOST_HUNG of them, and Undecidable if only one hangs.
        """
        hang: Stopped | None = None
        for attempt in range(MOST_HUNG):
            self._drawn[number] = number + attempt * _APART
            observers = [degree.observe if number == BOUNDING else None for degree in self.degrees]
            with self._random_functions_of(number) as (arrays, cut):
                left = _arrays_or_hang(lambda: self.one.run(arrays, observers[0], self.limits))  # noqa: B023
                right = _arrays_or_hang(lambda: self.other.run(cut, observers[1], self.limits))  # noqa: B023
                if not isinstance(left, Stopped) and not isinstance(right, Stopped):
                    return self._first_difference(left, right)
            if not isinstance(left, Stopped) or not isinstance(right, Stopped):
                raise Undecidable(_HANGS_ALONE)
            hang, self.hung = left, self.hung + 1
        assert hang is not None
        raise hang

    def inputs(self, number: int, draw: Any = draws.field_array, *, exact: bool = False) -> tuple[Arrays, Arrays]:
        """The inputs of the devices of both programs: words, or numbers if `exact`."""
        self._check_room()
        random = np.random.default_rng([self.seed, number])
        fixed_arrays = draws.argument_arrays(self.one.modules[0].entry.parameters, self.arguments, exact=exact)
        rows = [
            [
                fixed_arrays.get(n, self._in_domain(n, draw(shape, random), exact))
                for n, shape in enumerate(self.one.inputs(device))
            ]
            for device in range(self.one.devices)
        ]
        if self.laid.inputs is None:
            rows = self._with_agreed_values(rows)
            first = len(rows[0]) - len(self.unknowns)
            rows = [[*row[:first], *rows[0][first:]] for row in rows]
            return rows, rows
        minus = np.subtract if exact else lambda a, b: residues.add(a, residues.negate(b))
        filled = _round_coarsely if exact else lambda array, layout: array
        rows = [[filled(*pair) for pair in zip(rows[0], self.laid.inputs, strict=True)]]
        columns = [
            layouts.split_to_devices(layout, value, local, lambda shape: filled(draw(shape, random), layout), minus)  # noqa: B023
            for layout, value, local in zip(self.laid.inputs, rows[0], self.other.inputs(0), strict=True)
        ]
        return rows, [[column[device] for column in columns] for device in range(self.other.devices)]

    def _check_room(self) -> None:
        """Raise LimitReached if the words of an input would exceed the limit of bytes."""
        for number, shape in enumerate(self.one.inputs(0)):
            size = shape.size * _WORD_BYTES
            if self.limits.bytes is not None and size > self.limits.bytes:
                message = (
                    f"parameter {number}, {shape}, needs {size} bytes over prime fields, but the limit is "
                    f"{self.limits.bytes}"
                )
                raise LimitReached("limit_bytes", message)

    def _in_domain(self, number: int, array: Any, exact: bool) -> Any:
        """An input, in its domain: numbers, or words of the fields, or integers, which are numbers in either case."""
        check_time()
        domain = self.domains.get(number)
        if domain is None:
            return array
        if exact or array.dtype != np.uint64 or self.one.inputs(0)[number].dtype.is_integer:
            return domain.numbers(array)
        return domain.words(array, known=self.draws_known)

    def _with_agreed_values(self, rows: Arrays) -> Arrays:
        """The inputs, equal on the devices for which a program states that they are equal."""
        if any(isinstance(p.shape, TupleShape) for p in self.one.modules[0].entry.parameters):
            return rows
        return share_equal_arguments(self.other.program, share_equal_arguments(self.one.program, rows))

    def _first_difference(self, left: Arrays, right: Arrays) -> tuple[int, int, Dims] | None:
        for number in range(len(right[0])):
            found = first_difference(*self.pair(number, left, right))
            if found is not None:
                return number, *found
        return None

    def pair(self, number: int, left: Arrays, right: Arrays, *, exact: bool = False) -> tuple[list[Array], list[Array]]:
        """The expected output of each device, and the actual one."""
        actual = [row[number] for row in right]
        if self.laid.outputs is None:
            return [row[number] for row in left], actual
        layout = self.laid.outputs[number]
        expected = [layout.part(device, left[0][number]) for device in range(len(layout.parts))]
        return expected, layouts.held_parts(layout, actual, np.add if exact else residues.add)

    def _verdict_on_difference(self) -> Equivalence:
        """The verdict on programs that differ over the fields; if functions are taken as random, numbers decide."""
        difference, self.done = self._locate_difference(self.done), self.done + 1
        witness = measure_distance(self)
        one, other = self._unknown_functions()
        if witness.differs and (one or other) and (one != other or not self._differs_for_constant_functions()):
            targets = ", ".join(one | other)
            what = "to different operands" if one == other else "that are not the same in both"
            reason = f"the programs apply unknown functions ({targets}) {what}; their results may be equal"
            return self._undecided("identities of unknown functions", reason=reason, difference=difference)
        is_arithmetic = {name for name, _ in self.assumed} <= _ARITHMETIC and not self.domains
        if witness.differs or (is_arithmetic and not literals_explain(self)):
            what = "the arithmetic differs" if is_arithmetic else f"in floating point, the results {witness}"
            return self._different(what, difference, witness.example if witness.differs else None)
        if is_arithmetic:
            reason = "the results differ by no more than the rounding of literals explains"
            return self._undecided("literals with nearly equal values", reason=reason, difference=difference)
        found = None if witness.distance is None else by_laws(self)
        if found is not None:
            return found
        reason = f"the values differ if functions are treated as random; in floating point, the results {witness}"
        return self._undecided(BEYOND_ARITHMETIC, reason=reason, difference=difference)

    def _unknown_functions(self) -> tuple[dict[str, None], dict[str, None]]:
        """The targets of the custom calls of unknown functions in each program."""
        one, other = (
            dict.fromkeys(
                sorted({target_of(each) for each in subject.instructions() if is_opaque(each)} - {*CALLBACKS})
            )
            for subject in (self.one, self.other)
        )
        return one, other

    def _differs_for_constant_functions(self) -> bool:
        """Whether numbers differ even if unknown functions return the same for any operands."""
        self.functions_are_constant = True
        try:
            return measure_distance(self).differs
        finally:
            self.functions_are_constant = False

    def _different(
        self, reason: str, difference: ProgramDifference | None = None, example: Counterexample | None = None
    ) -> Equivalence:
        return Equivalence(
            kind="different",
            reason=reason,
            draws=self.done,
            assumed=self.assumed,
            difference=difference,
            example=example,
        )

    def _locate_difference(self, number: int) -> ProgramDifference:
        """Where the programs differ, with the first value of the first program that the other one lacks."""
        recorders = ValueRecorder(), ValueRecorder()
        with during("locating the difference"), self._random_functions_of(number) as (arrays, cut):
            loops = self._shown_by_few_trips(arrays, cut)
            left = self.one.run(arrays, recorders[0].observe, self.limits, loops)
            results = left, self.other.run(cut, recorders[1].observe, self.limits, loops)
            found = self._first_difference(*results)
            assert found is not None
            if self.values:
                return self._first_wrong_value(*recorders) or ProgramDifference(*found)
            matching = ValueMatching(*recorders, ignores_units=True)
            value = matching.first_unmatched(self.one.modules[0].entry)
            outputs = [n for n in range(len(results[1][0])) if first_difference(*self.pair(n, *results))]
            other = find_divergence(
                matching,
                self.one.modules[0].entry,
                self.other.program,
                outputs,
                lambda observe: self.other.run(cut, observe, self.limits, loops),
            )
        near = nearest_source(value, self.one.modules[0]), nearest_source(other, self.other.modules[0])
        return ProgramDifference(*found, value, other, near)

    def _shown_by_few_trips(self, arrays: Arrays, cut: Arrays) -> FewTrips | None:
        """A run of a few trips of long loops, if programs differ there; else None."""
        if self.values or not all(any(map(is_long_loop, each.instructions())) for each in (self.one, self.other)):
            return None
        few = FewTrips()
        left, right = (
            subject.run(rows, None, self.limits, few) for subject, rows in ((self.one, arrays), (self.other, cut))
        )
        return None if self._first_difference(left, right) is None else few

    def _first_wrong_value(self, one: ValueRecorder, other: ValueRecorder) -> ProgramDifference | None:
        """The first of the values that should be equal in both programs but differ."""
        others = other.by_name()
        for kept in one.by_name().values():
            name, layout_spec = self.values.get(kept.instruction.name, ("", None))
            if name not in others:
                continue
            there, left = others[name].values, kept.values[min(kept.values)]
            whole, local = (value.instruction.shape for value in (kept, others[name]))
            assert isinstance(whole, Shape)
            assert isinstance(local, Shape)
            layout = layouts.layout_of(layout_spec, whole, local, len(there), f"value %{name}")
            expected = [layout.part(device, left) for device in range(len(layout.parts))]
            found = first_difference(
                expected, layouts.held_parts(layout, [there[n] for n in sorted(there)], residues.add)
            )
            if found is not None:
                return ProgramDifference(None, *found, kept.instruction, others[name].instruction)
        return None


def _round_coarsely(array: Array, layout: layouts.DeviceLayout) -> Array:
    """Numbers, rounded if devices hold terms of them, so that the terms sum to them without further rounding."""
    if layout.sums is None or array.dtype.kind in "biu":
        return array
    step = 2.0**-8 if array.dtype.itemsize >= 4 else 1.0
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    rounded: Array = (np.rint(wide / step) * step).astype(array.dtype)
    return rounded
