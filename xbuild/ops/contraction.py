"""The op that sums products of two arrays over pairs of dimensions."""

from __future__ import annotations

from shape_inference import Dims, PrimitiveType

from ..builder import Value
from ..op import op


@op
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
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[2, 3], xb.f32[2, 3])
    ... def product(x, y):
    ...     return xb.ops.dot(x, y, lhs_contracting_dims=(1,), rhs_contracting_dims=(1,))
    >>> evaluate(product, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    array([[ 6., 12.],
           [15., 30.]], dtype=float32)

    Source: Operation Semantics, DotGeneral; StableHLO, dot_general.
    """
    ...
