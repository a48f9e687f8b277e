"""Cotangents of scatter: an update's is gathered from its place, the operand's is what updates leave."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from attrs import frozen

from shape_inference import Dims

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ..arrays import array_shape, compare, convert_like, convert_to, index_along, keep_where, number_elements
from ..folds import known_folds, overwrite, result_cotangents, result_element
from ..indexing import SlicePlaces
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
    """Each operand with its update separately; the region must not mix operands."""
    places = SlicePlaces(
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        input_batching_dims,
        scatter_indices_batching_dims,
        index_vector_dim,
    )
    count = len(operands)
    cotangents: list[Value | None] = [None] * (2 * count + 1)
    for number, (fold, ct) in enumerate(zip(known_folds(to_apply, count), result_cotangents(back, count), strict=True)):
        wants = back.wants(number), back.wants(count + 1 + number)
        if ct is not None and any(wants):
            scattered = _ScatteredOperand(
                operands[number],
                scatter_indices,
                updates[number],
                result_element(back, number, count),
                ct,
                places,
                indices_are_sorted,
                unique_indices,
            )
            cotangents[number], cotangents[count + 1 + number] = _pull_back_operand(fold, scattered, wants)
    return tuple(cotangents)


def _pull_back_operand(
    fold: str | None, scattered: _ScatteredOperand, wants: tuple[bool, bool]
) -> tuple[Value | None, Value | None]:
    if fold not in _RULES:
        refuse_derivative(
            "only a scatter that adds, subtracts, multiplies, overwrites, or keeps the maximum or minimum has a "
            "derivative",
            "to register your own rule for a custom_call, use xb.custom_vjp(target)",
        )
    if not array_shape(scattered.update).size:
        return (convert_like(scattered.ct, scattered.operand) if wants[0] else None), None
    operand, update = _RULES[fold]
    return (
        convert_like(operand(scattered), scattered.operand) if wants[0] else None,
        convert_like(update(scattered), scattered.update) if wants[1] else None,
    )


@frozen(eq=False, slots=False)
class _ScatteredOperand:
    """One operand of a scatter with its updates and the result's cotangent."""

    operand: Value
    indices: Value
    update: Value
    result: Value
    ct: Value
    places: SlicePlaces
    is_sorted: bool
    says_unique: bool

    @cached_property
    def is_unique(self) -> bool:
        """Whether no two updates go to the same place: the op says so, or there is a single index vector."""
        window = {*self.places.window}
        sizes = array_shape(self.update).dims
        others = (size for dim, size in enumerate(sizes) if dim not in window)
        return self.says_unique or all(size == 1 for size in others)

    def at_updates(self, values: Value) -> Value:
        """The elements of an array shaped like the operand, at the places of the updates."""
        sizes = self.places.slice_sizes(self.operand, self.update)
        return self.places.gather(values, self.indices, sizes, self.is_sorted)

    def zero_dropped(self, values: Value) -> Value:
        """The values, with zeros where the update was dropped."""
        limits = self.places.last_starts(self.operand, self.places.slice_sizes(self.operand, self.update))
        inside = self.places.in_bounds_mask(self.indices, limits, self.update)
        return values if inside is None else keep_where(inside, values)

    def scatter_onto(self, base: Value, updates: Value, to_apply: Callable[..., Value]) -> Value:
        """Scatter updates to the same places of another array."""
        return self.places.scatter(base, self.indices, updates, to_apply, self.is_sorted, self.says_unique)

    def to_result_type(self, value: Value) -> Value:
        """An operand or update converted to the element type of the result."""
        return convert_to(value, array_shape(self.ct).dtype)

    def zeros(self, model: Value) -> Value:
        return full(self.ct.builder, 0, array_shape(model).with_dtype(array_shape(self.ct).dtype))

    def ones(self, model: Value) -> Value:
        return full(self.ct.builder, 1, array_shape(model).with_dtype(array_shape(self.ct).dtype))


def _pass_through(scattered: _ScatteredOperand) -> Value:
    return scattered.ct


def _no_cotangent(scattered: _ScatteredOperand) -> None:
    return None


def _gather_cotangent(scattered: _ScatteredOperand) -> Value:
    return scattered.zero_dropped(scattered.at_updates(scattered.ct))


def _gather_negated(scattered: _ScatteredOperand) -> Value:
    return ops.negate(_gather_cotangent(scattered))


def _zero_overwritten(scattered: _ScatteredOperand) -> Value:
    return scattered.scatter_onto(scattered.ct, scattered.zeros(scattered.update), overwrite)


