"""Reduce: dimensions of arrays folded by a computation on scalars."""

from __future__ import annotations

from shape_inference import Dims

from ..core.attributes import Region
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties


@op(Properties("mixed", calls="elements"))
def reduce(operands: Values, init_values: Values, *, to_apply: Region, dimensions: Dims) -> Value:
    """Reduce the operands over `dimensions` with `to_apply`, starting from `init_values`, in any order.

    Shapes: takes N arrays with the same extents and N scalars. `to_apply` maps (T_0, ..., T_N-1, T_0, ..., T_N-1) ->
    T_0, or the tuple of all T_i if N > 1. T_i is the element type of the result: that of operand i, or a wider float.
    Only `dimensions` are removed. The init value counts once for each result, and is the result if there are no
    elements.
    Raises: arity_mismatch, not_array, rank_mismatch, dimension_mismatch, dimension_out_of_range, duplicate_dimension or
    signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 3], xb.f32[()])
    ... def row_sums(x, zero):
    ...     return xb.ops.reduce(x, zero, to_apply=xb.add, dimensions=(1,))
    >>> xb.evaluate(row_sums, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 0.0)
    array([ 6., 15.], dtype=float32)

    Source: Operation Semantics, Reduce.
    """
    ...
