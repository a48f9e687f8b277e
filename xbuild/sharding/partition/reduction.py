"""Partitions a reduce: what each device reduces, how results are combined, and which computations allow it.

Sections:

    Reduce: partial results are combined, or gathered and reduced once more
    Reducers: which computations are associative and commutative, as their structure shows
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, Shape, XbuildError
from shape_inference.dims import limits

from ... import ops
from ...core.builder import Builder, Value
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...properties.elementwise import NotElementwise, on_arrays
from ...properties.order import needed_by
from ..resharding_ops import constant, dims_of, spread
from ..sharding import Axis, merge_parts
from .frame import Frame
from .handler import COMBINERS, Combiner, Handler, Operands, Split, combiner_of, handles, neutral_for_combining
from .reasons import Gathered

# ----------------------------------------------------------------------------
# Reduce: partial results are combined, or gathered and reduced once more


@handles("reduce")
class Reduce(Handler):
    """Each device reduces its part, with padding replaced by the neutral element.

    Partial results of one array by one op are combined in pairs. Those of several arrays, or by several ops, are
    gathered on all devices and reduced again, in order.
    """

    def combiner(self, instruction: Instruction) -> Combiner:
        return instruction.attributes.to_apply if _neutral_element(instruction) is not None else None

    def can_gather(self, instruction: Instruction, factor: int) -> bool:
        """Whether parts may be reduced separately along a factor: any factor if the order is free, else the first."""
        folding = classify_folding(instruction)
        first = min(instruction.attributes.dimensions, default=0)
        return folding.is_associative and (folding.is_commutative or factor == first)

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        if not split.reduced_axes:
            return super().record(frame, split, operands)
        if _neutral_element(split.instruction) is None:
            return super().record(frame, split, _fill_with_initial_values(frame, split, operands))
        return self._record_partial(frame, split, operands)

    def _record_partial(self, frame: Frame, split: Split, operands: Operands) -> Value:
        """The partial result of a device; the initial value counts on the first device along the reduced axes.

        If that value is not a constant, the reduction begins with the neutral element, as XLA assumes, and the initial
        value is combined afterwards.
        """
        instruction, neutral = split.instruction, _neutral_element(split.instruction)
        part = split.fill_padding(frame, 0, operands[0], split.padded_reductions(0), neutral)
        initial = _count_once(frame, operands[1], neutral, split.reduced_axes)
        if initial.instruction.opcode == "constant":
            return super().record(frame, split, [part, initial])
        value = super().record(frame, split, [part, constant(frame.builder, neutral)])
        opcode = combiner_of(instruction.attributes.to_apply)
        return frame.record(str(opcode), [value, spread(initial, dims_of(value))], None, {})

    def gather(self, frame: Frame, split: Split, values: list[Value]) -> list[Value]:
        """The results of all devices in a new dimension, reduced along it."""
        instruction, factors = split.instruction, split.options.rule.factors
        axes = merge_parts(a for n, each in enumerate(split.assignment) if factors[n].kind == "reduction" for a in each)
        reason = Gathered(instruction, self.verbs, split.options.mesh, split.options.rule, split.assignment)
        rows = (ops.reshape(value, new_sizes=(1, *dims_of(value))) for value in values)
        gathered = tuple(frame.gather_parts(row, 0, axes, instruction, reason) for row in rows)
        initial = instruction.operands[len(instruction.operands) // 2 :]
        reduced = ops.reduce(
            gathered, tuple(constant(frame.builder, each.attributes.literal) for each in initial),
            to_apply=instruction.attributes.to_apply, dimensions=(0,),
        )  # fmt: skip
        if isinstance(reduced.shape, Shape):
            return [reduced]
        return [ops.get_tuple_element(reduced, index=number) for number in range(len(values))]


def _neutral_element(instruction: Instruction) -> Any:
    """The neutral element of a reduction of one array by one op; None if there is none."""
    if len(instruction.operands) != 2:
        return None
    opcode, shape = combiner_of(instruction.attributes.to_apply), instruction.operands[0].shape
    assert isinstance(shape, Shape)
    is_same = isinstance(instruction.shape, Shape) and instruction.shape.dtype is shape.dtype
    return neutral_for_combining(opcode, shape.dtype) if opcode is not None and is_same else None


def _count_once(frame: Frame, value: Value, neutral: Any, axes: tuple[Axis, ...]) -> Value:
    """An initial value on the first device along the axes, the neutral element on the others."""
    initial = value.instruction
    if initial.opcode == "constant" and np.array_equal(initial.attributes.literal, neutral):
        return value
    is_first = frame.recorder.is_first(axes)
    return ops.select(is_first, value, constant(frame.builder, neutral))


def _fill_with_initial_values(frame: Frame, split: Split, operands: Operands) -> Operands:
    """The operands with their initial values as padding."""
    count = len(operands) // 2
    filled = []
    for number, value in enumerate(operands[:count]):
        literal = np.asarray(split.instruction.operands[count + number].attributes.literal)
        filled.append(split.fill_padding(frame, number, value, split.padded_reductions(number), literal))
    return [*filled, *operands[count:]]


# ----------------------------------------------------------------------------
# Reducers: which computations are associative and commutative, as their structure shows

Numbers = tuple[Any, ...]
"""One element of each of the arrays that are reduced."""


@frozen
class Folding:
    """Whether a reduction's computation is associative, so that parts may be reduced separately, and commutative."""

    is_associative: bool
    is_commutative: bool


