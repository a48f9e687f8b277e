"""Smaller extents that decide the same question: by how much dimensions of two programs can be reduced, and how.

An extent n becomes k, and each element of the smaller one stands for n / k equal elements of the other: sums over it
are multiplied by n / k. So the smaller programs compute exactly what the given ones do on inputs whose elements repeat,
and a difference of theirs is one of the given programs.

The converse holds where the elements along a dimension are interchangeable: no op knows their places, ops compute each
by itself or sum over them, and devices hold equal parts of them. The difference of two values, or of two operands of a
random function, is then symmetric in these elements, and a sum of terms that each depend on at most m of them. It does
not vanish where the elements have k >= m different values. For take the terms of most elements, and write each as a
part that vanishes if one of its elements is a fixed number, and terms of fewer elements. If m groups of equal elements
vary, and the others are that number, the part to which all groups contribute is that of terms with one element of
each, times a number: so it vanishes only if these terms do, and then the same holds of terms of fewer elements.
`_Counts` bounds m, as `Degrees` bounds degrees.

Sections:

    How many different elements along a dimension a monomial contains
    The smaller programs
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from attrs import evolve, field, frozen

from shape_inference import AnyShape, Dims, Shape, TupleShape, XbuildError, leaves
from shape_inference.trees import map_leaves
from shape_inference.types import f64
from xbuild.core.callbacks import CALLBACKS
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.op import OPS
from xbuild.differentiation.context import inline_calls
from xbuild.editing.refusals import infer_edited_shape
from xbuild.process.limits import ask
from xbuild.properties.effects import PLAIN_CALLS
from xbuild.properties.placement import is_same, target_of
from xbuild.properties.rewriting import Rewriter, with_called
from xbuild.properties.trip_counts import trips_of
from xbuild.sharding.stated_shardings import SHARDING
from xbuild.text.header import ALIASES, DONORS, LAYOUT

from .degrees import Degree, inverted, is_random, joined, multiplied
from .device_axes import EXCHANGES, SUMS, axes_of_numbers, axis_extents, groups_along, has_axes, rows_of
from .extents import (
    DONES,
    SAME_ARRAYS,
    STARTS,
    Atom,
    Factors,
    SharedExtents,
    entry_arrays,
    extent_of,
    first_leaf,
    first_result,
    fix,
    flat,
    is_sum,
    numbered_arrays,
    summed,
    terms_of,
)
from .layouts import DeviceLayout, ResolvedLayouts, Slices
from .loops import LoopPair, Part, parts_of
from .rules.opaque import function_key, is_opaque
from .rules.tables import MOVED
from .run import Subject
from .value_matching import needed_instructions
from .verdict import ORDER, Counterexample, Equivalence, ProgramDifference

# ----------------------------------------------------------------------------
# How many different elements along a dimension a monomial contains.

_INFINITE = 1 << 30
CASES = 16
"""How many elements stay at least where ops go by the order of numbers, since each shows a case of its own."""
_TRIES = 4
"""The passes after which the numbers of a loop are to be steady."""
_PRODUCTS = frozenset({"multiply", "dot", "convolution"})
"""Ops whose results are products of operands, and sums of these."""
_JOINED = MOVED | {
    "abs", "add", "all_gather", "all_reduce", "all_reduce_start", "all_reduce_done", "all_to_all", "async_update",
    "ceil", "clamp", "collective_broadcast",
    "collective_permute", "complex", "convert", "domain", "floor", "imag", "maximum", "minimum", "negate",
    "opt_barrier", "real", "reduce", "reduce_precision", "reduce_scatter", "reduce_window", "round_nearest_afz",
    "round_nearest_even", "scatter", "sort", "subtract", "topk",
}  # fmt: skip
"""Ops whose results are elements of operands, or sums of some that do not go over interchangeable ones."""
_VARIABLES = frozenset({
    "compare", "sign", "is_finite", "and", "or", "xor", "not", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "popcnt", "count_leading_zeros", "mulhi", "iota", "partition_id", "replica_id",
    "rng_bit_generator", "after_all", "bitcast",
})  # fmt: skip
"""Ops whose results are new variables: bits, integers and truth values that depend on the operands in any way."""


_SAME_EVERYWHERE = frozenset({"constant", "iota", "partition_id", "replica_id"})
"""Ops whose results are the same along a dimension that may be smaller: it is fixed where they are not."""


@frozen
class Count:
    """How many elements along a dimension monomials of an array contain, over which sums have gone.

    `degree` counts in numerators and denominators. `varies`: whether the array differs along the dimension, which it
    then has. `divides`: whether denominators do that contain such sums. `is_own`: whether devices along an axis that is
    the dimension have different arrays.
    """

    degree: Degree = field(factory=Degree)
    varies: bool = False
    divides: bool = False
    is_own: bool = False


Counts = list[Count]
"""The counts of the arrays of a value."""


class _Counts:
    """The counts of all values of programs for the dimensions that have an atom, and the largest ones."""

    def __init__(
        self, shared: SharedExtents, atom: Atom, places: Mapping[Array, int], visits: int, restarts: bool
    ) -> None:
        self.shared, self.atom, self.places, self.visits, self.restarts = shared, atom, places, visits, restarts
        self.depth, self.axes, self.above, self.below, self.free = 0, 0, 0, 0, 0
        self.is_ordered = False

    def read_program(self, subject: Subject) -> None:
        """Count in a program: the numbers of its devices are further dimensions of all of its arrays."""
        self.axes = flat(self.shared.devices).count(self.atom) if subject.devices > 1 else 0
        self.read(subject.modules[0].entry)

    def needed(self) -> int:
        """How many different elements are enough for the difference of two elements of any two values.

        Over a common denominator, each numerator is multiplied by the denominator of the other.
        """
        enough = self.above + self.below + 2 * self.free + 1
        return max(enough, CASES) if self.is_ordered else enough

    def read(self, computation: Computation, arguments: Sequence[Counts] | None = None) -> Counts:
        """The counts of the root of a computation; without arguments, its parameters are inputs."""
        local: dict[Instruction, Counts] = {}
        for each in computation.instructions:
            ask()
            if each.opcode == "parameter" and arguments is not None:
                local[each] = [*arguments[each.attributes.number]]
            else:
                local[each] = self._counts(each, [local[operand] for operand in each.operands])
            self.visits -= len(local[each]) + 1
            if self.visits < 0:
                raise _TooManyVisits
            for number, count in enumerate(local[each]):
                self._note(count, self._places(each, number, count.is_own))
        return local[computation.root]

    def _places(self, value: Instruction, number: int, is_own: bool) -> int:
        """How many factors of an array are the atom: of its dimensions, and of the number of devices with their own."""
        return self.places.get((value, number), 0) + (self.axes if is_own else 0)

    def _shows_few(self, value: Instruction) -> bool:
        """Whether an array has the atom, and few elements besides: along an axis of devices others show cases, too."""
        if not self._places(value, 0, is_own=True):
            return False
        axes = flat(self.shared.devices)
        if self.atom not in axes:
            return True
        factors = [atom for dim in self.shared.of(value) for atom in flat(dim)]
        shown: int = prod(atom.size for atom in (*factors, *(axes if self.axes else ())) if atom.is_fixed)
        return shown < CASES

    def _note(self, count: Count, places: int) -> None:
        below = sum(max(family.total, 0) for family in count.degree.families.values())
        self.above, self.below = max(self.above, count.degree.total - below), max(self.below, below)
        self.free = max(self.free, places * count.varies)

    def _counts(self, each: Instruction, operands: list[Counts]) -> Counts:
        opcode = each.opcode
        if opcode == "tuple":
            return [count for counts in operands for count in counts]
        if opcode == "get_tuple_element":
            first = first_leaf(each)
            return operands[0][first : first + len([*leaves(each.shape)])]
        if opcode in PLAIN_CALLS:
            return self.read(each.called[0], operands)
        if opcode == "while":
            return self._loop(each, operands[0])
        if opcode == "conditional":
            roots = [self.read(called, [given]) for called, given in zip(each.called, operands[1:], strict=True)]
            return [self._chosen(operands[0][0], self._joined(counts)) for counts in zip(*roots, strict=True)]
        if opcode in DONES:
            first = first_result(each)
            return operands[0][first : first + len([*leaves(each.shape)])]
        numbers = range(len([*leaves(each.shape)]))
        if opcode in STARTS:
            return self._started(each, operands, len(numbers))
        flat_counts = [count for counts in operands for count in counts]
        if opcode in SAME_ARRAYS and len(flat_counts) == len(numbers):
            return [self._of(each, [count], number) for number, count in enumerate(flat_counts)]
        return [self._of(each, flat_counts, number) for number in numbers]

    def _started(self, each: Instruction, operands: list[Counts], size: int) -> Counts:
        """The counts of the operands, of what is started, and of numbers that tell of its state."""
        given = [count for counts in operands for count in counts]
        results = self.read(each.called[0], operands) if each.opcode == "async_start" else given
        return [*given, *results, *[Count()] * size][:size]

    def _loop(self, each: Instruction, state: Counts) -> Counts:
        if self.restarts and not self.depth and is_long_loop(each):
            return self._one_trip(each, state)
        for _ in range(_TRIES):
            goes_on, after = self._trip(each, state)
            both = [self._chosen(goes_on, self._joined(pair)) for pair in zip(state, after, strict=True)]
            if both == state:
                return state
            state = both
        self.above = _INFINITE
        return state

    @staticmethod
    def _chosen(by: Count, count: Count) -> Count:
        """The count of one of several arrays, which devices may choose differently."""
        return evolve(count, varies=True, is_own=True) if by.is_own and by.varies else count

    def _trip(self, each: Instruction, state: Counts) -> tuple[Count, Counts]:
        """The counts of the condition of a loop, and those after a trip."""
        self.depth += 1
        (goes_on,) = self.read(each.attributes.condition, [state])
        after = self.read(each.attributes.body, [state])
        self.depth -= 1
        return goes_on, after

    def _one_trip(self, each: Instruction, state: Counts) -> Counts:
        """The counts of a trip from a state of new variables; the state after the loop is one of new variables, too."""
        parts = parts_of(each)
        assert parts is not None
        new = [self._new(each, number) for number, _ in enumerate(state)]
        state = [old if n in parts.integers or n in parts.constant else new[n] for n, old in enumerate(state)]
        self._trip(each, state)
        return state

    def _new(self, value: Instruction, number: int) -> Count:
        """The count of an array of variables."""
        return Count(varies=self._places(value, number, is_own=True) > 0, is_own=self.axes > 0)

    @staticmethod
    def _joined(counts: Sequence[Count]) -> Count:
        degree = joined([count.degree for count in counts])
        varies, divides, is_own = (any(getattr(c, name) for c in counts) for name in ("varies", "divides", "is_own"))
        return Count(degree, varies, divides, is_own)

    def _is_own(self, each: Instruction, operands: Counts) -> bool:
        """Whether devices along the axis have different arrays of the result of an instruction."""
        if self.axes and each.opcode in EXCHANGES and self.atom in (self.shared.axes(each) or []):
            return each.opcode in ("reduce_scatter", "all_to_all")
        return any(count.is_own for count in operands)

    def _of(self, each: Instruction, operands: Counts, number: int) -> Count:
        """The count of an array of the result of an instruction."""
        if each.opcode == "parameter":
            return self._new(each, number)
        is_own = self._is_own(each, operands)
        return evolve(self._of_array(each, operands, self._places(each, number, is_own)), is_own=is_own)

    def _of_array(self, each: Instruction, operands: Counts, places: int) -> Count:
        """The count of an array that has the atom at so many places."""
        opcode = each.opcode
        is_chosen = _chooses(each) and any(count.varies for count in operands)
        if is_chosen and any(self._shows_few(operand) for operand in each.operands):
            self.is_ordered = True
        if opcode in _SAME_EVERYWHERE:
            return Count()
        if is_opaque(each):
            return Count(varies=places > 0)
        both = self._joined(operands) if operands else Count(varies=places > 0)
        varies = both.varies and places > 0
        if opcode in ORDER and places > 1 and (both.varies or both.degree.total):
            self.above = _INFINITE  # laws of the order of elements at different places
        if opcode == "bitcast" and each.shape.dtype is each.operands[0].shape.dtype:  # type: ignore[union-attr]
            return Count(both.degree, varies, both.divides)
        is_known = opcode in _JOINED or opcode in _PRODUCTS or opcode in ("divide", "power") or is_same(each)
        if opcode in _VARIABLES or opcode == "sqrt" or (is_random(each) and opcode != "power") or not _is_number(each):
            return Count(varies=varies)
        if not is_known or (opcode != "reduce" and any(map(_multiplies, each.called))):
            self.above = _INFINITE if both.varies or both.degree.total else self.above
            return both
        if opcode == "power":
            if both.degree.total:
                self.above = _INFINITE
            return Count(varies=varies)
        degree, divides = both.degree, both.divides
        if opcode in _PRODUCTS:
            degree = multiplied([count.degree for count in operands])
        if opcode == "divide":
            degree = multiplied([operands[0].degree, inverted(operands[1].degree, each)])
            divides = divides or (operands[1].varies and operands[1].degree.total > 0)
        if is_sum(each) or self._sums_over_devices(each):
            over = self._summed(each)
            if over and divides:
                self.above = _INFINITE
            degree = evolve(degree, numerator=degree.numerator + over)
        elif opcode == "reduce" and any(map(_multiplies, each.called)) and (both.varies or both.degree.total):
            self.above = _INFINITE
        return Count(degree, varies, divides)

    def _sums_over_devices(self, each: Instruction) -> bool:
        return bool(self.axes) and each.opcode in SUMS

    def _summed(self, each: Instruction) -> int:
        """How many factors of the dimensions over which a sum goes are the atom."""
        if each.opcode in SUMS:
            return (self.shared.axes(each) or []).count(self.atom)
        given = self.shared.of(terms_of(each))
        return sum(atom is self.atom for dim in summed(each) for atom in flat(given[dim]))


def _chooses(each: Instruction) -> bool:
    """Whether an instruction, or a computation that it applies to elements, goes by the order of numbers."""
    return each.opcode in ORDER or any(inner.opcode in ORDER for called in each.called for inner in called.instructions)


def _multiplies(computation: Computation) -> bool:
    """Whether a computation of elements, or one that it calls, does more than add and choose, integers included."""
    return any(
        each.opcode not in _JOINED | _VARIABLES | {"parameter", "constant", "tuple", "get_tuple_element"}
        or any(map(_multiplies, each.called))
        for each in computation.instructions
    )


def _is_number(each: Instruction) -> bool:
    """Whether a conversion keeps the number, to a float or from an integer; and whether a quotient is one of floats."""
    if each.opcode not in ("convert", "divide"):
        return True
    source = each.operands[0].shape
    assert isinstance(source, Shape)
    if each.opcode == "divide":
        return source.dtype.kind in ("float", "complex")
    return each.shape.dtype.kind in ("float", "complex") or source.dtype.is_integer  # type: ignore[union-attr]


# ----------------------------------------------------------------------------
# The smaller programs.

LARGE = 1 << 23
"""How much work two programs are at least if their extents are reduced without being told: elements of results."""
_LEAST = 2
"""How many elements are enough to search for a difference."""
_PRODUCTS_PER_ELEMENT = 32
"""How many products of a dot take the time of one element of other ops."""


@frozen(eq=False)
class SmallerPrograms:
    """Two programs with smaller extents, their layouts, and a text for each extent that is smaller.

    `sizes` has the new size of each atom. `given_one` and `given_other` are the given programs, without calls.
    """

    one: Subject
    other: Subject
    laid: ResolvedLayouts
    sizes: Mapping[Atom, int]
    shared: SharedExtents
    given_one: Subject
    given_other: Subject
    texts: tuple[str, ...]

    def given_verdict(self, found: Equivalence, given: tuple[Subject, Subject]) -> Equivalence:
        """The verdict on the smaller programs as one on the given programs."""
        return evolve(
            found,
            difference=found.difference and self.given_difference(found.difference, given),
            example=found.example and self.given_example(found.example, given),
        )

    def corresponds(self, pair: LoopPair) -> bool:
        """Whether states of two loops that correspond at the smaller extents do so at those of the given programs.

        Then an array of a device has factors of that of the first program, and the others are axes of its devices, at
        whose place it is.
        """
        loops = [_given_instruction(*each) for each in zip(pair.loops, (self.given_one, self.given_other), strict=True)]
        return all(self._is_part(loops, place, of_devices) for place, of_devices in pair.parts.items())

    def _is_part(self, loops: Sequence[Instruction], place: int, parts: Mapping[int, Part]) -> bool:
        source = next(iter(parts.values()))[0]
        axes = flat(self.shared.devices)
        extents = [self.sizes.get(atom, atom.size) for atom in axes]
        array = [*zip(self.shared.of(loops[0], source), self.shared.of(loops[1], place), strict=True)]
        for dim, sides in enumerate(array):
            whole, local = ([atom for atom in flat(side) if atom.size != 1] for side in sides)
            over, same = whole[: len(whole) - len(local)], whole[len(whole) - len(local) :]
            size = prod(self.sizes.get(atom, atom.size) for atom in local)
            numbers = np.array([parts[device][1][dim].start // size for device in sorted(parts)])
            along = axes_of_numbers(numbers, extents) if axes else []
            if along is None or len(over) != len(along):
                return False
            pairs = zip((*over, *same), (*(axes[axis] for axis in along), *local), strict=True)
            if not all(a is b or (a.is_fixed and b.is_fixed and a.size == b.size) for a, b in pairs):
                return False
        return True

    def given_difference(self, found: ProgramDifference, given: tuple[Subject, Subject]) -> ProgramDifference:
        """A difference of the smaller programs as one of the given programs, with their instructions and places."""
        value, other = (
            None if each is None else _given_instruction(each, subject)
            for each, subject in zip((found.value, found.other), given, strict=True)
        )
        if found.output is None:
            return evolve(found, value=value, other=other)
        element, device = self._given_place(found.output, found.element, given), self._given_device(found.device)
        return evolve(found, device=device, element=element, value=value, other=other)

    def given_example(self, found: Counterexample, given: tuple[Subject, Subject]) -> Counterexample:
        """An input of the smaller programs as one of the given programs, without the arguments if they are vast."""
        parameters = given[0].modules[0].entry.parameters
        vast = sum(shape.size for shape in given[0].inputs(0)) * len(found.arguments) > _MOST_SHOWN
        rows = [
            tuple(self._given_value(*pair) for pair in zip(row, parameters, strict=True))
            for row in (() if vast else found.arguments)
        ]
        element, device = self._given_place(found.output, found.element, given), self._given_device(found.device)
        return evolve(found, arguments=tuple(rows), device=device, element=element)

    def _given_place(self, output: int, place: Dims, given: tuple[Subject, Subject]) -> Dims:
        root = given[1].modules[0].entry.root
        array = self.shared.of(root, numbered_arrays(root)[output][0])
        return tuple(_place(flat(dim), self.sizes, at) for dim, at in zip(array, place, strict=True))

    def _given_device(self, device: int) -> int:
        """The first of the devices that a device represents."""
        axes = flat(self.shared.devices)
        return _place(axes, self.sizes, device) if axes else device

    def _given_value(self, value: Any, parameter: Instruction) -> Any:
        """The value of a parameter with each element as often as it stands for."""
        numbers = itertools.count()

        def repeat(leaf: Any) -> Any:
            for dim, factors in enumerate(self.shared.of(parameter, next(numbers))):
                shape = [self.sizes.get(atom, atom.size) for atom in flat(factors)]
                found = np.asarray(leaf)
                parts = found.reshape(*found.shape[:dim], *shape, *found.shape[dim + 1 :])
                for axis, atom in enumerate(flat(factors), dim):
                    parts = np.repeat(parts, atom.size // self.sizes.get(atom, atom.size), axis)
                leaf = parts.reshape(*found.shape[:dim], -1, *found.shape[dim + 1 :])
            return leaf

        return map_leaves(repeat, value)


_MOST_SHOWN = 1 << 24
"""The numbers of the largest inputs that an example has."""


def _given_instruction(made: Instruction, subject: Subject) -> Instruction:
    """The instruction of the given program from which one of a smaller program was made."""
    every = {each.name: each for each in subject.instructions()}
    names = [".".join(made.name.split(".")[:n]) for n in range(made.name.count(".") + 1, 0, -1)]
    return next((every[name] for name in names if name in every), made)


def _place(factors: Factors, sizes: Mapping[Atom, int], at: int) -> int:
    places = np.unravel_index(at, [sizes.get(atom, atom.size) for atom in factors])
    steps = [int(n) * (atom.size // sizes.get(atom, atom.size)) for n, atom in zip(places, factors, strict=True)]
    return int(np.ravel_multi_index(steps, [atom.size for atom in factors]))


def work(subject: Subject) -> int:
    """The elements that a program computes on all its devices, each instruction once, and dots by their products."""
    return sum(map(_work, subject.instructions())) * subject.devices // len(dict.fromkeys(subject.modules))


def _work(each: Instruction) -> int:
    size = sum(leaf.size for leaf in leaves(each.shape) if isinstance(leaf, Shape))
    given = each.operands[0].shape if each.opcode == "dot" else None
    if not isinstance(given, Shape):
        return size
    return size * max(prod(given.dims[dim] for dim in summed(each)) // _PRODUCTS_PER_ELEMENT, 1)


MUCH = 1 << 27
"""How many elements a program computes at least, with all trips of its loops, if only a few trips are evaluated."""
MANY = 8
"""How many trips such a loop has at least."""


def has_long_loops(subject: Subject) -> bool:
    """Whether a program has loops of so many trips that it computes a great many elements."""
    loops = [
        each for module in dict.fromkeys(subject.modules) for each in module.entry.instructions if is_long_loop(each)
    ]
    work = sum(_trips(loop) * sum(map(_work, loop.attributes.body.instructions)) for loop in loops)
    return work * subject.devices > MUCH


def is_long_loop(each: Instruction) -> bool:
    """Whether an instruction is a loop of many trips, of which a few may be evaluated."""
    return each.opcode == "while" and parts_of(each) is not None and _trips(each) >= MANY


def _trips(loop: Instruction) -> int:
    found = trips_of(loop)
    return (found and found.count) or 0


def reduced(
    one: Subject,
    other: Subject,
    laid: ResolvedLayouts,
    fixed: Iterable[int] = (),
    *,
    by_trips: bool = False,
    is_search: bool = False,
) -> SmallerPrograms | None:
    """Two programs with smaller extents where these decide the same; None if they are never smaller.

    `fixed` are parameters of the first program whose extents stay. `by_trips`: the programs are compared trip by trip
    of their long loops, of which each starts from a state of new variables. `is_search`: extents are as small as can
    be, so that a difference is one of the given programs; equal results say nothing of these.
    """
    if not isinstance(one.program, Module) or not isinstance(other.program, Module):
        return None
    one, other = (Subject(_Inlined().module(subject.program), subject.rowwise) for subject in (one, other))  # type: ignore[arg-type]
    assert isinstance(one.program, Module)
    assert isinstance(other.program, Module)
    shared = SharedExtents(one.rowwise)
    entries = [subject.modules[0].entry for subject in (one, other)]
    shared.read(one.program)
    if one.devices == 1 and laid.inputs is not None and has_axes(other.program):
        shared.devices = [Atom(extent) for extent in axis_extents(other.program, laid)]
    shared.read(other.program)
    shared.match(one, other, laid)
    for number in fixed:
        fix(atom for array in shared.arrays(entries[0].parameters[number]) for dim in array for atom in dim)
    sizes: dict[Atom, int] = {}
    places, visits = _places_of(shared), _MOST_VISITS
    for atom in flat(shared.devices):
        if not atom.is_fixed:
            places.setdefault(atom, {})
    for atom in sorted(places, key=lambda atom: atom.size, reverse=True):
        needed = _LEAST
        if not is_search:
            counts = _Counts(shared, atom, places[atom], visits, by_trips)
            try:
                for subject in (one, other):
                    counts.read_program(subject)
            except _TooManyVisits:
                break
            visits, needed = counts.visits, counts.needed()
        size = next((n for n in range(needed, atom.size) if atom.size % n == 0), None) if needed < atom.size else None
        if size is not None:
            sizes[atom] = size
    if not sizes:
        return None
    sizes = {atom: sizes[atom] for atom in places if atom in sizes}
    try:
        left, right = (
            Subject(_Smaller(shared, sizes, subject.devices > 1).module(subject.modules[0]), subject.rowwise)
            for subject in (one, other)
        )
        smaller = _smaller_layouts(shared, sizes, one, laid)
    except XbuildError:
        return None
    return SmallerPrograms(left, right, smaller, sizes, shared, one, other, tuple(_texts(shared, sizes, entries)))


class _Inlined(Rewriter):
    """The pass that inlines all calls: the arrays of two calls of one computation need not have the same extents."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def computation(self, computation: Computation) -> Computation:
        return inline_calls(super().computation(computation), Counter(), self.known)


