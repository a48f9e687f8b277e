"""Strict rules: for each op, what is clamped, dropped, out of range, undefined, or NaN without cause.

Sections:

    The table, and what a rule is given and yields
    NaN and infinity that no contributing element has
    Dynamic sizes
    Comparators of sort
    Indices: clamped starts, dropped updates, broken promises
    Arithmetic: division by zero, overflow, conversions out of range
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import Dims, PrimitiveType, RuleTable, f4e2m1fn, f6e2m3fn, f6e3m2fn, pred, primitive_type, u8
from shape_inference.dims import limits
from shape_inference.ops.elementwise import BINARY, UNARY
from shape_inference.trees import flatten
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.properties.effects import branch_number, takes_pred

from ..kernels.comparators import keys_of
from ..kernels.folds import fold
from ..kernels.indexing import batch_numbers, vectors
from ..kernels.integers import as_unsigned
from ..kernels.lifting import widened
from ..kernels.sliding import fold_windows
from ..ops import conversion as lowered
from ..rules import compute
from ..rules.region import AppliedComputation

# ----------------------------------------------------------------------------
# The table, and what a rule is given and yields.

strict = RuleTable("strict")
"""Maps an opcode to a function that yields the Spotted of an Evaluation; ops without a rule have no findings."""


@frozen
class Evaluation:
    """One evaluation of an instruction: its operands as the op's rules take them, its result and its device."""

    instruction: Instruction
    operands: tuple[Any, ...]
    result: Any
    device: Any = None

    @property
    def attributes(self) -> Any:
        return self.instruction.attributes


@frozen
class Spotted:
    """A finding of a rule at one element: its kind, its description and the number of further elements.

    `part` distinguishes findings of one kind at one instruction: the dimension of an index or the element of a tuple.
    """

    kind: str
    what: str
    index: tuple[int, ...] | None = None
    values: tuple[tuple[str, Any], ...] = ()
    further: int = 0
    part: int = 0


def first(mask: Array) -> tuple[tuple[int, ...], int] | None:
    """The index of the first true element of a mask and the number of further ones; None if no element is true."""
    count = int(np.count_nonzero(mask))
    if not count:
        return None
    index = np.unravel_index(int(np.argmax(mask)), np.shape(mask))
    return tuple(int(place) for place in index), count - 1


def at_elements(it: Evaluation, kind: str, mask: Array, what: str) -> Iterator[Spotted]:
    """A finding at the first true element of a mask, with the operands' values there; `what` may contain {result}."""
    place = first(mask)
    if place is None:
        return
    index, further = place
    values = tuple((name, element(value, index, mask)) for name, value in named(it) if value is not None)
    yield Spotted(kind, what.format(result=element(it.result, index, mask)), index, values, further)


def element(value: Any, index: tuple[int, ...], mask: Array) -> Any:
    """The element of a value at an index of the mask; a scalar is broadcast to the mask."""
    return np.broadcast_to(value, np.shape(mask))[index]


def named(it: Evaluation) -> Iterator[tuple[str, Any]]:
    """The operands with the names that the op declares; operands of a list are numbered."""
    from xbuild.core.op import OPS

    for name, operand in zip(OPS[it.instruction.opcode].operands, it.operands, strict=True):
        if isinstance(operand, tuple):
            yield from ((f"{name}[{n}]", part) for n, part in enumerate(operand))
        else:
            yield name, operand


# ----------------------------------------------------------------------------
# NaN and infinity: in a result element none of whose contributors has one.

Test: TypeAlias = Callable[[Array], Array]
Touched: TypeAlias = Callable[[Evaluation, Test], Any]
"""A function that returns the mask of result elements that have a contributor for which the test holds."""


def is_nan(value: Any) -> Array:
    return _tested(np.isnan, value)


def is_infinite(value: Any) -> Array:
    return _tested(np.isinf, value)


def _tested(test: np.ufunc, value: Any) -> Array:
    array = widened(np.asarray(value))
    return np.asarray(test(array)) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)


BIRTHS: tuple[tuple[str, Test], ...] = (("nan_born", is_nan), ("inf_born", is_infinite))