NONE = Folding(False, False)


def classify_folding(instruction: Instruction) -> Folding:
    """Whether the parts of a reduce may be reduced separately, and in any order; its initial values must be constants.

    XLA assumes that the computation of a reduce is associative. Here its structure has to show it: each result is a
    sum, a product, a maximum, a minimum or a bitwise op of its two elements or of their absolute values, with
    conversions in between; or results are selected by comparisons only, as in argmax, and all orders of three elements
    agree. Any other computation has an unknown order, and the reduction is not split. An initial value may count once
    for each part, and serve as padding, if it combines with itself to itself and commutes with every element.
    """
    count = len(instruction.operands) // 2
    initial = instruction.operands[count:]
    shapes = [each.shape for each in instruction.operands[:count]]
    if any(each.opcode != "constant" for each in initial) or any(not isinstance(each, Shape) for each in shapes):
        return NONE
    dtypes = tuple(each.dtype for each in shapes if isinstance(each, Shape))
    literals = tuple(np.asarray(each.attributes.literal) for each in initial)
    results = tuple(each.shape.dtype for each in instruction.attributes.to_apply.parameters)
    if results != dtypes * 2 or any(a.dtype != b.dtype for a, b in zip(literals, dtypes, strict=True)):
        return NONE
    return _classify_once(instruction.attributes.to_apply, dtypes, tuple(each.tobytes() for each in literals))


@functools.lru_cache(maxsize=256)
def _classify_once(computation: Computation, dtypes: tuple[PrimitiveType, ...], inits: tuple[bytes, ...]) -> Folding:
    init = tuple(np.frombuffer(each, dtype.dtype)[0] for each, dtype in zip(inits, dtypes, strict=True))
    try:
        reducer = Reducer.from_computation(computation, dtypes)
        if not reducer.is_idempotent_on(init):
            return Folding(False, reducer.is_symmetric)
        found = [reducer.classify(group, init) for group in reducer.find_groups()]
    except (NotElementwise, XbuildError):
        return NONE
    is_associative = all(each.is_associative for each in found)
    return Folding(is_associative, reducer.is_symmetric or all(each.is_commutative for each in found))


