"""Cotangents of scatter: an update's is gathered where it went, and the operand's is what no update has taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from attrs import frozen

from shape_inference import Dims

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ..forms.arrays import (
    array_of,
    compared,
    counting,
    in_type,
    like,
    numbered,
    selected,
)
from ..forms.indexing import Places
from ..forms.regions import cotangents, element, folds, overwrite
from ..rules import Cotangents, Pullback, full, refuse_derivative, vjp


@vjp
def scatter(
    back: Pullback,
    operands: Values,
    scatter_indices: Value,
    updates: Values,
    *,
    to_apply: Computation,
    update_window_dims: Dims,
    inserted_window_dims: Dims,
    scatter_dims_to_operand_dims: Dims,
    input_batching_dims: Dims,
    scatter_indices_batching_dims: Dims,
    index_vector_dim: int,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Cotangents:
    """Each operand with its update by itself, where no function of them reads another's elements."""
    places = Places(
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        input_batching_dims,
        scatter_indices_batching_dims,
        index_vector_dim,
    )
    count = len(operands)
    found: list[Value | None] = [None] * (2 * count + 1)
    for number, (fold, ct) in enumerate(zip(folds(to_apply, count), cotangents(back, count), strict=True)):
        wants = back.wants(number), back.wants(count + 1 + number)
        if ct is not None and any(wants):
            given = _Scatter(
                operands[number],
                scatter_indices,
                updates[number],
                element(back, number, count),
                ct,
                places,
                indices_are_sorted,
                unique_indices,
            )
            found[number], found[count + 1 + number] = _columns(fold, given, wants)
    return tuple(found)


def _columns(fold: str | None, given: _Scatter, wants: tuple[bool, bool]) -> tuple[Value | None, Value | None]:
    if fold not in _RULES:
        refuse_derivative(
            "only a scatter that adds, subtracts, multiplies, overwrites, or keeps the greatest or least has a "
            "derivative here",
            "xb.custom_vjp(target) gives a custom_call a rule of your own",
        )
    if not array_of(given.update).size:
        return (like(given.ct, given.operand) if wants[0] else None), None
    operand, update = _RULES[fold]
    return (
        like(operand(given), given.operand) if wants[0] else None,
        like(update(given), given.update) if wants[1] else None,
    )


@frozen(eq=False, slots=False)
class _Scatter:
    """One operand of a scatter with its updates and the cotangent of its result."""

    operand: Value
    indices: Value
    update: Value
    result: Value
    ct: Value
    places: Places
    is_sorted: bool
    says_unique: bool

    @cached_property
    def is_unique(self) -> bool:
        """Whether no two updates go to one place: it is said, or there is one index vector."""
        window = {*self.places.window}
        sizes = array_of(self.update).dims
        others = (size for dim, size in enumerate(sizes) if dim not in window)
        return self.says_unique or all(size == 1 for size in others)

    def at_updates(self, values: Value) -> Value:
        """The element of an array like the operand at the place of each update."""
        sizes = self.places.slice_sizes(self.operand, self.update)
        return self.places.gathered(values, self.indices, sizes, self.is_sorted)

    def kept(self, values: Value) -> Value:
        """The values, zeros where the update was dropped."""
        limits = self.places.last_starts(self.operand, self.places.slice_sizes(self.operand, self.update))
        inside = self.places.inside(self.indices, limits, self.update)
        return values if inside is None else selected(inside, values)

    def onto(self, base: Value, updates: Value, to_apply: Callable[..., Value]) -> Value:
        """Updates brought to the same places of another array."""
        return self.places.scattered(base, self.indices, updates, to_apply, self.is_sorted, self.says_unique)

    def of_type(self, value: Value) -> Value:
        """An operand or an update in the element type of the result."""
        return in_type(value, array_of(self.ct).dtype)

    def zeros(self, model: Value) -> Value:
        return full(self.ct.builder, 0, array_of(model).with_dtype(array_of(self.ct).dtype))

    def ones(self, model: Value) -> Value:
        return full(self.ct.builder, 1, array_of(model).with_dtype(array_of(self.ct).dtype))


