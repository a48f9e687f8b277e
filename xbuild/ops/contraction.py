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
    """Sums of products over the contracted pairs of dimensions, separately for each index of the batch dimensions.

    Formula: result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]; m and n stand for the free dimensions.
    Shapes: any ranks; paired dimensions have one extent. Result: batch, then lhs free, then rhs free dimensions.
    Types: one for both, two floats (the result has the wider), or two integers with preferred_element_type, the type
    of the result. Floats under 32 bits are summed in f32 and rounded once; integers wrap; pred is the or of ands; no
    terms give 0.
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
    """A `dot` per group: one dimension of lhs is divided into consecutive groups of the lengths `group_sizes`.

    If the ragged dimension is free, each run uses its own entry of rhs's group dimension; result [batch, m, n], 0
    outside all runs. If it is contracted, each run is summed separately; result [group, batch, m, n]. If it is a
    batch dimension, the result is dot's, whatever the runs, which only divide the work.
    Shapes: one ragged dimension; one group dimension if it is free, otherwise none. group_sizes: integers [groups],
    or [the batch and (free or contracted) dimensions before the ragged one, groups] for separate runs in each.
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
    """The `dot` of operands that are multiplied by scales, one for each block of elements.

    Shapes: a scale has its operand's rank, and in each dimension an extent that divides the operand's (the quotient
    is the block size), or rank 0. Result: as dot.
    Types: floats, the four of any precision; products and sums have at least 32 bits and are rounded once.
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
