"""Cotangents of dot, ragged_dot and scaled_dot: the product of the result's cotangent with the other operand.

Sections:

    Products of arrays with labelled dimensions
    dot
    ragged_dot
    scaled_dot
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import Dims, PrimitiveType, f32, f64

from ... import ops
from ...core.builder import Value
from ..arrays import (
    array_shape,
    broadcast_to,
    convert_like,
    convert_to,
    reshape_unless_same,
    sum_over,
    transpose_unless_same,
)
from ..rules import Cotangents, Pullback, vjp

# ----------------------------------------------------------------------------
# Products of arrays with labelled dimensions
#
# A label that both operands have and the result lacks is contracted.


Labels: TypeAlias = tuple[Any, ...]


@frozen(eq=False)
class Labelled:
    """An array with a label for each dimension, and the precision of its products."""

    value: Value
    labels: Labels
    precision: str | None = None

    def places(self, labels: Sequence[Any]) -> Dims:
        return tuple(self.labels.index(label) for label in labels)

    def in_order_of(self, labels: Labels) -> Value:
        """The array transposed to the order of these labels."""
        return transpose_unless_same(self.value, self.places(labels))


@frozen(eq=False)
class LabelRoles:
    """Which labels of two operands are batch, contracted and free."""

    batch: Labels
    contracted: Labels
    first_free: Labels
    second_free: Labels

    @classmethod
    def of(cls, first: Labels, second: Labels, result: Labels) -> LabelRoles:
        return cls(
            batch=tuple(label for label in result if label in first and label in second),
            contracted=tuple(label for label in first if label in second and label not in result),
            first_free=tuple(label for label in first if label not in second),
            second_free=tuple(label for label in second if label not in first),
        )

    @property
    def result(self) -> Labels:
        return self.batch + self.first_free + self.second_free


def contract(first: Labelled, second: Labelled, result: Labels, dtype: PrimitiveType) -> Value:
    """The contraction with these result labels; operands are swapped if that avoids a transpose."""
    if LabelRoles.of(first.labels, second.labels, result).result != result:
        swapped = LabelRoles.of(second.labels, first.labels, result)
        if swapped.result == result:
            first, second = second, first
    roles = LabelRoles.of(first.labels, second.labels, result)
    left, right = match_kinds(first.value, second.value)
    contracted = ops.dot(
        left,
        right,
        lhs_contracting_dims=first.places(roles.contracted),
        rhs_contracting_dims=second.places(roles.contracted),
        lhs_batch_dims=first.places(roles.batch),
        rhs_batch_dims=second.places(roles.batch),
        operand_precision=joint_precision(first, second),
        preferred_element_type=needed_type(left, right, dtype),
    )
    return Labelled(contracted, roles.result).in_order_of(result)


def joint_precision(first: Labelled, second: Labelled) -> tuple[str, ...]:
    if first.precision is None or second.precision is None:
        return ()
    return first.precision, second.precision


def match_kinds(first: Value, second: Value) -> tuple[Value, Value]:
    """The operands of a product; a complex cotangent of a real product counts by its real part."""
    kinds = array_shape(first).dtype.kind, array_shape(second).dtype.kind
    if kinds == ("complex", "float"):
        first = convert_to(first, array_shape(second).dtype)
    if kinds == ("float", "complex"):
        second = convert_to(second, array_shape(first).dtype)
    return first, second


def needed_type(first: Value, second: Value, dtype: PrimitiveType) -> PrimitiveType | None:
    """The preferred element type that a product needs; None if the operands imply it."""
    return None if array_shape(first).dtype is array_shape(second).dtype is dtype else dtype


# ----------------------------------------------------------------------------
# dot


_GROUP = "group"


@vjp
def dot(
    back: Pullback,
    lhs: Value,
    rhs: Value,
    *,
    lhs_contracting_dims: Dims,
    rhs_contracting_dims: Dims,
    lhs_batch_dims: Dims,
    rhs_batch_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Cotangents:
    pairs = (lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims)
    first, second = _label_operands(lhs, rhs, pairs, operand_precision)
    return _pull_back_product(back, back.ct, first, second, _result_labels(first, second, lhs_batch_dims))


def _label_operands(
    lhs: Value, rhs: Value, pairs: tuple[Dims, Dims], operand_precision: tuple[str, ...], group: Dims = ()
) -> tuple[Labelled, Labelled]:
    """Label the operands; paired dimensions share a label, the dimension of lhs."""
    partner = {**dict(zip(pairs[1], pairs[0], strict=True)), **dict.fromkeys(group, _GROUP)}
    left = tuple(range(array_shape(lhs).rank))
    right = tuple(partner.get(dim, f"rhs {dim}") for dim in range(array_shape(rhs).rank))
    precisions = operand_precision[:2] or (None, None)
    return Labelled(lhs, left, precisions[0]), Labelled(rhs, right, precisions[1])


def _result_labels(first: Labelled, second: Labelled, batch: Dims) -> Labels:
    """The labels of a dot's result: batch, free in lhs, free in rhs."""
    free = LabelRoles.of(first.labels, second.labels, ())
    return batch + free.first_free + tuple(label for label in free.second_free if label != _GROUP)


