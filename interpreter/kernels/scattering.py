"""In-place scatter of rows: updates of the same row are combined in the order of the updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from xbuild.core.attributes import Array

from ..rules.region import AppliedComputation
from .applying import applied
from .folds import SIGNING, Arrays, ufunc_of, with_signs

BLOCK = 1 << 20
"""The number of updates processed at once, which bounds the size of temporary arrays."""

_AT_ONCE = frozenset({"add", "multiply", "maximum", "minimum"})
"""The opcodes of ufuncs whose `at` is fast on one-dimensional arrays."""


def combine_at(region: AppliedComputation, targets: Arrays, rows: Array, updates: Arrays) -> None:
    """Row `rows[n]` of each target is replaced by the computation's result on this row and row n of the updates."""
    kept = chosen(region, len(targets))
    if kept == "current":
        return
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK].astype(np.intp, copy=False)
        new = tuple(update[start : start + BLOCK] for update in updates)
        if kept == "update":
            _overwrite(targets, part, new)
        elif may_reorder(region, targets[0]):
            _signed_by_ufunc(region.reordering or "", targets[0], part, new[0])
        else:
            _by_rounds(region, targets, part, new)


def combine_in(region: AppliedComputation, targets: Arrays, updates: Arrays) -> None:
    """Each element of the targets is replaced by the computation's result on it and the update at its index."""
    kept = chosen(region, len(targets))
    if kept == "current":
        return
    if kept == "update":
        found = updates
    elif region.opcode and targets[0].dtype.isbuiltin == 1:
        result = ufunc_of(region.opcode, targets[0].dtype)(targets[0], updates[0])
        found = (with_signs(region.opcode, result, lambda zero: zero(targets[0]) | zero(updates[0])),)
    else:
        found = applied(region, [*targets, *updates])
    for target, each in zip(targets, found, strict=True):
        target[...] = each


def chosen(region: AppliedComputation, count: int) -> str | None:
    """ "current" or "update" if the computation returns the current values or the updates unchanged, else None."""
    root, parameters = region.computation.root, region.computation.parameters
    results = (root,) if count == 1 else root.operands if root.opcode == "tuple" else ()
    if results == parameters[:count]:
        return "current"
    return "update" if results == parameters[count:] else None


def may_reorder(region: AppliedComputation, target: Array) -> bool:
    """Whether updates may be combined with each other first: a known op in a type that does not round at each step."""
    if region.reordering is None:
        return False
    is_small = target.dtype.isbuiltin != 1 or target.dtype == np.float16
    return not is_small


def _overwrite(targets: Arrays, rows: Array, updates: Arrays) -> None:
    """Overwrite rows by updates; NumPy assigns in index order, so that the last update of a row remains."""
    for target, update in zip(targets, updates, strict=True):
        target[rows] = update


def _signed_by_ufunc(opcode: str, target: Array, rows: Array, update: Array) -> None:
    """Scatter by a ufunc, with the signs that XLA gives to zeros in maxima and minima."""
    before = target.copy() if opcode in SIGNING and target.dtype.kind == "f" else target
    _by_ufunc(opcode, target, rows, update)

    def any_of(zero: Callable[[Array], Array]) -> Array:
        found = zero(before)
        _by_ufunc("or", found, rows, zero(update))
        return found

    signed = with_signs(opcode, target, any_of)
    if signed is not target:
        target[...] = signed


def _by_ufunc(opcode: str, target: Array, rows: Array, update: Array) -> None:
    ufunc = ufunc_of(opcode, target.dtype)
    if target.ndim == 1 and opcode in _AT_ONCE and target.dtype != np.bool_:
        ufunc.at(target, rows, update)
        return
    order, starts = _segments(rows)
    if target.ndim == 1:
        places = rows[order[starts]]
        target[places] = ufunc(target[places], ufunc.reduceat(update[order], starts))
    elif len(starts) < 4 * np.diff(starts, append=len(rows)).max():
        for those in np.split(order, starts[1:]):
            target[rows[those[0]]] = ufunc(target[rows[those[0]]], ufunc.reduce(update[those], axis=0))
    else:
        for those in _rounds(order, starts):
            target[rows[those]] = ufunc(target[rows[those]], update[those])


def _segments(rows: Array) -> tuple[Array, Array]:
    """The stable permutation that groups equal rows, and the start of each group in it."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    return order, np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))


def _by_rounds(region: AppliedComputation, targets: Arrays, rows: Array, updates: Arrays) -> None:
    for those in _rounds(*_segments(rows)):
        places = rows[those]
        found = applied(region, [*(t[places] for t in targets), *(u[those] for u in updates)])
        for target, each in zip(targets, found, strict=True):
            target[places] = each


def _rounds(order: Array, starts: Array) -> Iterator[Array]:
    """The first update of every row, then the second update of every row, and so on."""
    lengths = np.diff(starts, append=len(order))
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[by_length], lengths[by_length]
    for number in range(lengths[0]):
        several = np.searchsorted(-lengths, -number)
        yield order[starts[:several] + number]
