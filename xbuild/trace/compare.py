"""The first value in which two traces, or two devices of one, differ."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from attrs import astuple, frozen

from .data import Trace
from .summary import Summary


@frozen
class Difference:
    """Two events of the same name, path and turn whose values differ; `apart` is by how much at most.

    `index` is the element where they first differ, None of summaries and of values of unlike shapes. `cause` says
    whether what both were computed from is the same, as far as it was kept.
    """

    first: int
    second: int
    index: tuple[int, ...] | None
    apart: float | None
    cause: bool


@frozen
class Comparison:
    """How many values were compared, how many of the first have no counterpart, and the first difference."""

    compared: int
    alone: int
    difference: Difference | None


def compare_traces(a: Trace, b: Trace, devices: tuple[int, int] | None = None, eps: float = 0.0) -> Comparison:
    """Go through the first trace in logical time; `devices` are those of the first and the second to compare alone.

    Values that are no further apart than `eps` are the same, and so are NaNs.
    """
    there: dict[Hashable, int] = {}
    for number in range(len(b)):
        if devices is None or b.device[number] == devices[1]:
            there[_key(b, number, devices)] = number
    compared = alone = 0
    for number in np.argsort(a.time, kind="stable").tolist():
        if devices is not None and a.device[number] != devices[0]:
            continue
        other = there.get(_key(a, number, devices))
        if other is None:
            alone += 1
            continue
        found = apart(a.values.get(number), b.values.get(other), eps)
        compared += 1
        if found is not None:
            cause = _same_operands(a, b, number, other, eps)
            return Comparison(compared, alone, Difference(number, other, *found, cause))
    return Comparison(compared, alone, None)


def _key(trace: Trace, number: int, devices: tuple[int, int] | None) -> Hashable:
    spot = trace.spots[int(trace.spot[number])]
    device = None if devices is not None else int(trace.device[number])
    return device, spot.path, spot.instruction.name, int(trace.count[number])


def _same_operands(a: Trace, b: Trace, number: int, other: int, eps: float) -> bool:
    pairs = zip(a.operands(number), b.operands(other), strict=False)
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    return all(apart(a.values.get(x), b.values.get(y), eps) is None for x, y in known)


def apart(x: Any, y: Any, eps: float = 0.0) -> tuple[tuple[int, ...] | None, float | None] | None:
    """Where two values first differ, and by how much at most; None where they do not, or one was not kept."""
    if x is None or y is None:
        return None
    if isinstance(x, tuple) and isinstance(y, tuple):
        parts = (apart(left, right, eps) for left, right in zip(x, y, strict=False))
        return next((part for part in parts if part is not None), None)
    if isinstance(x, Summary) and isinstance(y, Summary):
        same = astuple(x)[:-1] == astuple(y)[:-1] and np.array_equal(x.cells, y.cells)
        return None if same else (None, None)
    if isinstance(x, tuple | Summary) or isinstance(y, tuple | Summary) or np.shape(x) != np.shape(y):
        return None, None
    return _elements_apart(np.asarray(x), np.asarray(y), eps)


def _elements_apart(x: Any, y: Any, eps: float) -> tuple[tuple[int, ...], float] | None:
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        left, right = x.astype(wide), y.astype(wide)
        gap = np.where(x == y, 0.0, np.abs(left - right))
    gap = np.where(np.isnan(left) & np.isnan(right), 0.0, np.where(np.isnan(gap), np.inf, gap))
    off = np.argwhere(gap > eps)
    return (tuple(off[0].tolist()), float(gap.max())) if len(off) else None
