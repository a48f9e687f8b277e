"""The cotangent of a fold: by what its region is known to do, by the element it chooses, or from all other elements.

Used by reduce, reduce_window, select_and_scatter, scatter and sort.

Sections:

    What a region does with its current value and the new one
    Folds that choose an element
    Folds of all other elements
    Folds by any associative function
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, PrimitiveType, Shape, XbuildError, pred, s32, s64
from shape_inference.windows import Window, WindowDimension

from .. import ops
from ..core.attributes import PaddingDimension
from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..properties.order import ordered
from ..properties.patterns import neutral_element
from ..properties.sites import reached
from ..sharding.partition.reduction import classify_folding
from .arrays import (
    array_shape,
    broadcast_to,
    compare,
    convert_like,
    convert_to,
    keep_where,
    number_elements,
    reshape_unless_same,
    sum_all,
)
from .calls import record_parameters
from .halves import split_computation
from .recorder import DerivativeRecorder
from .rules import Pullback, full, refuse_derivative

# ----------------------------------------------------------------------------
# What a region does with its current value and the new one


_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
_CHANGES_TYPES = ("convert", "copy")


def known_folds(region: Computation, count: int) -> tuple[str | None, ...]:
    """How each of `count` results combines its current element with the new one; None for an unknown function.

    `add`, `multiply`, `maximum` or `minimum` of the two, `subtract` (the new from the current), or `update` or
    `current` for one of them itself. Conversions in between are ignored.
    """
    roots = region.root.operands if count > 1 and region.root.opcode == "tuple" else (region.root,)
    if len(roots) != count or len(region.parameters) != 2 * count:
        return (None,) * count
    current, new = region.parameters[:count], region.parameters[count:]
    return tuple(_known_fold(*row) for row in zip(roots, current, new, strict=True))


def _known_fold(root: Instruction, current: Instruction, new: Instruction) -> str | None:
    combined = _skip_conversions(root)
    if combined is new or combined is current:
        return "update" if combined is new else "current"
    sources = tuple(map(_skip_conversions, combined.operands))
    if combined.opcode in _COMMUTATIVE and sources in ((current, new), (new, current)):
        return combined.opcode
    return "subtract" if combined.opcode == "subtract" and sources == (current, new) else None


def _skip_conversions(instruction: Instruction) -> Instruction:
    while instruction.opcode in _CHANGES_TYPES:
        (instruction,) = instruction.operands
    return instruction


def is_identity(value: Value, fold: str) -> bool:
    """Whether the value is a constant that leaves the fold unchanged."""
    instruction = _skip_conversions(value.instruction)
    if instruction.opcode != "constant":
        return False
    literal, number = np.asarray(instruction.attributes.literal), neutral_element(fold, array_shape(value).dtype)
    is_known = literal.dtype.kind != "c" and number is not None
    return is_known and bool((literal.astype(np.float64) == np.real(number).astype(np.float64)).all())


def apply_region(region: Computation, arguments: Sequence[Value]) -> Value:
    """The result of a computation for these arguments, recorded in their builder."""
    return record_region(region, arguments)[region.root]


def record_region(region: Computation, arguments: Sequence[Value]) -> Mapping[Instruction, Value]:
    """The values of all instructions of a computation for these arguments, recorded in their builder."""
    builder = arguments[0].builder
    values = dict(zip(region.parameters, arguments, strict=True))
    for instruction in ordered(region):
        if instruction not in values:
            operands = tuple(values[operand] for operand in instruction.operands)
            values[instruction] = builder.record(
                OPS[instruction.opcode], operands, instruction.segments, {**instruction.attribute_values()}, None
            )
    return values


def result_element(back: Pullback, number: int, count: int) -> Value:
    """One of `count` results of an op, whose result is a tuple if there are several."""
    return back.result if count == 1 else ops.get_tuple_element(back.result, index=number)


def result_cotangents(back: Pullback, count: int) -> tuple[Value | None, ...]:
    """The cotangent of each of `count` results."""
    return tuple(back.ct) if count > 1 else (back.ct,)


def overwrite(current: Value, update: Value) -> Value:
    """The region of a scatter whose updates replace the current values."""
    return update


# ----------------------------------------------------------------------------
# Folds that choose an element
#
# The number of the chosen element among all elements; arrays read there, and cotangents added there.


Preference: TypeAlias = Callable[[Value, Value], Value]


_NO_ELEMENT = -1


def selected_places(operand: Value, window: Window, prefers: Preference) -> Value:
    """For each place of the window the number of the element that it selects, or -1 if it covers none.

    Of two elements, the one that the window reads first stays if `prefers(first, second)` holds.
    """
    numbers = number_elements(operand.builder, array_shape(operand).dims)
    dtype = array_shape(numbers).dtype

    def chosen(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        nothing = ops.constant(a.builder, literal=np.asarray(_NO_ELEMENT, dtype.dtype))
        in_order = compare(i, j, "LT")
        stays = ops.select(in_order, prefers(a, b), ops.not_(prefers(b, a)))
        stays = ops.or_(ops.and_(stays, compare(i, nothing, "NE")), compare(j, nothing, "EQ"))
        return ops.select(stays, a, b), ops.select(stays, i, j)

    inits = tuple(full(operand.builder, value, array_shape(array).dtype[()]) for value, array in
                  ((0, operand), (_NO_ELEMENT, numbers)))  # fmt: skip
    selected = ops.reduce_window((operand, numbers), inits, to_apply=chosen, window=window)
    return ops.get_tuple_element(selected, index=1)


Fold: TypeAlias = Callable[[Sequence[Value], Sequence[Value], Callable[..., Any]], Value]
"""fold(operands, init values, reducer as a function) -> results"""


def chosen_places(region: Computation, operands: Sequence[Value], inits: Sequence[Value], n: int, fold: Fold) -> Value:
    """For each result of a fold whose reducer chooses an element, the number of that element in the n-th operand.

    The number is -1 for the init value. The fold is recorded once more, with the numbers as a further operand.
    """
    count, builder = len(operands), operands[0].builder
    part = (region.root.operands if region.root.opcode == "tuple" else (region.root,))[n]
    numbers = number_elements(builder, array_shape(operands[n]).dims)

    def chosen(*elements: Value) -> tuple[Value, ...]:
        current, new = elements[: count + 1], elements[count + 1 :]
        inside = record_region(region, (*current[:-1], *new[:-1]))
        if part.opcode == "select":
            is_current = inside[part.operands[0]]
            if part.operands[1] is not region.parameters[n]:
                is_current = ops.not_(is_current)
        else:
            is_current = compare(current[n], new[n], "GE" if part.opcode == "maximum" else "LE")
        parts = region.root.operands if region.root.opcode == "tuple" else (region.root,)
        return (*(inside[each] for each in parts), ops.select(is_current, current[-1], new[-1]))

    nothing = full(builder, _NO_ELEMENT, array_shape(numbers).dtype[()])
    return ops.get_tuple_element(fold((*operands, numbers), (*inits, nothing), chosen), index=count)


def give_to_chosen(
    ct: Value, places: Value, operand: Value, init: Value, wants: tuple[bool, bool]
) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and its init value: each result's cotangent goes to the chosen element."""
    is_init = compare(places, full(places.builder, 0, array_shape(places)), "LT")
    shape = array_shape(operand)
    return (
        add_at(ct, places, shape) if wants[0] and shape.size else None,
        convert_like(sum_all(keep_where(is_init, ct)), init) if wants[1] else None,
    )


