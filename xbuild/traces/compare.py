"""Comparison of two traces, or of two devices of one trace: the first value in which they differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from attrs import astuple, frozen

from shape_inference import TokenShape

from .data import Trace
from .summary import Summary


@frozen
class Difference:
    """Two events of the same name, path and turn whose values differ; `apart` is the greatest difference.

    `index` is the first element that differs, None for summaries and for values of unlike shapes. `cause` says whether
    the operands of both events are the same, as far as they were kept.
    """

    first: int
    second: int
    index: tuple[int, ...] | None
    apart: float | None
    cause: bool


@frozen
class Comparison:
    """The result of a comparison: the number of values compared, and the first difference.

    `alone` counts events of the first trace without a counterpart, `unkept` pairs of which a value was not kept.
    """

    compared: int
    alone: int
    unkept: int
    difference: Difference | None


def compare_traces(
    a: Trace, b: Trace, devices: tuple[int, int] | None = None, eps: float = 0.0, name: str | None = None
) -> Comparison:
    """Compare two traces in the logical time of the first; `devices` restricts the comparison to one device of each,
    `name` to one instruction.

    Elements that differ by at most `eps` count as equal, and so do two NaNs.
    """
    there = {key: number for number, key in _keys(b, devices and devices[1], name)}
    here = sorted(_keys(a, devices and devices[0], name), key=lambda pair: int(a.time[pair[0]]))
    compared = alone = unkept = 0
    for number, key in here:
        other = there.get(key)
        if other is None:
            alone += 1
            continue
        if number not in a.values or other not in b.values:
            unkept += not isinstance(a.spots[int(a.spot[number])].instruction.shape, TokenShape)
            continue
        compared += 1
        found = apart(a.values[number], b.values[other], eps)
        if found is not None:
            cause = _same_operands(a, b, number, other, eps)
            return Comparison(compared, alone, unkept, Difference(number, other, *found, cause))
    return Comparison(compared, alone, unkept, None)


def _keys(trace: Trace, device: int | None, name: str | None) -> Iterator[tuple[int, Hashable]]:
    """The events to compare, each with the key that it shares with its counterpart in another trace."""
    sites = [(spot.path, spot.instruction.name) for spot in trace.spots]
    rows = zip(trace.device.tolist(), trace.spot.tolist(), trace.count.tolist(), strict=True)
    for number, (on, spot, count) in enumerate(rows):
        if device in (None, on) and name in (None, sites[spot][1]):
            yield number, (on if device is None else None, *sites[spot], count)


def _same_operands(a: Trace, b: Trace, number: int, other: int, eps: float) -> bool:
    pairs = zip(a.operands(number), b.operands(other), strict=False)
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    return all(apart(a.values.get(x), b.values.get(y), eps) is None for x, y in known)


def apart(x: Any, y: Any, eps: float = 0.0) -> tuple[tuple[int, ...] | None, float | None] | None:
    """The first element in which two values differ, and the greatest difference; None where none is known."""
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
