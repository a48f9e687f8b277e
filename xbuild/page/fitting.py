"""Which values a page has room for, and in how much detail: all of them coarser, before some of them not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from ..trace import Summary, Trace, summary
from ..trace.pool import Pool
from ..trace.summary import coarser
from .packing import format_of, in_base64, small_ints

ROOM = 6 << 20
"""How many letters the values of a page take."""

_LETTERS = 4 / 3
_FIGURES = 40


@frozen
class Detail:
    """Arrays of up to `whole` elements stand in a page one by one, larger ones by the means of `cells` x `cells` blocks."""

    whole: int
    cells: int

    def __str__(self) -> str:
        blocks = "range, mean and the means of blocks" if self.cells else "range and mean"
        return f"arrays of more than {self.whole} element{'s' * (self.whole > 1)} are told by {blocks}"


LEVELS = (Detail(256, 16), Detail(96, 8), Detail(32, 4), Detail(8, 2), Detail(1, 0))


@frozen
class Fitted:
    """The values of a page: for each event the number of its value, -1 where there is none; and what was left out."""

    data: dict[str, Any]
    refs: list[int]
    left_out: str


def fitted(trace: Trace, room: int = ROOM) -> Fitted:
    """All values in as much detail as there is room for; where even summaries are too many, those of each n-th step."""
    sizes = np.array([*_sizes(trace)], np.int64).reshape(-1, 2)
    level = next((level for level in LEVELS if _cost(sizes, level) <= room), LEVELS[-1])
    every = max(1, -int(-_cost(sizes, level) // room)) if level is LEVELS[-1] else 1
    while True:
        pool, refs = _pooled(trace, level, every)
        if pool.size * _LETTERS <= room or every > len(trace):
            break
        every *= 2
    told = [f"to keep it small, {level}"] if level is not LEVELS[0] else []
    if every > 1:
        told.append(f"values are of each {every}th step")
    kind, _, letters = pool.columns
    data = {"kinds": pool.kinds, "kind": small_ints(kind), "bytes": in_base64(letters)}
    return Fitted(data, refs, "; ".join(told))


def _sizes(trace: Trace) -> Iterator[tuple[int, int]]:
    """Elements and bytes of an element of all arrays, each once."""
    known: dict[int, Any] = {}
    stack = [*trace.values.values()]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif value is not None and id(value) not in known:
            known[id(value)] = value
            size = int(np.prod(value.dims)) if isinstance(value, Summary) else value.size
            yield (size, 1 << 30) if isinstance(value, Summary) else (size, max(4, value.itemsize))


def _cost(sizes: Any, level: Detail) -> float:
    """About how many letters all arrays take."""
    if not len(sizes):
        return 0.0
    size, width = sizes[:, 0], sizes[:, 1]
    short = _FIGURES + 4 * np.minimum(size, level.cells**2)
    whole = (size <= level.whole) & (width < 1 << 30)
    return float(np.where(whole, size * np.minimum(width, 16), short).sum() * _LETTERS + len(size) * 2)


def _pooled(trace: Trace, level: Detail, every: int) -> tuple[Pool, list[int]]:
    pool, known = Pool(format_of), dict[int, tuple[Any, Any]]()
    refs = [-1] * len(trace)
    steps = (trace.time % every == 0).tolist() if every > 1 else None
    for number, value in trace.values.items():
        if steps is None or steps[number]:
            refs[number] = pool.add(_in_detail(value, level, known))
    return pool, refs


def _in_detail(value: Any, level: Detail, known: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, tuple):
        return tuple(_in_detail(each, level, known) for each in value)
    if isinstance(value, np.ndarray | np.generic) and value.size <= level.whole:
        return value
    if value is None or (isinstance(value, Summary) and level is LEVELS[0]):
        return value
    if id(value) not in known:
        short = coarser(value, level.cells) if isinstance(value, Summary) else summary(value, level.cells)
        known[id(value)] = value, short
    return known[id(value)][1]
