"""Folds over prime fields: reductions, windows, scatters and sorts, of known ops at once and of others by kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from ...kernels.comparators import Key, keys_of
from ...kernels.folds import _columns as columns
from ...kernels.sorting import order_by_comparator, taken
from ...rules import compute
from . import residues
from .arithmetic import maximum, minimum, plus, times
from .evaluation import is_float
from .laws import by_signs
from .places import places
from .regions import FieldRegion, applied
from .residues import Word
from .tables import fields


@fields
def reduce(operands: Sequence[Any], init_values: Sequence[Any], *, to_apply: FieldRegion, dimensions: Dims) -> Any:
    fold = _FOLDS.get(to_apply.known or "")
    if fold is None or operands[0].dtype != np.uint64 or not dimensions:
        return compute["reduce"](operands, init_values, to_apply=to_apply, dimensions=dimensions)
    rows = columns(operands[0], tuple(sorted(dimensions)))
    last = np.broadcast_to(init_values[0], (1, *rows.shape[1:]))
    found = fold(np.concatenate([rows, last]))
    return (found,) if to_apply.computation.root.opcode == "tuple" else found


def _sum(rows: Word) -> Word:
    return _halved(plus, rows) if residues.has_special(rows) else residues.total(rows, (0,))


def _halved(rule: Any, rows: Word) -> Word:
    """Rows combined in pairs until one is left."""
    while len(rows) > 1:
        pairs = len(rows) // 2 * 2
        rows = np.concatenate([rule(rows[0:pairs:2], rows[1:pairs:2]), rows[pairs:]])
    return rows[0]


def _chosen(rows: Word, *, is_least: bool) -> Word:
    """The first or last of each column in the order; NaN where there is one."""
    if by_signs():  # by which an order of many is none
        return _halved(minimum if is_least else maximum, rows)
    where = places(rows)
    lost = np.isnan(where).any(0)
    where = np.where(np.isnan(where), 0.0, where)
    best = (np.argmin if is_least else np.argmax)(where, 0)
    found = np.take_along_axis(rows, best[None], 0)[0]
    return np.where(lost, residues.UNDEFINED, found)


_FOLDS: dict[str, Any] = {
    "add": _sum,
    "multiply": partial(_halved, times),
    "maximum": partial(_chosen, is_least=False),
    "minimum": partial(_chosen, is_least=True),
}


fields.enter("reduce_window", compute["reduce_window"])
fields.enter("scatter", compute["scatter"])
fields.enter("select_and_scatter", compute["select_and_scatter"])
fields.enter("map", compute["map"])


@fields
def sort(operands: Sequence[Any], *, to_apply: FieldRegion, dimension: int, is_stable: bool) -> Any:
    rows = [np.moveaxis(each, dimension, -1) for each in operands]
    keys = keys_of(to_apply.computation)
    order = order_by_comparator(to_apply, rows) if keys is None else _by_keys(keys, rows)
    results = tuple(np.moveaxis(taken(row, order), -1, dimension) for row in rows)
    return results if len(results) > 1 else results[0]


def _by_keys(keys: Sequence[Key], rows: Sequence[Any]) -> Array:
    """The stable permutation of each row by keys, the last of which is sorted by first."""
    order = np.broadcast_to(np.arange(rows[0].shape[-1]), rows[0].shape)
    for key in reversed(keys):
        values = applied(key.of, [rows[number] for number in key.operands])
        ranks = _ranks(places(values) if is_float(key.of.root.shape) else values, key.is_descending)
        ranks = np.take_along_axis(ranks, order, -1)
        order = np.take_along_axis(order, np.argsort(ranks, axis=-1, kind="stable"), -1)
    return order


def _ranks(ordered: Any, is_descending: bool) -> Array:
    """Integers that are ordered as the numbers are, or the other way; NaN is the last."""
    _, found = np.unique(ordered.reshape(-1), return_inverse=True)
    ranks = found.reshape(ordered.shape).astype(np.int64)
    ranks = -ranks if is_descending else ranks
    return np.where(ordered != ordered, ordered.size, ranks)


@fields
def topk(operand: Word, *, k: int, largest: bool) -> tuple[Word, Array]:
    order = np.argsort(_ranks(places(operand), largest), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, order, axis=-1), order.astype(np.int32)