def _gather_where_kept(scattered: _ScatteredOperand) -> Value:
    """The cotangent of a place goes to the update that stayed there, found by scattering the updates' numbers."""
    if scattered.is_unique:
        return _gather_cotangent(scattered)
    numbers = _number_updates(scattered)
    nobody = full(scattered.ct.builder, -1, array_shape(scattered.operand).with_dtype(array_shape(numbers).dtype))
    stayed = scattered.at_updates(scattered.scatter_onto(nobody, numbers, overwrite))
    return keep_where(compare(stayed, numbers, "EQ"), scattered.at_updates(scattered.ct))


def _number_updates(scattered: _ScatteredOperand) -> Value:
    """A number for each update; constant over its window if one dimension distinguishes the updates."""
    sizes = array_shape(scattered.update).dims
    others = [dim for dim in range(len(sizes)) if dim not in scattered.places.window and sizes[dim] > 1]
    if len(others) == 1:
        return index_along(scattered.ct.builder, sizes, others[0])
    return number_elements(scattered.ct.builder, sizes)


def _multiply_by_updates(scattered: _ScatteredOperand) -> Value:
    return scattered.scatter_onto(scattered.ct, scattered.to_result_type(scattered.update), ops.multiply)


def _multiply_by_others(scattered: _ScatteredOperand) -> Value:
    """The cotangent times all other factors of its place, computed without dividing by zero.

    Zeros are counted, and a count has no derivative: if another factor is zero, the second derivative is NaN.
    """
    update, ct = scattered.to_result_type(scattered.update), scattered.at_updates(scattered.ct)
    if scattered.is_unique:
        return scattered.zero_dropped(
            ops.multiply(ct, scattered.at_updates(scattered.to_result_type(scattered.operand)))
        )
    zero, one = scattered.zeros(update), scattered.ones(update)
    is_zero = compare(update, zero, "EQ")
    factor = ops.select(is_zero, one, update)
    products = scattered.at_updates(
        scattered.scatter_onto(scattered.to_result_type(scattered.operand), factor, ops.multiply)
    )
    zeros = scattered.at_updates(
        scattered.scatter_onto(scattered.zeros(scattered.operand), ops.select(is_zero, one, zero), ops.add)
    )
    own = ops.select(is_zero, one, zero)
    is_known = compare(zeros, own, "EQ")
    others = ops.select(is_known, ops.divide(products, factor), _zero_without_derivative(is_known, update, one))
    return scattered.zero_dropped(ops.multiply(ct, others))


def _zero_without_derivative(is_known: Value, update: Value, one: Value) -> Value:
    """Zeros whose derivative is NaN where a derivative may be lost; ones elsewhere."""
    return ops.sqrt(ops.select(is_known, one, ops.subtract(update, update)))


def _share_among_equals(scattered: _ScatteredOperand) -> tuple[Value, Value, Value]:
    """The cotangent shared among all that equal the result, and masks of where the operand and the updates do."""
    result = scattered.result
    by_operand = compare(scattered.to_result_type(scattered.operand), result, "EQ")
    by_update = compare(scattered.to_result_type(scattered.update), scattered.at_updates(result), "EQ")
    hits = ops.select(by_update, scattered.ones(scattered.update), scattered.zeros(scattered.update))
    base = ops.select(by_operand, scattered.ones(scattered.operand), scattered.zeros(scattered.operand))
    count = scattered.scatter_onto(base, hits, ops.add)
    return ops.divide(scattered.ct, count), by_operand, by_update


def _operand_share(scattered: _ScatteredOperand) -> Value:
    share, by_operand, _ = _share_among_equals(scattered)
    return keep_where(by_operand, share)


def _update_share(scattered: _ScatteredOperand) -> Value:
    share, _, by_update = _share_among_equals(scattered)
    return scattered.zero_dropped(keep_where(by_update, scattered.at_updates(share)))


_RULES: dict[str | None, tuple[Callable[[_ScatteredOperand], Value], Callable[[_ScatteredOperand], Value | None]]] = {
    "add": (_pass_through, _gather_cotangent),
    "subtract": (_pass_through, _gather_negated),
    "update": (_zero_overwritten, _gather_where_kept),
    "current": (_pass_through, _no_cotangent),
    "multiply": (_multiply_by_updates, _multiply_by_others),
    "maximum": (_operand_share, _update_share),
    "minimum": (_operand_share, _update_share),
}