def _pull_back_product(back: Pullback, ct: Value, lhs: Labelled, rhs: Labelled, result: Labels) -> Cotangents:
    return (
        contract(Labelled(ct, result, lhs.precision), rhs, lhs.labels, _dtype(lhs)) if back.wants(0) else None,
        contract(lhs, Labelled(ct, result, rhs.precision), rhs.labels, _dtype(rhs)) if back.wants(1) else None,
    )


def _dtype(operand: Labelled) -> PrimitiveType:
    return array_shape(operand.value).dtype


# ----------------------------------------------------------------------------
# ragged_dot


@vjp
def ragged_dot(
    back: Pullback,
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    lhs_ragged_dims: Dims,
    rhs_group_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Cotangents:
    """Runs pair with their groups in the cotangents too; dimensions free in two arrays are contracted for the third."""
    pairs = (lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims)
    first, second = _label_operands(lhs, rhs, pairs, operand_precision, rhs_group_dims)
    result, (ragged,) = _result_labels(first, second, lhs_batch_dims), lhs_ragged_dims
    if ragged in lhs_batch_dims:
        return *_pull_back_product(back, back.ct, first, second, result), None
    runs = _Runs(group_sizes, ragged, lhs_batch_dims, lhs_contracting_dims)
    if ragged in lhs_contracting_dims:
        ct = Labelled(back.ct, (_GROUP, *result), first.precision)
        return (
            runs.product(runs.in_order(second), ct, first) if back.wants(0) else None,
            runs.product(runs.in_order(first), ct, second) if back.wants(1) else None,
            None,
        )
    ct = Labelled(back.ct, result, first.precision)
    return (
        runs.product(ct, second, first) if back.wants(0) else None,
        runs.product(first, ct, second) if back.wants(1) else None,
        None,
    )


@frozen(eq=False)
class _Runs:
    """The runs of a ragged dimension: sizes, and the labels of that dimension, of batch and contraction."""

    sizes: Value
    ragged: int
    batch: Dims
    contracting: Dims

    def in_order(self, operand: Labelled) -> Labelled:
        """The operand with its contracted dimensions in the order of `sizes`, if `sizes` has them."""
        if array_shape(self.sizes).rank == 1:
            return operand
        first = self.batch + self.contracting
        order = first + tuple(label for label in operand.labels if label not in first)
        return Labelled(operand.in_order_of(order), order, operand.precision)

    def product(self, first: Labelled, second: Labelled, like: Labelled) -> Value:
        """The product, run by run, of the operand with the ragged dimension and another; labeled like a third array."""
        roles = LabelRoles.of(first.labels, second.labels, like.labels)
        left, right = match_kinds(first.value, second.value)
        contracted = ops.ragged_dot(
            left,
            right,
            self.sizes,
            lhs_batch_dims=first.places(self.batch),
            rhs_batch_dims=second.places(self.batch),
            lhs_contracting_dims=first.places(roles.contracted),
            rhs_contracting_dims=second.places(roles.contracted),
            lhs_ragged_dims=first.places((self.ragged,)),
            rhs_group_dims=second.places((_GROUP,)) if _GROUP in second.labels else (),
            operand_precision=joint_precision(first, second),
            preferred_element_type=needed_type(left, right, _dtype(like)),
        )
        free = roles.first_free + tuple(label for label in roles.second_free if label != _GROUP)
        group = (_GROUP,) if _GROUP in like.labels else ()
        return Labelled(contracted, group + self.batch + free).in_order_of(like.labels)


# ----------------------------------------------------------------------------
# scaled_dot


@vjp
def scaled_dot(
    back: Pullback,
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    rhs_scale: Value,
    *,
    lhs_batch_dims: Dims,
    lhs_contracting_dims: Dims,
    rhs_batch_dims: Dims,
    rhs_contracting_dims: Dims,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Cotangents:
    """The product of scaled operands in a wide type, whose cotangent is split between operands and scales."""
    wide = f64 if any(array_shape(array).dtype is f64 for array in (lhs, rhs, lhs_scale, rhs_scale)) else f32
    pairs = (lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims)
    factors = [
        (convert_to(lhs, wide), _broadcast_scale(lhs_scale, lhs, wide)),
        (convert_to(rhs, wide), _broadcast_scale(rhs_scale, rhs, wide)),
    ]
    left_scaled, right_scaled = (ops.multiply(*array) for array in factors)
    first, second = _label_operands(left_scaled, right_scaled, pairs, operand_precision)
    result, ct = _result_labels(first, second, lhs_batch_dims), convert_to(back.ct, wide)
    left = contract(Labelled(ct, result), second, first.labels, wide) if back.wants(0) or back.wants(2) else None
    right = contract(first, Labelled(ct, result), second.labels, wide) if back.wants(1) or back.wants(3) else None
    shares = [
        *_scaled_cotangents(back, (0, 2), left, factors[0], lhs_scale),
        *_scaled_cotangents(back, (1, 3), right, factors[1], rhs_scale),
    ]
    return tuple(
        convert_like(shares[number], operand)
        for number, operand in zip((0, 2, 1, 3), (lhs, rhs, lhs_scale, rhs_scale), strict=True)
    )


def _scaled_cotangents(
    back: Pullback, numbers: tuple[int, int], ct: Value | None, factors: tuple[Value, Value], scale: Value
) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and its scale, from that of their product."""
    if ct is None:
        return None, None
    return (
        ops.multiply(ct, factors[1]) if back.wants(numbers[0]) else None,
        _sum_blocks(ops.multiply(ct, factors[0]), array_shape(scale).dims) if back.wants(numbers[1]) else None,
    )


def _block_sizes(extents: Dims, scales: Dims) -> Dims:
    """For each dimension the number of blocks and their length."""
    return tuple(
        size for extent, count in zip(extents, scales, strict=True) for size in (count, extent // max(count, 1))
    )


def _broadcast_scale(scale: Value, operand: Value, wide: PrimitiveType) -> Value:
    """The scale of each element."""
    extents, shape = array_shape(operand).dims, array_shape(scale)
    if not shape.rank:
        return broadcast_to(convert_to(scale, wide), extents)
    even = tuple(range(0, 2 * shape.rank, 2))
    return reshape_unless_same(broadcast_to(convert_to(scale, wide), _block_sizes(extents, shape.dims), even), extents)


def _sum_blocks(values: Value, scales: Dims) -> Value:
    """The sum over each block."""
    extents = array_shape(values).dims
    if not scales:
        return sum_over(values, range(len(extents)))
    odd = range(1, 2 * len(scales), 2)
    return sum_over(reshape_unless_same(values, _block_sizes(extents, scales)), odd)
