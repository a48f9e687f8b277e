"""Choice of the detail of values in a step page: all values get coarser before any is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from ..traces import Summary, Trace
from ..traces.pool import Pool
from ..traces.summary import coarser, summaries
from .packing import format_of, in_base64, shades, small_ints

ROOM = 12 << 20
"""The greatest number of characters that the values of a page take."""

_LETTERS = 4 / 3
_FIGURES = 40


@frozen
class Detail:
    """A level of detail: arrays of up to `whole` elements are kept, others become means of `cells` x `cells` blocks."""

    whole: int
    cells: int

    def __str__(self) -> str:
        blocks = "range, mean and the means of blocks" if self.cells else "range and mean"
        return f"arrays of more than {self.whole} element{'s' * (self.whole > 1)} are told by {blocks}"


LEVELS = (Detail(256, 16), Detail(96, 8), Detail(32, 4), Detail(8, 2), Detail(1, 0))


@frozen
class Fitted:
    """The values of a page; `refs` has the number of each event's value, or -1; `left_out` says what is missing."""

    data: dict[str, Any]
    refs: list[int]
    left_out: str


def fitted(trace: Trace, room: int = ROOM) -> Fitted:
    """All values in the finest detail that fits; where even summaries do not fit, the values of every n-th step."""
    values = dict(trace.values)
    sizes = np.array([*_sizes(values.values())], np.int64).reshape(-1, 2)
    level = next((level for level in LEVELS if _cost(sizes, level) <= room), LEVELS[-1])
    every = max(1, -int(-_cost(sizes, level) // room)) if level is LEVELS[-1] else 1
    while True:
        pool, refs = _pooled(trace, values, level, every)
        if pool.size * _LETTERS <= room or every > len(trace):
            break
        every *= 2
    told = [f"to keep it small, {level}"] if level is not LEVELS[0] else []
    if every > 1:
        told.append(f"values are of one step in {every}")
    kind, _, letters = pool.columns
    data = {"kinds": pool.kinds, "kind": small_ints(kind), "bytes": in_base64(letters)}
    return Fitted(data, refs, "; ".join(told))


def _sizes(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """The number of elements and the bytes of an element of each distinct array."""
    known: set[int] = set()
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif value is not None and id(value) not in known:
            known.add(id(value))
            size = int(np.prod(value.dims)) if isinstance(value, Summary) else value.size
            yield (size, 1 << 30) if isinstance(value, Summary) else (size, max(4, value.itemsize))


def _cost(sizes: Any, level: Detail) -> float:
    """Estimate of the number of characters that all arrays take."""
    if not len(sizes):
        return 0.0
    size, width = sizes[:, 0], sizes[:, 1]
    short = _FIGURES + np.minimum(size, level.cells**2)
    whole = (size <= level.whole) & (width < 1 << 30)
    return float(np.where(whole, size * np.minimum(width, 16), short).sum() * _LETTERS + len(size) * 2)


def _pooled(trace: Trace, values: Mapping[int, Any], level: Detail, every: int) -> tuple[Pool, list[int]]:
    if every > 1:
        values = {number: values[number] for number in values if trace.time[number] % every == 0}
    pool, refs, short = Pool(format_of, shades), [-1] * len(trace), _shortened(values.values(), level)
    for number, value in values.items():
        refs[number] = pool.add(_in_detail(value, short))
    return pool, refs


def _shortened(values: Iterable[Any], level: Detail) -> dict[int, tuple[Any, Any]]:
    """The arrays that this level of detail summarises, by identity, each with its summary."""
    large: dict[int, Any] = {}
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif isinstance(value, Summary):
            if level is not LEVELS[0]:
                large[id(value)] = value
        elif value is not None and value.size > level.whole:
            large[id(value)] = value
    arrays = [value for value in large.values() if not isinstance(value, Summary)]
    short = {id(value): (value, told) for value, told in zip(arrays, summaries(arrays, level.cells), strict=True)}
    told = (value for value in large.values() if isinstance(value, Summary))
    return short | {id(value): (value, coarser(value, level.cells)) for value in told}


def _in_detail(value: Any, short: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, tuple):
        return tuple(_in_detail(each, short) for each in value)
    found = short.get(id(value))
    return value if found is None or found[0] is not value else found[1]
