"""Ops that sum products of two arrays over pairs of dimensions."""

from __future__ import annotations

from shape_inference import Dims, PrimitiveType

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["dot", "ragged_dot", "scaled_dot"]


@op(Properties("mixed", denormals="flushed"))
def dot(
    lhs: Value,
    rhs: Value,
    *,
    lhs_contracting_dims: Dims = (),
    rhs_contracting_dims: Dims = (),
    lhs_batch_dims: Dims = (),
    rhs_batch_dims: Dims = (),
    operand_precision: tuple[str, ...] = (),
    preferred_element_type: PrimitiveType | None = None,
) -> Value:
    """Sums of products over the contracted pairs of dimensions, apart for each index of the batch pairs.

    Formula: result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]; m and n stand for the free dimensions.
    Shapes: any ranks; paired dimensions have one extent. Result: batch, then lhs free, then rhs free dimensions.
    Types: one for both, two floats (the wider), or two integers with preferred_element_type; that is the result's.
    Floats under 32 bits are summed in f32 and rounded once; integers wrap; pred is the or of ands; no terms give 0.
    Raises: not_array; element_type_mismatch; attribute_length_mismatch; dimension_out_of_range; duplicate_dimension;
    dimension_mismatch; invalid_attribute; overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3], xb.f32[2, 3])
    ... def product(x, y):
    ...     return xb.ops.dot(x, y, lhs_contracting_dims=(1,), rhs_contracting_dims=(1,))
    >>> xb.evaluate(product, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    array([[ 6., 12.],
           [15., 30.]], dtype=float32)

    Source: Operation Semantics, DotGeneral; StableHLO, dot_general.
    """
    ...


@op(Properties("mixed", denormals="flushed"))
def ragged_dot(
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    *,
    lhs_batch_dims: Dims = (),
    lhs_contracting_dims: Dims = (),
    rhs_batch_dims: Dims = (),
    rhs_contracting_dims: Dims = (),
    lhs_ragged_dims: Dims,
    rhs_group_dims: Dims = (),
    operand_precision: tuple[str, ...] = (),
    preferred_element_type: PrimitiveType | None = None,
) -> Value:
    """`dot` group by group: one dimension of lhs falls into runs of the lengths `group_sizes`, one after the other.

    The ragged dimension is free: a run meets its own entry of rhs's group dimension; result [batch, m, n], 0 outside of
    all runs. It is contracted: each run is summed for itself; result [group, batch, m, n]. It is a batch dimension: the
    result is dot's, whatever the runs, which only share out the work.
    Shapes: one ragged dimension; one group dimension where it is free, else none. group_sizes: integers [groups], or
    [the batch and (free or contracted) dimensions before the ragged one, groups] for runs of their own in each.
    Types: as dot.
    Raises: as dot; attribute_length_mismatch; rank_mismatch; element_type_unsupported.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3, 1], xb.f32[2, 1, 1], xb.s32[2])
    ... def experts(tokens, weights, counts):
    ...     return xb.ragged_dot(tokens, weights, counts)
    >>> xb.evaluate(experts, [[1.0], [2.0], [3.0]], [[[10.0]], [[100.0]]], [2, 1])
    array([[ 10.],
           [ 20.],
           [300.]], dtype=float32)

    Source: HloOpcode, ragged-dot; xla_data.proto, RaggedDotDimensionNumbers.
    """
    ...


@op(Properties("mixed", denormals="flushed"))
def scaled_dot(
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    rhs_scale: Value,
    *,
    lhs_batch_dims: Dims = (),
    lhs_contracting_dims: Dims = (),
    rhs_batch_dims: Dims = (),
    rhs_contracting_dims: Dims = (),
    operand_precision: tuple[str, ...] = (),
    preferred_element_type: PrimitiveType | None = None,
) -> Value:
    """`dot` of operands each of which is multiplied by a scale, one for each block of elements.

    Shapes: a scale has its operand's rank, and in each dimension an extent that divides the operand's (a block has the
    quotient), or rank 0. Result: as dot.
    Types: floats, the four of any precision; products and sums are of 32 bits and more, rounded once.
    Raises: as dot; element_type_unsupported; rank_mismatch; divisibility.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f8e4m3fn[1, 4], xb.f8e4m3fn[1, 4], xb.f8e8m0fnu[1, 2], xb.f8e8m0fnu[1, 2])
    ... def product(x, y, x_scale, y_scale):
    ...     return xb.scaled_dot(x, y, x_scale, y_scale, ((1,), (1,)), preferred_element_type=xb.f32)
    >>> xb.evaluate(product, [[1.0, 1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0]], [[1.0, 1.0]])
    array([[17.]], dtype=float32)

    Source: HloOpcode, scaled-dot; xla/hlo/ir/hlo_instructions.h, HloScaledDotInstruction.
    """
    ...