Array = tuple[Instruction, int]
"""An array of a value, by its place among those of a tuple."""

_MOST_VISITS = 10_000_000
"""The most arrays at which counts are taken, for all atoms together: about 12 seconds. Later atoms keep their sizes."""


class _TooManyVisits(Exception):
    """Counts were taken at as many arrays as is worth it."""


def _places_of(shared: SharedExtents) -> dict[Atom, dict[Array, int]]:
    """The atoms that are free to change, and how many factors of the dimensions of each array each of them is."""
    found: dict[Atom, dict[Array, int]] = {}
    for array, dims in shared.dims.items():
        for dim in dims:
            for atom in flat(dim):
                if not atom.is_fixed and atom.size > 1:
                    places = found.setdefault(atom, {})
                    places[array] = places.get(array, 0) + 1
    return found


def _texts(shared: SharedExtents, sizes: Mapping[Atom, int], entries: Sequence[Computation]) -> Iterator[str]:
    """For each smaller extent on which results depend, its size, and an argument or another value that has it."""
    live = {each for entry in entries for each in needed_instructions(entry)}
    axes = flat(shared.devices)
    for atom, size in sizes.items():
        if atom in axes:
            after = prod(axis.size for axis in axes[len(axes) - axes[::-1].index(atom) :])
            step = f", of which neighbors are {after} apart" if after > 1 else ""
            yield f"{atom.size} to {size}, an axis of devices{step}, and dimensions that have a part for each"
            continue
        places = [
            (value, dim)
            for (value, number), array in shared.dims.items()
            for dim, factors in enumerate(array)
            if number == 0 and isinstance(value.shape, Shape) and atom in flat(factors)
        ]
        if live.isdisjoint(value for value, _ in places):
            continue
        inputs = [place for place in places if place[0] in entries[0].parameters]
        value, dim = (inputs or places)[0]
        whole: Any = value.shape
        factor = f"a factor of dimension {dim}" if whole.dims[dim] != atom.size else f"dimension {dim}"
        yield f"{atom.size} to {size}, {factor} of %{value.name}: {value.shape.plain()}"


