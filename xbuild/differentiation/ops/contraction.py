"""Cotangents of sums of products: the product of the result's cotangent with the other operand."""

from __future__ import annotations

from attrs import frozen

from shape_inference import Dims, PrimitiveType, f32, f64

from ... import ops
from ...core.builder import Value
from ..forms.arrays import array_of, in_type, like, reshaped
from ..forms.products import Labelled, Labels, Roles, fitting, precisions, preferred, product
from ..rules import Cotangents, Pullback, vjp
from ..support import broadcast_to, sum_over

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
    first, second = _labelled(lhs, rhs, pairs, operand_precision)
    return _of_product(back, back.ct, first, second, _result(first, second, lhs_batch_dims))


def _labelled(
    lhs: Value, rhs: Value, pairs: tuple[Dims, Dims], operand_precision: tuple[str, ...], group: Dims = ()
) -> tuple[Labelled, Labelled]:
    """The operands, paired dimensions with one label: the number of the dimension of lhs."""
    partner = {**dict(zip(pairs[1], pairs[0], strict=True)), **dict.fromkeys(group, _GROUP)}
    left = tuple(range(array_of(lhs).rank))
    right = tuple(partner.get(dim, f"rhs {dim}") for dim in range(array_of(rhs).rank))
    words = operand_precision[:2] or (None, None)
    return Labelled(lhs, left, words[0]), Labelled(rhs, right, words[1])


def _result(first: Labelled, second: Labelled, batch: Dims) -> Labels:
    """The labels of a dot's result: batch, free of lhs, free of rhs."""
    free = Roles.of(first.labels, second.labels, ())
    return batch + free.first_free + tuple(label for label in free.second_free if label != _GROUP)


def _of_product(back: Pullback, ct: Value, lhs: Labelled, rhs: Labelled, result: Labels) -> Cotangents:
    return (
        product(Labelled(ct, result, lhs.precision), rhs, lhs.labels, _type(lhs)) if back.wants(0) else None,
        product(lhs, Labelled(ct, result, rhs.precision), rhs.labels, _type(rhs)) if back.wants(1) else None,
    )


def _type(operand: Labelled) -> PrimitiveType:
    return array_of(operand.value).dtype


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
    """A run meets its own group in the cotangents, too: what is free of three is contracted in the third's."""
    pairs = (lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims)
    first, second = _labelled(lhs, rhs, pairs, operand_precision, rhs_group_dims)
    result, (ragged,) = _result(first, second, lhs_batch_dims), lhs_ragged_dims
    if ragged in lhs_batch_dims:
        return *_of_product(back, back.ct, first, second, result), None
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
    """The runs of a ragged dimension: their sizes, and the labels of that dimension, of batch and contraction."""

    sizes: Value
    ragged: int
    batch: Dims
    contracting: Dims

    def in_order(self, operand: Labelled) -> Labelled:
        """The operand with its contracted dimensions in the order of those of `sizes`, where it has such."""
        if array_of(self.sizes).rank == 1:
            return operand
        first = self.batch + self.contracting
        order = first + tuple(label for label in operand.labels if label not in first)
        return Labelled(operand.ordered(order), order, operand.precision)

    def product(self, first: Labelled, second: Labelled, like: Labelled) -> Value:
        """The product, run by run, of the operand with the ragged dimension and another; labelled as a third array."""
        roles = Roles.of(first.labels, second.labels, like.labels)
        left, right = fitting(first.value, second.value)
        found = ops.ragged_dot(
            left,
            right,
            self.sizes,
            lhs_batch_dims=first.places(self.batch),
            rhs_batch_dims=second.places(self.batch),
            lhs_contracting_dims=first.places(roles.contracted),
            rhs_contracting_dims=second.places(roles.contracted),
            lhs_ragged_dims=first.places((self.ragged,)),
            rhs_group_dims=second.places((_GROUP,)) if _GROUP in second.labels else (),
            operand_precision=precisions(first, second),
            preferred_element_type=preferred(left, right, _type(like)),
        )
        free = roles.first_free + tuple(label for label in roles.second_free if label != _GROUP)
        group = (_GROUP,) if _GROUP in like.labels else ()
        return Labelled(found, group + self.batch + free).ordered(like.labels)


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
    """The product of scaled operands in a wide type, of which each factor has its share."""
    wide = f64 if any(array_of(each).dtype is f64 for each in (lhs, rhs, lhs_scale, rhs_scale)) else f32
    pairs = (lhs_batch_dims + lhs_contracting_dims, rhs_batch_dims + rhs_contracting_dims)
    factors = [(in_type(lhs, wide), _over(lhs_scale, lhs, wide)), (in_type(rhs, wide), _over(rhs_scale, rhs, wide))]
    left_scaled, right_scaled = (ops.multiply(*each) for each in factors)
    first, second = _labelled(left_scaled, right_scaled, pairs, operand_precision)
    result, ct = _result(first, second, lhs_batch_dims), in_type(back.ct, wide)
    left = product(Labelled(ct, result), second, first.labels, wide) if back.wants(0) or back.wants(2) else None
    right = product(first, Labelled(ct, result), second.labels, wide) if back.wants(1) or back.wants(3) else None
    shares = [*_shares(back, (0, 2), left, factors[0], lhs_scale), *_shares(back, (1, 3), right, factors[1], rhs_scale)]
    return tuple(
        like(shares[number], operand)
        for number, operand in zip((0, 2, 1, 3), (lhs, rhs, lhs_scale, rhs_scale), strict=True)
    )


def _shares(
    back: Pullback, numbers: tuple[int, int], ct: Value | None, factors: tuple[Value, Value], scale: Value
) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and of its scale, from that of their product."""
    if ct is None:
        return None, None
    return (
        ops.multiply(ct, factors[1]) if back.wants(numbers[0]) else None,
        _by_block(ops.multiply(ct, factors[0]), array_of(scale).dims) if back.wants(numbers[1]) else None,
    )


def _blocks(extents: Dims, scales: Dims) -> Dims:
    """Of each dimension how many blocks it has, and how long they are."""
    return tuple(
        each for extent, count in zip(extents, scales, strict=True) for each in (count, extent // max(count, 1))
    )


def _over(scale: Value, operand: Value, wide: PrimitiveType) -> Value:
    """The scale of each element."""
    extents, shape = array_of(operand).dims, array_of(scale)
    if not shape.rank:
        return broadcast_to(in_type(scale, wide), extents)
    even = tuple(range(0, 2 * shape.rank, 2))
    return reshaped(broadcast_to(in_type(scale, wide), _blocks(extents, shape.dims), even), extents)


def _by_block(values: Value, scales: Dims) -> Value:
    """The sum over each block."""
    extents = array_of(values).dims
    if not scales:
        return sum_over(values, range(len(extents)))
    odd = range(1, 2 * len(scales), 2)
    return sum_over(reshaped(values, _blocks(extents, scales)), odd)
