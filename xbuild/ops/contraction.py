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
    """Sum products over the pairs of contracted dimensions, separately for each index of the batch dimensions.

    Formula: result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], where m and n are the free dimensions.
    Shapes: takes arrays of any rank. Paired dimensions have the same extent. The result has the batch dimensions, then
    the free dimensions of lhs, then those of rhs.
    Types: both operands have the same type, or both are floats and the result has the wider type, or both are integers
    and the result has the type preferred_element_type. Floats narrower than 32 bits are summed in f32 and rounded once.
    Integers wrap. For pred, the sum is the logical or, and the product is the logical and. An empty sum is 0.
    Raises: not_array, element_type_mismatch, attribute_length_mismatch, dimension_out_of_range, duplicate_dimension,
    dimension_mismatch, invalid_attribute or overflow.

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
    """Compute a `dot` for each group: a dimension of lhs is divided into consecutive groups whose lengths are
    `group_sizes`.

    If the ragged dimension is free, each group of rows uses its own entry of rhs's group dimension; the result [batch,
    m, n] is 0 outside all groups. If the ragged dimension is contracted, each group is summed separately; the result is
    [group, batch, m, n]. If it is a batch dimension, the result equals that of dot: the groups only divide the work.
    Shapes: there is one ragged dimension. There is one group dimension if the ragged dimension is free, and none
    otherwise. `group_sizes` holds integers of shape [groups]. It may also have, as leading dimensions, the batch, free
    or contracted dimensions that precede the ragged one; each index of those dimensions then has its own groups.
    Types: the rules of dot apply.
    Raises: the same errors as dot; also attribute_length_mismatch, rank_mismatch or element_type_unsupported.

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
    """Compute the `dot` of scaled operands; each block of elements has its own scale.

    Shapes: a scale has rank 0 or the rank of its operand. In each dimension, the extent of the scale divides that of
    the operand, and the quotient is the block size. The result has the same shape as the result of dot.
    Types: all four operands are floats of any precision. Products and sums are computed in at least 32 bits and rounded
    once.
    Raises: the same errors as dot; also element_type_unsupported, rank_mismatch or divisibility.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f8e4m3fn[1, 4], xb.f8e4m3fn[1, 4], xb.f8e8m0fnu[1, 2], xb.f8e8m0fnu[1, 2])
    ... def product(x, y, x_scale, y_scale):
    ...     return xb.scaled_dot(x, y, x_scale, y_scale, ((1,), (1,)), preferred_element_type=xb.f32)
    >>> xb.evaluate(product, [[1.0, 1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0]], [[1.0, 1.0]])
    array([[17.]], dtype=float32)

    Source: HloOpcode, scaled-dot; xla/hlo/ir/hlo_instructions.h, HloScaledDotInstruction.
    """
    ...