def _passed(given: _Scatter) -> Value:
    return given.ct


def _nothing(given: _Scatter) -> None:
    return None


def _taken(given: _Scatter) -> Value:
    return given.kept(given.at_updates(given.ct))


def _taken_negated(given: _Scatter) -> Value:
    return ops.negate(_taken(given))


def _not_overwritten(given: _Scatter) -> Value:
    return given.onto(given.ct, given.zeros(given.update), overwrite)


def _that_overwrote(given: _Scatter) -> Value:
    """Of several updates of one place the cotangent goes to the one that stayed, found by scattering their numbers."""
    if given.is_unique:
        return _taken(given)
    numbers = _numbers(given)
    nobody = full(given.ct.builder, -1, array_of(given.operand).with_dtype(array_of(numbers).dtype))
    stayed = given.at_updates(given.onto(nobody, numbers, overwrite))
    return selected(compared(stayed, numbers, "EQ"), given.at_updates(given.ct))


def _numbers(given: _Scatter) -> Value:
    """A number for each update, the same all over its window where one dimension tells the updates apart."""
    sizes = array_of(given.update).dims
    others = [dim for dim in range(len(sizes)) if dim not in given.places.window and sizes[dim] > 1]
    if len(others) == 1:
        return counting(given.ct.builder, sizes, others[0])
    return numbered(given.ct.builder, sizes)


def _multiplied(given: _Scatter) -> Value:
    return given.onto(given.ct, given.of_type(given.update), ops.multiply)


def _by_the_others(given: _Scatter) -> Value:
    """The cotangent times all other factors of its place, which are found without a division by zero.

    Zeros are counted, and a count has no derivative: where another factor is zero, the second derivative is NaN.
    """
    update, ct = given.of_type(given.update), given.at_updates(given.ct)
    if given.is_unique:
        return given.kept(ops.multiply(ct, given.at_updates(given.of_type(given.operand))))
    zero, one = given.zeros(update), given.ones(update)
    is_zero = compared(update, zero, "EQ")
    factor = ops.select(is_zero, one, update)
    products = given.at_updates(given.onto(given.of_type(given.operand), factor, ops.multiply))
    zeros = given.at_updates(given.onto(given.zeros(given.operand), ops.select(is_zero, one, zero), ops.add))
    own = ops.select(is_zero, one, zero)
    is_known = compared(zeros, own, "EQ")
    others = ops.select(is_known, ops.divide(products, factor), _zero_without_derivative(is_known, update, one))
    return given.kept(ops.multiply(ct, others))


def _zero_without_derivative(is_known: Value, update: Value, one: Value) -> Value:
    """Zeros whose derivative is NaN, where it is not known that nothing is lost; ones elsewhere."""
    return ops.sqrt(ops.select(is_known, one, ops.subtract(update, update)))


def _shared(given: _Scatter) -> tuple[Value, Value, Value]:
    """The cotangent parted among all that equal the result, and where the operand and where updates do."""
    result = given.result
    by_operand = compared(given.of_type(given.operand), result, "EQ")
    by_update = compared(given.of_type(given.update), given.at_updates(result), "EQ")
    hits = ops.select(by_update, given.ones(given.update), given.zeros(given.update))
    base = ops.select(by_operand, given.ones(given.operand), given.zeros(given.operand))
    count = given.onto(base, hits, ops.add)
    return ops.divide(given.ct, count), by_operand, by_update


def _that_stayed(given: _Scatter) -> Value:
    share, by_operand, _ = _shared(given)
    return selected(by_operand, share)


def _that_won(given: _Scatter) -> Value:
    share, _, by_update = _shared(given)
    return given.kept(selected(by_update, given.at_updates(share)))


_RULES: dict[str | None, tuple[Callable[[_Scatter], Value], Callable[[_Scatter], Value | None]]] = {
    "add": (_passed, _taken),
    "subtract": (_passed, _taken_negated),
    "update": (_not_overwritten, _that_overwrote),
    "current": (_passed, _nothing),
    "multiply": (_multiplied, _by_the_others),
    "maximum": (_that_stayed, _that_won),
    "minimum": (_that_stayed, _that_won),
}