def read_at(values: Value, places: Value, is_everywhere: bool) -> Value:
    """The element at each place, zero where the place is -1."""
    shape, rank = array_shape(values), array_shape(places).rank
    gathered = ops.gather(
        reshape_unless_same(values, (shape.size,)),
        places,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=rank,
        slice_sizes=(1,),
    )
    if is_everywhere:
        return gathered
    return keep_where(compare(places, full(places.builder, 0, array_shape(places)), "GE"), gathered)


def add_at(values: Value, places: Value, shape: Shape) -> Value:
    """Zeros with the values added at these places; values at the place -1 are dropped."""
    flat = ops.scatter(
        (full(values.builder, 0, array_shape(values).dtype[(shape.size,)]),),
        places,
        (values,),
        to_apply=ops.add,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=array_shape(places).rank,
    )
    return reshape_unless_same(flat, shape.dims)


# ----------------------------------------------------------------------------
# Folds of all other elements
#
# What each place of a window covers, laid out along one dimension, and the folds of what lies before and after each.


Combine = Callable[[Value, Value], Value]


def covered_elements(builder: Builder, extents: Dims, places: Dims, window: Window) -> Value:
    """For each place and (last dimension) window element, the number of the covered element, or -1."""
    rank, sizes = len(extents), (*places, *(dim.size for dim in window))
    dtype = s32 if max(prod(extents), prod(sizes)) < 1 << 31 else s64
    shape = dtype[sizes]
    number, is_inside = full(builder, 0, shape), full(builder, True, shape.with_dtype(pred))
    for d, (dim, extent) in enumerate(zip(window, extents, strict=True)):
        place = ops.iota(builder, shape=shape, iota_dimension=d)
        offset = ops.iota(builder, shape=shape, iota_dimension=rank + d)
        position, inside = _position(place, offset, dim, extent)
        number = ops.add(ops.multiply(number, full(builder, extent, shape)), position)
        is_inside = ops.and_(is_inside, inside)
    numbers = ops.select(is_inside, number, full(builder, -1, shape))
    return reshape_unless_same(numbers, (*places, prod(dim.size for dim in window)))