def _is_finite(value: Any) -> bool:
    array = widened(np.asarray(value))
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def elementwise(it: Evaluation) -> Iterator[Spotted]:
    """Find NaN result elements without a NaN operand at the same index, and likewise infinite ones."""
    if _is_finite(it.result):
        return
    for kind, test in BIRTHS:
        mask = test(it.result)
        for _, operand in named(it):
            mask = mask & ~test(operand)
        yield from at_elements(it, kind, np.broadcast_to(mask, np.shape(it.result)), "gives {result}")


def born_unless(touched: Touched, shown: Callable[[Evaluation, tuple[int, ...]], Any] | None = None) -> Any:
    """The rule of an op with many contributors to an element; `touched` marks those with a NaN or inf contributor."""

    def rule(it: Evaluation) -> Iterator[Spotted]:
        for part, result in enumerate(_arrays(it.result)):
            if not _is_finite(result):
                yield from _births(it, part, result, touched, shown or _all_operands)

    return rule


def _arrays(value: Any) -> list[Any]:
    """The leaves of a value, without tokens."""
    return [leaf for leaf in flatten(value) if leaf is not None]


def _births(it: Evaluation, part: int, result: Any, touched: Touched, shown: Any) -> Iterator[Spotted]:
    for kind, test in BIRTHS:
        mask = test(result)
        if mask.any() and (place := first(mask & ~np.asarray(touched(it, test)))):
            index, further = place
            yield Spotted(kind, f"gives {np.asarray(result)[index]}", index, tuple(shown(it, index)), further, part)


