"""Values of sort and topk."""

from __future__ import annotations

from typing import Any

import numpy as np

from xbuild.core.attributes import Array

from ..kernels.comparators import keys_of
from ..kernels.sorting import Arrays, first_of, order_by_comparator, order_by_keys, ranks_of, sorted_alone, taken
from ..rules import compute
from ..rules.region import AppliedComputation


@compute
def sort(operands: Arrays, *, to_apply: AppliedComputation, dimension: int, is_stable: bool) -> Any:
    if any(operand.shape != operands[0].shape for operand in operands):
        return _sort_common_region(operands, to_apply=to_apply, dimension=dimension, is_stable=is_stable)
    rows = [_swap_to_last(operand, dimension) for operand in operands]
    ordered = _sort_rows(rows, to_apply) if rows[0].size and rows[0].shape[-1] > 1 else rows
    results = tuple(_swap_to_last(row, dimension) for row in ordered)
    return results if len(results) > 1 else results[0]


def _sort_common_region(operands: Arrays, **attributes: Any) -> tuple[Array, ...]:
    """The sort of operands with different dynamic sizes: only the region common to all operands is sorted."""
    shared = tuple(slice(min(sizes)) for sizes in zip(*(operand.shape for operand in operands), strict=True))
    results = tuple(map(np.array, operands))
    for result, part in zip(results, sort([operand[shared] for operand in operands], **attributes), strict=True):
        result[shared] = part
    return results


def _swap_to_last(array: Array, dimension: int) -> Array:
    """The array with `dimension` swapped with the last; the array itself if it is last, which saves a copy."""
    return array if dimension == array.ndim - 1 else array.swapaxes(dimension, -1)


def _sort_rows(rows: Arrays, to_apply: AppliedComputation) -> Arrays:
    """The operands with every row (the last axis) sorted."""
    keys = keys_of(to_apply.computation)
    if keys is not None and len(keys) == len(rows) == 1 and not to_apply.flushed:
        alone = sorted_alone(rows[0], keys[0])
        if alone is not None:
            return (alone,)
    order = (
        order_by_comparator(to_apply, rows) if keys is None else order_by_keys(keys, rows, is_flushed=to_apply.flushed)
    )
    return [taken(row, order) for row in rows]


@compute
def topk(operand: Array, *, k: int, largest: bool) -> tuple[Array, Array]:
    (ranks,) = ranks_of(operand, largest, operand.dtype.kind not in "biu")
    order = first_of(ranks, k)
    return np.take_along_axis(operand, order, axis=-1), order.astype(np.int32)