def _position(place: Value, offset: Value, dim: WindowDimension, extent: int) -> tuple[Value, Value]:
    """Which index of one dimension is covered, and whether it is an element rather than padding or a hole."""
    builder, shape = place.builder, array_shape(place)

    def number(value: int) -> Value:
        return full(builder, value, shape)

    position = ops.multiply(place, number(dim.stride))
    position = ops.add(position, ops.multiply(offset, number(dim.window_dilation)))
    position = ops.subtract(position, number(dim.padding_low))
    is_inside = ops.and_(compare(position, number(0), "GE"), compare(position, number(max(dim.base(extent), 0)), "LT"))
    if dim.base_dilation == 1:
        return position, is_inside
    holes = number(dim.base_dilation)
    is_element = compare(ops.remainder(position, holes), number(0), "EQ")
    return ops.divide(position, holes), ops.and_(is_inside, is_element)


def elements_at(operand: Value, numbers: Value, identity: Value) -> Value:
    """The element with each number; the identity for -1."""
    gathered = ops.gather(
        reshape_unless_same(operand, (array_shape(operand).size,)),
        numbers,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=array_shape(numbers).rank,
        slice_sizes=(1,),
    )
    is_element = compare(numbers, full(numbers.builder, 0, array_shape(numbers)), "GE")
    return ops.select(is_element, gathered, broadcast_to(identity, array_shape(gathered).dims))


def fold_others(values: Value, combine: Combine, identity: Value) -> tuple[Value, Value]:
    """For each element along the last dimension, the folds of those before and after it, in log(n) steps."""
    length = array_shape(values).dims[-1]
    before, after = _shift(values, 1, identity), _shift(values, -1, identity)
    step = 1
    while step < length:
        before = combine(_shift(before, step, identity), before)
        after = combine(after, _shift(after, -step, identity))
        step *= 2
    return before, after


def _shift(values: Value, by: int, identity: Value) -> Value:
    """The elements shifted along the last dimension; vacated places hold the identity."""
    rank = array_shape(values).rank
    padding = (*((PaddingDimension(0, 0),) * (rank - 1)), PaddingDimension(by, -by))
    return ops.pad(values, identity, padding=padding)


def broadcast_over_window(value: Value, length: int) -> Value:
    """A value for each place, broadcast over the elements of its window."""
    sizes = array_shape(value).dims
    return broadcast_to(value, (*sizes, length), tuple(range(len(sizes))))


# ----------------------------------------------------------------------------
# Folds by any associative function
#
# Which folds may be regrouped, how their result moves with one element, and the cotangents of a fold of windows.


