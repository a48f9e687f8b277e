"""Ops that put elements in order."""

from __future__ import annotations

from ..core.attributes import Region
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = ["sort", "topk"]


@op(Properties("mixed", calls="elements"))
def sort(operands: Values, *, to_apply: Region, dimension: int, is_stable: bool = False) -> Value:
    """Sort the elements along `dimension` with a comparator.

    Each row is sorted separately; all operands are permuted in the same way. `to_apply` returns whether the elements at
    one position precede those at another. The sort is always stable here. With an inconsistent comparator, the result
    is still a permutation. With a plain LT or GT on floats, NaNs come last, and -0 equals 0. With TOTALORDER, all
    floats are ordered.
    Shapes: takes N arrays with the same extents. `to_apply` maps (T_0, T_0, ..., T_N-1, T_N-1) -> pred[]: the two
    elements of each operand are adjacent parameters. Returns one array, or a tuple of arrays if N > 1.
    Raises: arity_mismatch, not_array, rank_mismatch, dimension_mismatch, dimension_out_of_range or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[2], xb.s32[2])
    ... def by_key(keys, values):
    ...     return xb.ops.sort((keys, values), to_apply=lambda a, b, x, y: a < b, dimension=0)
    >>> xb.evaluate(by_key, [3, 1], [42, 50])
    (array([1, 3], dtype=int32), array([50, 42], dtype=int32))

    Source: Operation Semantics, Sort; StableHLO, sort.
    """
    ...


@op(Properties("mixed", work="none"))
def topk(operand: Value, *, k: int, largest: bool = True) -> Value:
    """Return the `k` largest (or smallest) elements of each row (the last dimension) in order, and their indices.

    Floats are compared in total order: NaN is the greatest, a negative NaN is the least, and -0 is below 0. Among equal
    elements, the first in the row comes first.
    Shapes: takes pred, integers or floats of rank 1 or higher. k is at most the last extent. Returns (T[..., k],
    s32[..., k]).
    Raises: not_array, rank_too_small, element_type_unsupported, negative_size or index_out_of_range.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[4])(lambda x: xb.ops.topk(x, k=2)), [1.0, 3.0, 2.0, 3.0])
    (array([3., 3.], dtype=float32), array([1, 3], dtype=int32))

    Source: xla_builder.h, TopK; HloOpcode, topk.
    """
    ...