def _all_operands(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    return ((name, operand) for name, operand in named(it) if isinstance(operand, np.ndarray | np.generic))


@cache
def _any() -> AppliedComputation:
    """The region of logical or, with which marks are folded."""
    from shape_inference.types import pred
    from xbuild.core.builder import Builder
    from xbuild.ops.elementwise import maximum
    from xbuild.ops.leaves import parameter

    builder = Builder("any")
    return AppliedComputation.of(
        builder.build(maximum(*(parameter(builder, number=n, shape=pred[()]) for n in (0, 1))))
    )


def _marks(test: Test, value: Any) -> Array:
    return test(value).astype(np.float32)


def _bilinear(it: Evaluation, test: Test) -> Any:
    """The op applied to the marks of one operand and ones for the other: result elements with a marked contributor."""
    rule, attributes = (
        compute[it.instruction.opcode],
        it.instruction.attribute_values() | {"preferred_element_type": None},
    )
    lhs, rhs = (_marks(test, operand) for operand in it.operands[:2])
    rest = it.operands[2:]
    return rule(lhs, np.ones_like(rhs), *rest, **attributes) + rule(np.ones_like(lhs), rhs, *rest, **attributes) > 0


def _contracted(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """The row of lhs and the column of rhs whose inner product is an element of a dot."""
    a, (lhs, rhs) = it.attributes, it.operands
    batch = len(a.lhs_batch_dims)
    lhs_free = lhs.ndim - batch - len(a.lhs_contracting_dims)
    yield "lhs", _line(lhs, a.lhs_batch_dims, a.lhs_contracting_dims, index[: batch + lhs_free])
    yield "rhs", _line(rhs, a.rhs_batch_dims, a.rhs_contracting_dims, index[:batch] + index[batch + lhs_free :])


def _line(array: Array, batch: Any, contracted: Any, index: tuple[int, ...]) -> Array:
    free = [dim for dim in range(array.ndim) if dim not in (*batch, *contracted)]
    place: dict[int, Any] = dict(zip((*batch, *free), index, strict=True))
    return np.asarray(array[tuple(place.get(dim, slice(None)) for dim in range(array.ndim))])


def _is_known(it: Evaluation, role: str = "to_apply") -> bool:
    """Whether the op folds with one known op; the instructions of any other region are checked inside the region."""
    return AppliedComputation.of(getattr(it.attributes, role)).opcode is not None


def _folded(it: Evaluation, test: Test) -> Any:
    (operand,), (init,) = it.operands
    if not _is_known(it):
        return True
    return fold(_any(), (test(operand),), (test(init),), tuple(sorted(it.attributes.dimensions)))[0]


def _reduced(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    (operand,), (init,) = it.operands
    result_index = iter(index)
    dims = range(np.ndim(operand))
    place = tuple(slice(None) if dim in it.attributes.dimensions else next(result_index) for dim in dims)
    yield from (("operand", np.asarray(operand)[place]), ("init_value", init))


def _slid(it: Evaluation, test: Test) -> Any:
    (operand,), (init,) = it.operands
    return not _is_known(it) or fold_windows(_any(), (test(operand),), (test(init),), it.attributes.window)[0]


def _scattered(it: Evaluation, test: Test) -> Any:
    (operand,), indices, (update,) = it.operands
    attributes = it.instruction.attribute_values() | {"to_apply": _any()}
    return not _is_known(it) or compute["scatter"]((test(operand),), indices, (test(update),), **attributes)


def _selected(it: Evaluation, test: Test) -> Any:
    if not _is_known(it, "scatter"):
        return True
    operand, source, init = it.operands
    attributes = {
        "select": AppliedComputation.of(it.attributes.select),
        "scatter": _any(),
        "window": it.attributes.window,
    }
    marks = [test(value).astype(operand.dtype) for value in (source, init)]
    return compute["select_and_scatter"](operand, *marks, **attributes) != 0


def _within(axes: Callable[[Evaluation, Array], Any]) -> Touched:
    """The test of an op whose result elements depend on all operand elements along `axes`."""

    def touched(it: Evaluation, test: Test) -> Any:
        return np.any([np.any(test(operand), axes(it, operand), keepdims=True) for operand in it.operands], 0)

    return touched


def _anywhere(it: Evaluation, test: Test) -> bool:
    return any(test(operand).any() for operand in _arrays(it.operands))


def if_one_array(rule: Any) -> Any:
    """The rule, applied only if the op folds one array; a region that folds several arrays is checked inside."""

    def checked(it: Evaluation) -> Iterator[Spotted]:
        if len(it.operands[0]) == 1:
            yield from rule(it)

    return checked


_OF_INTEGERS_TOO = frozenset({
    "divide", "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical",
})  # fmt: skip

for _opcode in sorted((UNARY.keys() | BINARY.keys()) - _OF_INTEGERS_TOO):
    strict.enter(_opcode, elementwise)


@strict
def map(it: Evaluation) -> Iterator[Spotted]:
    if _is_known(it):
        yield from elementwise(it)


scatter_births = if_one_array(born_unless(_scattered))

for _opcode, _rule in {
    "dot": born_unless(_bilinear, _contracted),
    "ragged_dot": born_unless(_bilinear),
    "scaled_dot": born_unless(_anywhere),
    "convolution": born_unless(_bilinear),
    "reduce": if_one_array(born_unless(_folded, _reduced)),
    "reduce_window": if_one_array(born_unless(_slid)),
    "select_and_scatter": born_unless(_selected),
    "cholesky": born_unless(_within(lambda it, each: (-2, -1))),
    "triangular_solve": born_unless(_within(lambda it, each: (-2, -1))),
    "fft": born_unless(_within(lambda it, each: tuple(range(-len(it.attributes.fft_length), 0)))),
    "batch_norm_training": born_unless(_anywhere),
    "batch_norm_inference": born_unless(_anywhere),
    "batch_norm_grad": born_unless(_anywhere),
    "iota": born_unless(_anywhere),
    "rng": born_unless(_anywhere),
    "custom_call": born_unless(_anywhere),
}.items():
    strict.enter(_opcode, _rule)


def births_in_collective(it: Evaluation) -> Iterator[Spotted]:
    """Find NaN and infinity that arise in a reducing collective, whose contributors are the operands of all members."""
    results = it.result if isinstance(it.result, tuple) else (it.result,)
    columns: Sequence[Any] = list(zip(*it.operands, strict=True))
    for part, (result, column) in enumerate(zip(results, columns, strict=True)):
        for kind, test in BIRTHS:
            mask = test(result)
            for operand in column:
                mask = mask & ~test(operand)
            if place := first(mask):
                index, further = place
                values = tuple((f"member {n}", np.asarray(operand)[index]) for n, operand in enumerate(column))
                yield Spotted(kind, f"gives {np.asarray(result)[index]}", index, values, further, part)


OF_FLOATS = frozenset(strict.values())
"""The rules of this section, which find nothing in results without floats; the rules below are not among them."""

strict.enter("all_reduce", births_in_collective)
strict.enter("reduce_scatter", births_in_collective)


# ----------------------------------------------------------------------------
# Dynamic sizes: sizes that are clamped, and sizes beyond the elements that the operand holds.


@strict
def set_dimension_size(it: Evaluation) -> Iterator[Spotted]:
    operand, size = it.operands
    dim = it.attributes.dimension
    bound = it.instruction.shape.dims[dim]  # type: ignore[union-attr]
    yield from _clamped_size("size", int(size), bound, dim)
    yield from _unset_elements(np.shape(it.result)[dim] - np.shape(operand)[dim], f"of dimension {dim}", "size", size)


@strict
def dynamic_reshape(it: Evaluation) -> Iterator[Spotted]:
    operand, sizes = it.operands
    for dim, size in enumerate(sizes):
        if it.attributes.dims_are_dynamic[dim]:
            yield from _clamped_size(f"dim_sizes[{dim}]", int(size), it.attributes.new_size_bounds[dim], dim)
    lacking = prod(np.shape(it.result)) - np.size(operand)
    yield from _unset_elements(lacking, "at the end", "operand elements", np.size(operand))


def _clamped_size(name: str, size: int, bound: int, dim: int) -> Iterator[Spotted]:
    if not 0 <= size <= bound:
        what = f"becomes {max(0, min(size, bound))}: the valid sizes of dimension {dim} are 0..{bound}"
        yield Spotted("index_clamped", what, None, ((name, size),), part=dim)


def _unset_elements(lacking: int, where: str, name: str, value: object) -> Iterator[Spotted]:
    if lacking > 0:
        yield Spotted("undefined_read", f"{lacking} {where} were never set and are 0 here", None, ((name, value),))


# ----------------------------------------------------------------------------
# Comparators of sort: the instructions that compute the keys are checked.


@strict
def sort(it: Evaluation) -> Iterator[Spotted]:
    """Run a comparator with computed keys once on each element and itself, so that its instructions are checked."""
    keys = keys_of(it.attributes.to_apply)
    if keys is not None and not all(key.is_element for key in keys):
        region: Any = AppliedComputation.of(it.attributes.to_apply, strict=True).on(it.device)
        if region.lifted is not None:
            region.lifted(*(operand for operand in it.operands[0] for _ in (0, 1)))
    yield from ()


# ----------------------------------------------------------------------------
# Indices: clamped starts, dropped updates, and indices that are not sorted or unique as declared.


@strict
def dynamic_slice(it: Evaluation) -> Iterator[Spotted]:
    operand, starts = it.operands
    yield from _clamped_starts(starts, np.shape(operand), it.attributes.dynamic_slice_sizes)


@strict
def dynamic_update_slice(it: Evaluation) -> Iterator[Spotted]:
    operand, update, starts = it.operands
    yield from _clamped_starts(starts, np.shape(operand), np.shape(update))


def _clamped_starts(starts: Sequence[Any], extents: Dims, sizes: Dims) -> Iterator[Spotted]:
    """Find clamped starts, with one finding for each dimension."""
    numbers = starts[0] if len(starts) == 1 and np.ndim(starts[0]) else starts
    for dim, (start, extent, size) in enumerate(zip(numbers, extents, sizes, strict=True)):
        moved = max(0, min(int(start), extent - size))
        if moved != int(start):
            what = f"becomes {moved}: the valid starts in dimension {dim} are 0..{extent - size}"
            yield Spotted("index_clamped", what, None, ((f"start_indices[{dim}]", start),), part=dim)


@strict
def conditional(it: Evaluation) -> Iterator[Spotted]:
    index, *_ = it.operands
    taken = branch_number(it.instruction, index)
    if not takes_pred(it.instruction) and int(index) != taken:
        what = f"takes branch {taken}: the branches are 0..{taken}"
        yield Spotted("index_clamped", what, None, (("branch_index", index),))


@strict
def gather(it: Evaluation) -> Iterator[Spotted]:
    a, (operand, indices) = it.attributes, it.operands
    extents = np.shape(operand)
    entries = vectors(indices, a.index_vector_dim)
    for row, dim in enumerate(a.start_index_map):
        last = extents[dim] - min(a.slice_sizes[dim], extents[dim])
        if outside := first(_is_outside(entries[row], last)):
            place, further = outside
            start = entries[row][place]
            what = f"becomes {max(0, min(int(start), last))}: the valid starts in dimension {dim} are 0..{last}"
            name = _entry("start_indices", indices, place, row, a.index_vector_dim)
            yield Spotted("index_clamped", what, None, ((name, start),), further, dim)
    if a.indices_are_sorted:
        yield from _unsorted(_rows(entries, _batches(it)))


@strict
def scatter(it: Evaluation) -> Iterator[Spotted]:
    a, (operands, indices, updates) = it.attributes, it.operands
    extents = np.shape(operands[0])
    entries = vectors(indices, a.index_vector_dim)
    sizes = _window_sizes(it, np.shape(updates[0]), len(extents))
    for row, dim in enumerate(a.scatter_dims_to_operand_dims):
        last = extents[dim] - sizes[dim]
        if outside := first(_is_outside(entries[row], last)):
            place, further = outside
            name = _entry("scatter_indices", indices, place, row, a.index_vector_dim)
            what = f"drops the update: the valid starts in dimension {dim} are 0..{last}"
            yield Spotted("update_dropped", what, None, ((name, entries[row][place]),), further, dim)
    rows = _rows(entries, _batches(it))
    if a.indices_are_sorted:
        yield from _unsorted(rows)
    if a.unique_indices and (again := len(rows) - len({tuple(row) for row in rows.tolist()})):
        yield Spotted("promise_broken", f"unique_indices=true, but {again} index vectors repeat earlier ones")
    yield from scatter_births(it)


def _window_sizes(it: Evaluation, update: Dims, rank: int) -> Dims:
    a = it.attributes
    window_dims = iter(a.update_window_dims)
    left_out = a.inserted_window_dims + a.input_batching_dims
    return tuple(1 if dim in left_out else update[next(window_dims)] for dim in range(rank))


def _is_outside(starts: Array, last: int) -> Array:
    return np.asarray((starts < 0) | (starts > last))


def _entry(name: str, indices: Array, place: tuple[int, ...], row: int, index_vector_dim: int) -> str:
    """The name and index, in the indices operand, of an index vector's entry; scalar vectors may have no dimension."""
    vector = (row,) if np.ndim(indices) > len(place) else ()
    index = [*place[:index_vector_dim], *vector, *place[index_vector_dim:]]
    return f"{name}{index}" if index else name


def _batches(it: Evaluation) -> tuple[Dims, Dims, int]:
    a = it.attributes
    if it.instruction.opcode == "gather":
        return a.operand_batching_dims, a.start_indices_batching_dims, a.index_vector_dim
    return a.input_batching_dims, a.scatter_indices_batching_dims, a.index_vector_dim


def _rows(entries: Array, batching: tuple[Dims, Dims, int]) -> Array:
    """The index vectors as rows of integers, each preceded by its batch numbers."""
    numbers = batch_numbers(entries.shape[1:], *batching).values()
    columns = [column.reshape(-1) for column in (*numbers, *entries)]
    return np.stack(columns, -1) if columns else np.zeros((int(np.prod(entries.shape[1:])), 0), np.int64)


def _unsorted(rows: Array) -> Iterator[Spotted]:
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    if unsorted := first(np.any(rows[order] != rows, -1)):
        yield Spotted("promise_broken", f"indices_are_sorted=true, but index vector {unsorted[0][0]} is out of order")


# ----------------------------------------------------------------------------
# Arithmetic: division by zero, overflowing quotients and shifts, conversions out of range.


def _is_integer(it: Evaluation) -> bool:
    return primitive_type(np.asarray(it.result).dtype).is_integer


def _operands(it: Evaluation) -> tuple[Array, Array]:
    lhs, rhs = it.operands
    return widened(np.asarray(lhs)), widened(np.asarray(rhs))


@strict
def divide(it: Evaluation) -> Iterator[Spotted]:
    """Find integer division by zero, and division of the smallest number by -1, whose quotient overflows the type."""
    if not _is_integer(it):
        yield from elementwise(it)
        return
    lhs, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _broadcast_to_result(it, rhs == 0), "gives {result}")
    of = primitive_type(np.asarray(it.result).dtype)
    if of.kind == "signed":
        mask = (lhs == limits(of)[0]) & (rhs == -1)
        yield from at_elements(it, "division_overflow", _broadcast_to_result(it, mask), "wraps to {result}")


@strict
def remainder(it: Evaluation) -> Iterator[Spotted]:
    if not _is_integer(it):
        yield from elementwise(it)
        return
    _, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _broadcast_to_result(it, rhs == 0), "gives {result}")


@strict
def power(it: Evaluation) -> Iterator[Spotted]:
    """Find negative powers of the integer 0, which divide by zero."""
    if not _is_integer(it):
        yield from elementwise(it)
        return
    lhs, rhs = _operands(it)
    yield from at_elements(it, "division_by_zero", _broadcast_to_result(it, (lhs == 0) & (rhs < 0)), "gives {result}")


def _shift(it: Evaluation) -> Iterator[Spotted]:
    """Find shifts by the bit width or more; a negative amount, read as unsigned, is one."""
    amount = np.asarray(it.operands[1])
    width = primitive_type(np.asarray(it.operands[0]).dtype).bits
    mask = widened(as_unsigned(amount)) >= width
    yield from at_elements(
        it, "shift_out_of_range", _broadcast_to_result(it, mask), f"gives {{result}}: the width is {width}"
    )


for _opcode in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    strict.enter(_opcode, _shift)


def _broadcast_to_result(it: Evaluation, mask: Any) -> Array:
    return np.broadcast_to(mask, np.shape(it.result))


@strict
def convert(it: Evaluation) -> Iterator[Spotted]:
    """Find NaNs converted to integers, and values that the new type saturates, wraps, or makes infinite."""
    operand, to = it.operands[0], it.attributes.new_element_type
    value = widened(np.asarray(operand))
    if to.is_integer and value.dtype.kind in "fc":
        value = value.real.astype(np.float64)
        yield from at_elements(it, "nan_converted", np.isnan(value), "gives {result}")
        low, high = limits(to)
        mask = (np.trunc(value) < low) | (value >= high + 1.0)
        yield from at_elements(it, "value_out_of_range", mask, f"saturates to {{result}}: {_range_text(to)}")
    elif to.is_integer:
        low, high = limits(to)
        mask = (value < low) | (value > high) if value.dtype.kind in "iu" else np.zeros(value.shape, bool)
        yield from at_elements(it, "value_out_of_range", mask, f"wraps to {{result}}: {_range_text(to)}")
    elif to.kind in ("float", "complex"):
        yield from _lost_by_rounding(it, value)


strict.enter("stochastic_convert", convert)


@strict
def bitcast_convert(it: Evaluation) -> Iterator[Spotted]:
    """Find bytes other than 0 and 1 that are read as pred."""
    if np.asarray(it.result).dtype == np.bool_:
        yield from _invalid_preds(lowered.bitcast_convert(np.asarray(it.operands[0]), new_element_type=u8))


@strict
def bitcast(it: Evaluation) -> Iterator[Spotted]:
    shape, source = it.attributes.shape, it.instruction.operands[0].shape
    if shape.dtype is pred and source.dtype is not pred:  # type: ignore[union-attr]
        octets = evolve(shape, dtype=u8)
        yield from _invalid_preds(lowered.reinterpret_layout(np.asarray(it.operands[0]), source, octets))  # type: ignore[arg-type]


def _invalid_preds(octets: Array) -> Iterator[Spotted]:
    invalid = first(octets > 1)
    if invalid is not None:
        index, further = invalid
        what = f"reads byte {octets[index]} as true, but a pred must be 0 or 1"
        yield Spotted("value_out_of_range", what, index, (("byte", octets[index]),), further)


@strict
def reduce_precision(it: Evaluation) -> Iterator[Spotted]:
    yield from _lost_by_rounding(it, widened(np.asarray(it.operands[0])))


_BEYOND = {f4e2m1fn.dtype: 7, f6e2m3fn.dtype: 7.75, f6e3m2fn.dtype: 30}
"""For each type without infinity and NaN, the smallest number that rounding would carry past the largest value."""


def _lost_by_rounding(it: Evaluation, value: Array) -> Iterator[Spotted]:
    """Find finite values that become infinity or NaN in the narrower type, or saturate at its largest value."""
    result = np.asarray(it.result)
    rounded = widened(result)
    mask = np.isfinite(value) & ~np.isfinite(rounded)
    if result.dtype in _BEYOND:
        mask = np.abs(value) >= _BEYOND[result.dtype]
    yield from at_elements(it, "value_out_of_range", mask, "becomes {result}")


def _range_text(of: PrimitiveType) -> str:
    low, high = limits(of)
    return f"{of} holds {low}..{high}"