@frozen(eq=False)
class Reducer:
    """A computation that combines two rows of elements, with calls and tuples expanded.

    `first` and `second` are the parameters of each row, `roots` the result for each element of a row.
    """

    dtypes: tuple[PrimitiveType, ...]
    first: tuple[Instruction, ...]
    second: tuple[Instruction, ...]
    roots: tuple[Instruction, ...]
    computation: Computation

    @staticmethod
    def from_computation(computation: Computation, dtypes: tuple[PrimitiveType, ...]) -> Reducer:
        """The reducer of a computation; raises NotElementwise if an op is not elementwise."""
        builder, count = Builder("reducer"), len(dtypes)
        inputs = [ops.parameter(builder, number=n, shape=each[1]) for n, each in enumerate(dtypes * 2)]
        values = _as_row(on_arrays(builder, computation, inputs, 1))
        root = ops.tuple_(tuple(values), builder=builder)
        parameters = tuple(each.instruction for each in inputs)
        roots = tuple(each.instruction for each in values)
        return Reducer(dtypes, parameters[:count], parameters[count:], roots, builder.build(root))

    @property
    def _places(self) -> Mapping[Instruction, int]:
        """The position of each parameter in its row."""
        return {each: n for row in (self.first, self.second) for n, each in enumerate(row)}

    def find_groups(self) -> list[list[int]]:
        """The positions of a row, grouped so that results depend only on elements of their own group."""
        graph: Any = nx.Graph()
        graph.add_nodes_from(range(len(self.dtypes)))
        for place, root in enumerate(self.roots):
            graph.add_edges_from((place, self._places[each]) for each in needed_by([root]) if each in self._places)
        return [sorted(each) for each in nx.connected_components(graph)]

    def classify(self, group: Sequence[int], init: Numbers) -> Folding:
        """The folding of one group, whose initial values combine to themselves."""
        if len(group) == 1 and self._is_one_op(group[0]):
            return Folding(True, True)
        return self._classify_by_orders(group, init)

    # A single op of both elements.

    def _is_one_op(self, place: int) -> bool:
        """Whether a result is one associative op of both elements, or of their absolute values, up to conversions."""
        root = _strip_conversions(self.roots[place], self.dtypes[place])
        if root.opcode not in COMBINERS:
            return False
        both = [_strip_conversions(each, self.dtypes[place]) for each in root.operands]
        if all(each.opcode == "abs" for each in both) and root.opcode in self._ops_of_absolute_values(place):
            both = [_strip_conversions(each.operands[0], self.dtypes[place]) for each in both]
        return {*both} == {self.first[place], self.second[place]}

    def _ops_of_absolute_values(self, place: int) -> tuple[str, ...]:
        """The ops of absolute values whose result is not negative: sums and products of integers may wrap."""
        kind = self.dtypes[place].kind
        return ("maximum", "minimum", "add", "multiply") if kind == "float" else ("maximum", "minimum")

    # The two rows swapped.

    @property
    def is_symmetric(self) -> bool:
        """Whether the results are the same expressions with the rows swapped."""
        swapped = dict(zip((*self.first, *self.second), (*self.second, *self.first), strict=True))
        known: dict[Any, int] = {}
        as_is, exchanged = (_number_expressions(self.computation, names, known) for names in ({}, swapped))
        return all(as_is[root] == exchanged[root] for root in self.roots)

    # Comparisons only: all orders of three rows.

    def _classify_by_orders(self, group: Sequence[int], init: Numbers) -> Folding:
        """The folding of elements that comparisons select, by trying all orders of three of each and the constants.

        Such a computation selects the same rows whenever the order of their elements is the same, so the orders are all
        cases. Elements that are only passed on may all be distinct.
        """
        sorts = self._find_compared(group)
        if sorts is None:
            return NONE
        values = self._choose_values(group, sorts, init)
        sizes = [1 if each is None else len(each) ** 3 for each in values.values()]
        if (
            any(each is not None and not len(each) for each in values.values())
            or np.prod(sizes, dtype=float) > MOST_ORDERS
        ):
            return NONE
        rows = _combine_values(values, init)
        a, b, c = (
            [self._fill_column(place, rows.get(place), n) for place in range(len(self.dtypes))] for n in range(3)
        )
        start = [np.full(len(x), number, x.dtype) for x, number in zip(a, init, strict=True)]
        tried = self._apply_in_orders((a, b, c, start))
        left, right, plain, swapped, with_init, init_with = tried

        def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
            return all(_are_same(one[place], other[place]) for place in group)

        return Folding(same(left, right) and same(with_init, init_with), same(plain, swapped))

    def _fill_column(self, place: int, columns: Any, row: int) -> Any:
        return np.asarray([0] if columns is None else columns[row]).astype(self.dtypes[place].dtype)

    def _find_compared(self, group: Sequence[int]) -> dict[int, ComparedElements] | None:
        """For each element that is compared: the elements and constants it is compared with; None for other uses."""
        needed = needed_by(self.roots[place] for place in group)
        holds: dict[Instruction, set[Any]] = {}
        graph: Any = nx.Graph()
        compared: set[Any] = set()
        for each in self.computation.instructions:
            if each not in needed:
                continue
            operands = [holds[operand] for operand in each.operands] if each not in self._places else []
            is_decision = isinstance(each.shape, Shape) and each.shape.dtype.kind == "pred"
            if each in self._places:
                holds[each] = {self._places[each]}
            elif each.opcode == "constant":
                holds[each] = {_Constant(np.asarray(each.attributes.literal).reshape(-1)[0])}
            elif each.opcode == "broadcast":
                holds[each] = operands[0]
            elif each.opcode == "compare" and str(each.attributes.type) != "TOTALORDER":
                holds[each] = set()
                compared |= _connect(graph, *operands)
            elif each.opcode in ("maximum", "minimum") and not is_decision:
                holds[each] = operands[0] | operands[1]
                compared |= _connect(graph, *operands)
            elif each.opcode == "select":
                holds[each] = operands[1] | operands[2]
                _connect(graph, *operands[1:])
            elif is_decision and each.opcode in (*COMBINERS, "not"):
                holds[each] = set().union(*operands)
                compared |= _connect(graph, *operands)
            else:
                return None
        sorts = {}
        for connected in nx.connected_components(graph):
            places = frozenset(each for each in connected if isinstance(each, int))
            if connected & compared or len(connected) > 1:
                constants = tuple(each.value for each in connected if isinstance(each, _Constant))
                sorts.update(dict.fromkeys(places, ComparedElements(places, constants)))
        return sorts

    def _choose_values(
        self, group: Sequence[int], sorts: Mapping[int, ComparedElements], init: Numbers
    ) -> dict[int, Any]:
        """The values to try for each element; None if it is never compared."""
        values: dict[int, Any] = {}
        for place in group:
            sort = sorts.get(place)
            constants = () if sort is None else (*sort.constants, *(init[each] for each in sort.places))
            dtype = self.dtypes[place]
            is_passed_on = sort is None and dtype.kind != "pred"
            count = 3 * len(sort.places if sort else "")
            values[place] = None if is_passed_on else _values_between(dtype, constants, count)
        return values

    # Evaluations.

    def is_idempotent_on(self, init: Numbers) -> bool:
        """Whether two rows of initial values combine to the same row."""
        row = [np.asarray(each).reshape(1) for each in init]
        found = self._evaluate(1, [row, row], lambda apply, rows: [apply(*rows)])[0]
        return all(_are_same(a, b) for a, b in zip(found, row, strict=True))

    def _apply_in_orders(self, rows: Sequence[Any]) -> list[list[Any]]:
        def calls(apply: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
            a, b, c, start = values
            ab, ba = apply(a, b), apply(b, a)
            return [apply(ab, c), apply(a, apply(b, c)), ab, ba, apply(start, a), apply(a, start)]

        count = max(len(each) for row in rows for each in row)
        return self._evaluate(count, [[np.resize(each, count) for each in row] for row in rows], calls)

    def _evaluate(self, count: int, rows: Any, calls: Callable[..., list[Any]]) -> list[list[Any]]:
        """The rows that several applications of the computation return."""
        from ...running import evaluate

        builder, numbers = Builder("applied"), itertools.count()
        inputs = [
            [ops.parameter(builder, number=next(numbers), shape=dtype[count]) for dtype in self.dtypes] for _ in rows
        ]

        def apply(one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
            return _as_row(on_arrays(builder, self.computation, (*one, *other), count))

        results = calls(apply, inputs)
        root = ops.tuple_(tuple(each for row in results for each in row), builder=builder)
        flat, width = evaluate(builder.build(root), *itertools.chain(*rows)), len(self.dtypes)
        arrays = [np.asarray(each) for each in (flat if isinstance(flat, tuple) else (flat,))]
        return [arrays[n : n + width] for n in range(0, len(arrays), width)]


@frozen
class ComparedElements:
    """Positions of a row whose elements are compared with each other, and with these constants."""

    places: frozenset[int]
    constants: tuple[Any, ...]


@frozen(eq=False)
class _Constant:
    value: Any


MOST_ORDERS = 200_000
"""The largest number of orders that are tried; a computation with more has an unknown order."""


def _as_row(value: Any) -> list[Value]:
    return [value] if isinstance(value, Value) else list(value)


def _connect(graph: Any, *several: Iterable[Any]) -> set[Any]:
    """Connect elements that are compared with each other, or selected among; the set of them."""
    together = [*set().union(*several)]
    graph.add_nodes_from(together)
    nx.add_path(graph, together)
    return {*together}


def _strip_conversions(instruction: Instruction, dtype: PrimitiveType) -> Instruction:
    """An instruction without conversions of its result, + 0 and * 1."""
    while True:
        operand = _strip_one_conversion(instruction, dtype)
        if operand is None:
            return instruction
        instruction = operand


def _strip_one_conversion(instruction: Instruction, dtype: PrimitiveType) -> Instruction | None:
    if instruction.opcode == "convert":
        (operand,) = instruction.operands
        kinds = {_kind_of(each.shape.dtype) for each in (instruction, operand)}  # type: ignore[union-attr]
        return operand if kinds == {_kind_of(dtype)} else None
    number = {"add": 0, "multiply": 1}.get(instruction.opcode)
    if number is not None:
        for operand, other in (instruction.operands, instruction.operands[::-1]):
            if _is_number(other, number):
                return operand
    return None


def _kind_of(dtype: PrimitiveType) -> str:
    """Types between which conversions keep orders and sums, up to rounding of floats and wrapping of integers."""
    return "integer" if dtype.is_integer else dtype.kind


def _is_number(instruction: Instruction, number: int) -> bool:
    while instruction.opcode in ("broadcast", "convert"):
        (instruction,) = instruction.operands
    return instruction.opcode == "constant" and bool(np.all(np.asarray(instruction.attributes.literal) == number))


def _number_expressions(
    computation: Computation, names: Mapping[Instruction, Instruction], known: dict[Any, int]
) -> dict[Instruction, int]:
    """A number for each expression, equal for equal ones, after parameters are renamed."""
    found: dict[Instruction, int] = {}
    for each in computation.instructions:
        operands = [found[operand] for operand in each.operands]
        if each.opcode in OPS and OPS[each.opcode].properties.order != "fixed":
            operands.sort()
        if each.opcode == "parameter":
            key: Any = "parameter", names.get(each, each)
        elif each.opcode == "constant":
            literal = np.asarray(each.attributes.literal)
            key = "constant", str(each.shape), literal.tobytes()
        else:
            key = each.opcode, str(each.shape), str(each.attributes), *operands
        found[each] = known.setdefault(key, len(known))
    return found


def _values_between(dtype: PrimitiveType, constants: Sequence[Any], count: int) -> Any:
    """The constants, `count` values in each gap between them, and NaN; nothing if the type has too few values."""
    if dtype.kind == "pred":
        return np.array([False, True])
    if dtype.kind == "complex":
        return np.zeros(0, dtype.dtype)
    fixed = np.unique(np.asarray([*constants], dtype.dtype).astype(np.float64 if dtype.is_float else object))
    ends = sorted({*(each for each in fixed.tolist() if each == each)})
    found = [*ends]
    for low, high in itertools.pairwise([None, *ends, None]):
        some = [*_values_in_gap(dtype, low, high, count)]
        if any(not (low is None or each > low) or not (high is None or each < high) for each in some):
            return np.zeros(0, dtype.dtype)
        found += some
    return np.array([*sorted(found), *([np.nan] if dtype.is_float else [])]).astype(dtype.dtype)


def _values_in_gap(dtype: PrimitiveType, low: Any, high: Any, count: int) -> Iterator[Any]:
    """`count` values of a type between two others, or beyond one; fewer if an integer type has no more."""
    if dtype.is_integer:
        least, most = limits(dtype)
        first = least if low is None else low + 1
        last = most if high is None else high - 1
        if low is None and high is not None:
            yield from range(max(first, last - count + 1), last + 1)
        else:
            yield from range(first, min(last, first + count - 1) + 1)
        return
    if low == np.inf or high == -np.inf:
        return
    start = -np.inf if low is None else low
    end = np.inf if high is None else high
    if not np.isfinite(start) and not np.isfinite(end):
        start, end = 0.0, count + 1.0
    elif not np.isfinite(start):
        start = end - (abs(end) + 1.0) * (count + 1)
    elif not np.isfinite(end):
        end = start + (abs(start) + 1.0) * (count + 1)
    rounded = [
        float(np.asarray(start + (end - start) * n / (count + 1)).astype(dtype.dtype)) for n in range(1, count + 1)
    ]
    yield from rounded if len({*rounded}) == count and all(map(np.isfinite, rounded)) else [np.nan]


def _combine_values(values: Mapping[int, Any], init: Numbers) -> dict[int, list[Any]]:
    """Three columns for each element, whose rows are all combinations of values; three constants if it has none."""
    compared = [(place, row) for place, each in values.items() if each is not None for row in range(3)]
    counts = [len(values[place]) for place, _ in compared]
    total = int(np.prod(counts, dtype=np.int64))
    at = np.unravel_index(np.arange(total), counts) if counts else ()
    found: dict[int, list[Any]] = {}
    for place, each in values.items():
        others = [number for number in (1, 2, 3, 4) if each is None and number != init[place]]
        found[place] = [np.full(total, number) for number in others[:3]] if each is None else [None] * 3
    for (place, row), column in zip(compared, at, strict=True):
        found[place][row] = values[place][column]
    return found


def _are_same(one: Any, other: Any) -> bool:
    """Whether arrays have equal elements, counting NaN as equal to NaN."""
    wide = [np.asarray(each) for each in (one, other)]
    if wide[0].dtype.kind not in "biu":
        wide = [each.astype(np.complex128) for each in wide]
    return bool(np.all((wide[0] == wide[1]) | ((wide[0] != wide[0]) & (wide[1] != wide[1]))))