def is_associative(fold: Instruction) -> bool:
    """Whether a fold may be grouped in any way and ignores its init value.

    The structure of its computation may show it; otherwise a few numbers are tried. What they do not refute counts as
    associative, as every fold does for XLA.
    """
    return classify_folding(fold).is_associative or _passes_trial(fold)


def _passes_trial(fold: Instruction) -> bool:
    """Whether a fold of one operand is associative for a few numbers, including those near its literals."""
    operand, init = fold.operands[0].shape, fold.operands[-1]
    region = fold.attributes.to_apply
    if len(fold.operands) != 2 or not isinstance(operand, Shape) or init.opcode != "constant":
        return False
    literals = [
        float(np.asarray(instruction.attributes.literal).reshape(-1)[0].real)
        for computation in reached(region)
        for instruction in computation.instructions
        if instruction.opcode == "constant" and np.asarray(instruction.attributes.literal).size == 1
    ]
    common = [0.0, 1.5, -2.0, 3.0, np.nan, np.inf, -np.inf] if operand.dtype.is_float else [0, 1, 2, 3, 5, 6, 7]
    nearby = [at + away for at in literals if np.isfinite(at) for away in (-1, 0, 1, at + 1)]
    with np.errstate(all="ignore"):
        numbers = np.array([*common, *nearby]).astype(operand.dtype.dtype)
    first = np.asarray(init.attributes.literal).reshape(1).astype(operand.dtype.dtype)
    a, b, c = (
        instruction.reshape(-1) for instruction in np.meshgrid(*[np.concatenate([first, numbers[:_MOST_TRIED]])] * 3)
    )
    return _satisfies_laws(region, operand.dtype, (a, b, c, np.resize(first, a.shape)))


_MOST_TRIED = 24
"""The number of values of which all triples are tried."""


def _satisfies_laws(region: Computation, dtype: PrimitiveType, numbers: Sequence[Any]) -> bool:
    from ..running import evaluate

    builder, count = Builder("tried"), len(numbers[0])
    a, b, c, start = (ops.parameter(builder, number=n, shape=dtype[count]) for n in range(4))

    def apply(one: Value, other: Value) -> Value:
        return map_region(region, one, other)

    pairs = [
        (apply(apply(a, b), c), apply(a, apply(b, c))),
        (apply(start, start), start),
        (apply(start, a), apply(a, start)),
    ]
    try:
        results = evaluate(builder.build(ops.tuple_(tuple(value for pair in pairs for value in pair))), *numbers)
    except XbuildError:
        return False
    arrays = [np.asarray(value) for value in results]
    return all(_are_near(arrays[n], arrays[n + 1], dtype) for n in range(0, len(arrays), 2))


def _are_near(one: Any, other: Any, dtype: PrimitiveType) -> bool:
    """Whether numbers are equal; floats up to rounding."""
    if not dtype.is_float and dtype.kind != "complex":
        return bool(np.array_equal(one, other))
    relative = 1e-3 if dtype.is_native and dtype.bits > 16 else 0.1
    left, right = (np.asarray(array).astype(np.complex128) for array in (one, other))
    return bool(np.isclose(left, right, rtol=relative, atol=relative / 1e3, equal_nan=True).all())


def map_region(region: Computation, lhs: Value, rhs: Value) -> Value:
    """A region of two scalars applied to the elements of two arrays."""
    return ops.map((lhs, rhs), to_apply=region, dimensions=tuple(range(array_shape(lhs).rank)))


def slopes(back: Pullback, region: Computation, before: Value, x: Value, after: Value) -> Value:
    """The derivative of f(f(before, x), after) by x, for each element of arrays."""
    key = "slope", region
    if key not in back.context.known:
        back.context.known[key] = _slope_computation(back, back.recorder, region)
    rank = array_shape(x).rank
    return ops.map((before, x, after), to_apply=back.context.known[key], dimensions=tuple(range(rank)))


