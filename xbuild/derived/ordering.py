"""Convenience forms of sort and topk, and XlaBuilder's approx_top_k."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shape_inference import refuse
from shape_inference.dims import array
from shape_inference.dims import dimension as check_dimension

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation
from .shaping import pad
from .slicing import slice_in_dim
from .support import as_list, as_values, builder_among, dressed, dtype_of, normalize_dimensions, shape_of

__all__ = ["approx_top_k", "approx_top_k_fallback", "approx_top_k_reduction_output_size", "sort", "top_k"]


@dressed
def sort(
    operands: Any,
    comparator: Computation | Callable[..., Any] | Value | None = None,
    dimension: int = -1,
    is_stable: bool = False,
    *,
    name: str | None = None,
) -> Value:
    """Sort the elements along a dimension (default: the last).

    All operands (one, or a list) are permuted in the same way.
    Without a comparator, the first operand determines an ascending order. Floats are sorted in total order: NaN is
    last, and -0 precedes 0. `sort(keys, values)` means `sort((keys, values))`.
    Raises: the same errors as xb.ops.sort.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[3])(xb.sort), [3.0, 1.0, 2.0])
    array([1., 2., 3.], dtype=float32)
    >>> xb.evaluate(xb.computation(xb.s32[2], xb.s32[2])(lambda keys, values: xb.sort(keys, values)), [3, 1], [42, 50])
    (array([1, 3], dtype=int32), array([50, 42], dtype=int32))

    Source: Operation Semantics, Sort; xla_builder.h, Sort.
    """
    values = tuple(as_list(operands))
    if isinstance(comparator, Value):
        values = (*values, comparator)
        comparator = None
    rank = array("operand", shape_of(values[0])).rank if values else 0
    return ops.sort(
        values,
        to_apply=comparator or _ascending,
        dimension=normalize_dimensions(dimension, rank),
        is_stable=is_stable,
        name=name,
    )


def _ascending(first: Value, second: Value, *rest: Value) -> Value:
    """The comparator of an ascending order by the first operand."""
    dtype = dtype_of(first)
    is_float = dtype is not None and dtype.is_float
    return ops.compare(first, second, direction="LT", type="TOTALORDER" if is_float else None)


@dressed
def top_k(operand: Value, k: int, largest: bool = True, *, name: str | None = None) -> Value:
    """Return the `k` largest (or smallest) elements of each row (the last dimension) in order, and their indices.

    Raises: the same errors as xb.ops.topk.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4])
    ... def best(x):
    ...     values, places = xb.top_k(x, 2)
    ...     return places
    >>> xb.evaluate(best, [1.0, 3.0, 2.0, 4.0])
    array([3, 1], dtype=int32)

    Source: xla_builder.h, TopK.
    """
    return ops.topk(operand, k=k, largest=largest, name=name)


@dressed
def approx_top_k(
    operands: Any,
    init_values: Any,
    top_k: int,
    reduction_dim: int,
    comparator: Computation | Callable[..., Any],
    recall_target: float = 0.9,
    aggregate_to_topk: bool = True,
    reduction_input_size_override: int = -1,
    *,
    name: str | None = None,
) -> Value:
    """Return the first `top_k` elements along a dimension, in the order of `comparator`.

    All operands (one, or a list) are permuted in the same way, and the result is a tuple with an array for each
    operand. The result is exact, regardless of `recall_target`. Without `aggregate_to_topk`, the result has as many
    elements as xb.approx_top_k_reduction_output_size returns, padded with the init values (one, or a list) if the
    operand has fewer. `xb.approx_top_k_fallback` is another name.
    Raises: dimension_out_of_range; index_out_of_range if top_k is larger than the extent; also the same errors as
    xb.sort and xb.pad.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4], xb.s32[4])
    ... def best(x, i):
    ...     return xb.approx_top_k((x, i), (float("-inf"), -1), 2, 0, lambda a, b, *_: a > b)
    >>> xb.evaluate(best, [1.0, 3.0, 2.0, 4.0], [0, 1, 2, 3])
    (array([4., 3.], dtype=float32), array([3, 1], dtype=int32))

    Source: XlaBuilder's library, ApproxTopK.
    """
    values = tuple(as_list(operands))
    inits = as_values(as_list(init_values), [dtype_of(value) for value in values], builder_among(values))
    shape = array("operand", shape_of(values[0]))
    reduction_dim = normalize_dimensions(reduction_dim, shape.rank)
    extent = shape.dims[check_dimension("reduction_dim", reduction_dim, "operand", shape)]
    if not 0 <= top_k <= extent:
        refuse(
            "index_out_of_range", f"expected top_k in 0..{extent} for dimension {reduction_dim} of {shape}, got {top_k}"
        )
    count, _ = approx_top_k_reduction_output_size(
        extent, shape.rank, top_k, recall_target, aggregate_to_topk, reduction_input_size_override
    )
    ordered = ops.sort(values, to_apply=comparator, dimension=reduction_dim, is_stable=True)
    rows = list(ordered) if len(values) > 1 else [ordered]
    found = [_first(row, init, count, extent, reduction_dim) for row, init in zip(rows, inits, strict=True)]
    return ops.tuple_(found, name=name)


approx_top_k_fallback = approx_top_k


def _first(row: Value, init: Value, count: int, extent: int, dim: int) -> Value:
    """The first `count` elements along a dimension, filled with init values after the last."""
    row = slice_in_dim(row, 0, min(count, extent), dimno=dim)
    rank = array("operand", row.shape).rank
    return pad(row, init, [(0, max(count - extent, 0) if n == dim else 0) for n in range(rank)])


def approx_top_k_reduction_output_size(
    input_size: int,
    rank: int,
    top_k: int,
    recall_target: float,
    aggregate_to_topk: bool = True,
    input_size_override: int = -1,
) -> tuple[int, int]:
    """Return the number of elements that approx_top_k keeps, and the base-2 logarithm of its bin size.

    The logarithm is -1 if exactly top_k elements are kept.
    Formula: each bin keeps its best element. To reach the expected recall, at least (1 - k) / log(recall) bins are
    used. The number of bins is the input size divided by a power of two, rounded to whole tiles of 128 (1024 for rank
    1).
    Raises: invalid_attribute if recall_target is outside (0, 1].

    >>> import xbuild as xb
    >>> xb.approx_top_k_reduction_output_size(100_000, 2, 10, 0.95, aggregate_to_topk=False)
    (256, 9)

    Source: XlaBuilder's library, ApproxTopKReductionOutputSize; Chern et al., TPU-KNN (2022).
    """
    if not 0 < recall_target <= 1:
        refuse("invalid_attribute", f"recall_target must be greater than 0 and at most 1, got {recall_target}")
    if aggregate_to_topk:
        return top_k, -1
    tile = 1024 if rank == 1 else 128
    if input_size <= tile:
        return input_size, 0
    size = input_size_override if input_size_override >= 0 else input_size
    if top_k == 1:
        return tile, (-(-size // tile) - 1).bit_length()
    if recall_target == 1:
        return input_size, 0
    bins = min(max(int((1 - top_k) / math.log(recall_target)), tile), size)
    halvings = (size // max(bins, 1)).bit_length() - 1
    if halvings <= 0:
        return input_size, 0
    halvings = min(halvings, (input_size // tile - 1).bit_length())
    return -(-input_size // (tile << halvings)) * tile, halvings