class _Smaller(Rewriter):
    """The pass that gives a program its smaller extents."""

    def __init__(self, shared: SharedExtents, sizes: Mapping[Atom, int], has_devices: bool) -> None:
        super().__init__()
        self.shared, self.sizes = shared, sizes
        self.devices = flat(shared.devices) if has_devices and not sizes.keys().isdisjoint(flat(shared.devices)) else []

    def module(self, module: Module) -> Module:
        made = super().module(module)
        gone = (LAYOUT, ALIASES, DONORS, *(("frontend_attributes",) if self.devices else ()))
        kept = [each for each in made.computations if each in {*made.entry.reachable()}]
        notes = {key: text for key, text in made.annotations.items() if key not in gone}
        count = self._size(self.devices) if self.devices else module.num_partitions
        return evolve(made, computations=tuple(kept), annotations=notes, num_partitions=count)

    def _size(self, factors: Factors) -> int:
        return prod(self.sizes.get(atom, atom.size) for atom in flat(factors))

    def dims(self, value: Instruction, number: int = 0) -> Dims:
        return tuple(map(self._size, self.shared.of(value, number)))

    def shape(self, value: Instruction) -> Any:
        """The shape of a value with its smaller extents."""
        numbers = itertools.count()

        def smaller(shape: AnyShape) -> Any:
            if isinstance(shape, TupleShape):
                return TupleShape(tuple(map(smaller, shape.elements)))
            number = next(numbers)
            return evolve(shape, dims=self.dims(value, number)) if isinstance(shape, Shape) else shape

        return smaller(value.shape)

    def instruction(self, instruction: Instruction) -> Instruction:
        shape = self.shape(instruction)
        called = [self.done.get(each, each) for each in instruction.called]
        attributes = with_called(instruction, called) if called else instruction.attributes
        changes = self._attributes(instruction, shape)
        attributes = evolve(attributes, **changes) if changes else attributes
        operands = tuple(self.now[operand] for operand in instruction.operands)
        control = tuple(self.now[each] for each in instruction.control)
        notes = {key: text for key, text in instruction.annotations.items() if key != SHARDING or not self.devices}
        made = evolve(
            instruction, shape=shape, operands=operands, control=control, attributes=attributes, annotations=notes
        )
        if made.opcode not in ("parameter", "constant", "custom_call"):
            inferred = infer_edited_shape(made, operands, "its extents are smaller")
            if [leaf.dims for leaf in leaves(inferred) if isinstance(leaf, Shape)] != [
                leaf.dims for leaf in leaves(shape) if isinstance(leaf, Shape)
            ]:
                raise XbuildError("dimension_mismatch", f"%{made.name}: {inferred} is not {shape}")
        factor = self._factor(instruction)
        return self.add(made) if factor == 1 else self._times(made, factor)

    def _factor(self, each: Instruction) -> int:
        """The number of equal terms that one term of a sum represents."""
        if self.devices and each.opcode in SUMS:
            axes = self.shared.axes(each) or []
            return extent_of(axes) // self._size(axes)
        if not is_sum(each):
            return 1
        given = self.shared.of(terms_of(each))
        return prod(extent_of(given[dim]) // self._size(given[dim]) for dim in summed(each))

    def _times(self, made: Instruction, factor: int) -> Instruction:
        """The sum times a number; it keeps its name, and what was summed gets another."""
        assert isinstance(made.shape, Shape)
        name, shape = made.name, made.shape
        part = self.add(evolve(made, name=f"{name}.part"))
        exact = np.asarray(factor).astype(shape.dtype.dtype)
        if shape.dtype.kind == "float" and float(exact) != factor:  # the number needs more digits
            wide = Shape(f64, shape.dims)
            part = self._record("convert", f"{name}.wide", wide, (part,), new_element_type=f64)
            found = self._product(f"{name}.product", part, np.asarray(factor, np.float64))
            return self._record("convert", name, shape, (found,), new_element_type=shape.dtype)
        return self._product(name, part, exact)

    def _product(self, name: str, part: Instruction, number: Any) -> Instruction:
        shape: Any = part.shape
        scalar = self._record("constant", f"{name}.count", Shape(shape.dtype, ()), (), literal=number)
        spread = self._record(
            "broadcast", f"{name}.counts", Shape(shape.dtype, shape.dims), (scalar,), sizes=shape.dims, dimensions=()
        )
        return self._record("multiply", name, shape, (part, spread))

    def _record(
        self, opcode: str, name: str, shape: Any, operands: tuple[Instruction, ...], **attributes: Any
    ) -> Instruction:
        record = OPS[opcode].read(attributes) if attributes else None
        return self.add(Instruction(opcode, name, shape, operands, None, record))

    def _attributes(self, each: Instruction, shape: Any) -> dict[str, Any]:
        """The attributes that are extents or places."""
        a, opcode = each.attributes, each.opcode
        if self.devices and opcode in EXCHANGES:
            return self._groups(each)
        if opcode in ("parameter", "iota", "bitcast"):
            return {"shape": shape}
        if opcode == "custom_call":
            layouts = a.operand_layout_constraints
            note = a.backend_config
            if is_opaque(each) and target_of(each) not in CALLBACKS:  # functions of other extents are others
                note += f" of {crc32(function_key(each, self.shared.rowwise).encode()):08x}"
            mine = [
                evolve(given, dims=self.dims(operand))
                for given, operand in zip(layouts or (), each.operands, strict=False)
            ]
            return {
                "shape": shape,
                "operand_layout_constraints": tuple(mine) if layouts else layouts,
                "backend_config": note,
            }
        if opcode == "constant" and isinstance(a.literal, np.ndarray | np.generic) and a.literal.size:
            return {"literal": self._literal(each)}
        if opcode == "broadcast":
            return {"sizes": shape.dims}
        if opcode == "reshape":
            return {"new_sizes": shape.dims}
        if opcode == "dynamic_slice":
            return {"dynamic_slice_sizes": shape.dims}
        if opcode == "gather":
            given: Any = each.operands[0].shape
            pairs = zip(a.slice_sizes, given.dims, self.dims(each.operands[0]), strict=True)
            return {"slice_sizes": tuple(new if size == old else size for size, old, new in pairs)}
        if opcode == "slice":
            source: Any = each.operands[0].shape
            extents = [*zip(source.dims, self.dims(each.operands[0]), strict=True)]
            return {
                key: tuple(at * new // max(old, 1) for at, (old, new) in zip(getattr(a, key), extents, strict=True))
                for key in ("start_indices", "limit_indices")
            }
        return {}

    def _groups(self, each: Instruction) -> dict[str, Any]:
        """The attributes of a collective along axes of which some have fewer devices."""
        axes = self.shared.axes(each)
        if axes is None:
            raise XbuildError("invalid_group", f"%{each.name} does not go along axes of devices")
        every = self.devices
        along = groups_along(each, extent_of(every), [atom.size for atom in every]) or []
        groups = rows_of(along, [self.sizes.get(atom, atom.size) for atom in every])
        found: dict[str, Any] = {"replica_groups": tuple(map(tuple, groups))}
        for count in ("shard_count", "split_count"):
            if getattr(each.attributes, count, None) is not None:
                found[count] = self._size(axes)
        return found

    def _literal(self, each: Instruction) -> Any:
        """The literal of a constant; along smaller extents all its elements are equal."""
        factors = [atom for dim in self.shared.of(each) for atom in flat(dim)]
        array = np.asarray(each.attributes.literal).reshape([atom.size for atom in factors])
        return array[tuple(slice(self.sizes.get(atom, atom.size)) for atom in factors)].reshape(self.dims(each))


def _smaller_layouts(
    shared: SharedExtents, sizes: Mapping[Atom, int], one: Subject, laid: ResolvedLayouts
) -> ResolvedLayouts:
    arrays, axes = entry_arrays(shared, one), flat(shared.devices)
    kept = [*_kept_places(axes, sizes)] if axes else None

    def smaller(layout: DeviceLayout, array: list[Factors]) -> DeviceLayout:
        factors = [flat(dim) for dim in array]
        parts = layout.parts if kept is None else [layout.parts[device] for device in kept]
        sums = layout.sums if kept is None or layout.sums is None else tuple(layout.sums[device] for device in kept)
        return evolve(layout, parts=tuple(_smaller_part(part, factors, sizes) for part in parts), sums=sums)

    inputs, outputs = (
        None if layouts is None else tuple(map(smaller, layouts, side))
        for layouts, side in zip((laid.inputs, laid.outputs), arrays, strict=True)
    )
    return ResolvedLayouts(inputs, outputs, laid.pieces)


def _kept_places(factors: Factors, sizes: Mapping[Atom, int]) -> Iterator[int]:
    """The places of a dimension that the places of the smaller one represent, each the first of equal ones."""
    for at in range(prod(sizes.get(atom, atom.size) for atom in factors)):
        yield _place(factors, sizes, at)


def _smaller_part(part: Slices, array: Sequence[Factors], sizes: Mapping[Atom, int]) -> Slices:
    """The slices of a part, of dimensions with these factors."""
    return tuple(
        _smaller_slice(bounds, factors, sizes)
        if isinstance(bounds, slice)
        else tuple(_smaller_slice(each, factors, sizes) for each in bounds)
        for bounds, factors in zip(part, array, strict=True)
    )


def _smaller_slice(bounds: slice, factors: Factors, sizes: Mapping[Atom, int]) -> slice:
    """A slice of a dimension with these factors, which contains each smaller factor in full or one place of it."""
    if bounds.stop <= bounds.start or sizes.keys().isdisjoint(factors):
        return bounds
    extents = [atom.size for atom in factors]
    ends = [np.unravel_index(place, extents) for place in (bounds.start, bounds.stop - 1)]
    made: list[list[int]] = [[], []]
    for atom, first, last in zip(factors, *ends, strict=True):
        size = sizes.get(atom, atom.size)
        if (first, last) == (0, atom.size - 1):
            pair = 0, size - 1
        elif size == atom.size:
            pair = int(first), int(last)
        elif first == last:
            pair = (int(first) * size // atom.size,) * 2
        else:
            raise XbuildError("invalid_attribute", f"a part from {bounds.start} to {bounds.stop} has part of an axis")
        for side, place in zip(made, pair, strict=True):
            side.append(place)
    new = [sizes.get(atom, atom.size) for atom in factors]
    start, stop = (int(np.ravel_multi_index(side, new)) for side in made)
    return slice(start, stop + 1)