def _slope_computation(back: Pullback, recorder: DerivativeRecorder, region: Computation) -> Computation:
    """The same for scalars, as a computation."""
    scalar = root_shape(region)
    joint = recorder.inner(f"{region.name}.joint", back.instruction)
    first, x, last = record_parameters(joint, [scalar] * 3)
    whole = joint.build_computation(apply_region(region, (apply_region(region, (first, x)), last)))
    halves = split_computation(back.context, recorder, whole, (False, True, False), True, lambda leaf: True, True)
    inner = recorder.inner(f"{region.name}.slope", back.instruction)
    parameters = record_parameters(inner, [scalar] * 3)
    return inner.build_computation(halves.run_back(inner, [], parameters, [full(inner, 1, scalar)])[1])


def root_shape(region: Computation) -> Shape:
    assert isinstance(region.root.shape, Shape), region
    return region.root.shape.plain()


@frozen(eq=False)
class WindowedFold:
    """One operand of a reduce_window, its init value, the result's cotangent, and which of the two need one."""

    operand: Value
    init: Value
    ct: Value
    wants: tuple[bool, bool]
    window: Window

    @property
    def is_empty(self) -> bool:
        return not array_shape(self.ct).size or not array_shape(self.operand).size

    def init_cotangent(self, by_window: Value) -> Value | None:
        return convert_like(sum_all(by_window), self.init) if self.wants[1] else None


def pull_back_by_others(
    back: Pullback, region: Computation, fold: str | None, count: int, part: WindowedFold
) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and its init value: windows are laid out, and all other elements are folded."""
    _check_fold(back, region, fold, count, part)
    if part.is_empty:
        return None, part.init_cotangent(part.ct)
    numbers = covered_elements(part.ct.builder, array_shape(part.operand).dims, array_shape(part.ct).dims, part.window)
    if fold == "multiply":
        return _pull_back_product(part, numbers)
    x = elements_at(part.operand, numbers, part.init)
    before, after = fold_others(x, lambda a, b: map_region(region, a, b), part.init)
    along = broadcast_over_window(part.ct, array_shape(x).dims[-1])
    share = ops.multiply(along, _mask_padding(slopes(back, region, before, x, after), numbers))
    return add_at(share, numbers, array_shape(part.operand)), None


def _mask_padding(slopes: Value, numbers: Value) -> Value:
    """The slopes, and 0 where a window covers padding: folds of init values may have none, such as -inf - -inf."""
    return keep_where(compare(numbers, full(numbers.builder, 0, array_shape(numbers)), "GE"), slopes)


def _check_fold(back: Pullback, region: Computation, fold: str | None, count: int, part: WindowedFold) -> None:
    """Refuse a joint fold of several operands, a fold of mixed types, or one whose init value varies."""
    scalar = array_shape(part.init)
    is_plain = count == 1 and all(part.shape == scalar for part in (*region.parameters, region.root))
    is_known = fold is None and is_plain and not part.wants[1] and is_associative(back.instruction)
    if fold != "multiply" and not is_known:
        refuse_derivative(
            "a window op has a derivative only if it computes a sum, a product, a maximum or a minimum, or folds "
            "each window from an identity with an associative function of two numbers",
            "extract the windows with xb.slice, and fold the slices",
        )


def _pull_back_product(part: WindowedFold, numbers: Value) -> tuple[Value | None, Value | None]:
    """The product of all other elements, computed without division, so that zeros do no harm."""
    dtype = array_shape(part.ct).dtype
    one = full(part.ct.builder, 1, dtype[()])
    x = elements_at(convert_to(part.operand, dtype), numbers, one)
    before, after = fold_others(x, ops.multiply, one)
    others, sizes = ops.multiply(before, after), array_shape(x).dims
    share = ops.multiply(broadcast_over_window(part.ct, sizes[-1]), broadcast_to(convert_to(part.init, dtype), sizes))
    share = ops.multiply(share, _mask_padding(others, numbers))
    whole = ops.multiply(others, x)
    first = ops.slice(whole, start_indices=(0,) * len(sizes), limit_indices=(*sizes[:-1], 1), strides=(1,) * len(sizes))
    products = ops.multiply(part.ct, reshape_unless_same(first, sizes[:-1]))
    operand_ct = (
        convert_like(add_at(share, numbers, array_shape(part.operand)), part.operand) if part.wants[0] else None
    )
    return operand_ct, part.init_cotangent(products)
