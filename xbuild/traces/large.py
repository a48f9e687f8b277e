"""Summaries of large arrays, computed part by part to bound the memory that they take."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from attrs import define, field

from ..core.attributes import Array

AT_ONCE = 1 << 22
"""The number of elements of the largest array that is copied as a whole."""

PART = 1 << 20
"""The greatest number of elements of a part."""

PICTURED = 1 << 34
"""The number of elements of the largest array that gets cells; only views that repeat elements are larger."""


@define(eq=False)
class Sums:
    """Running sums over the parts of an array: count, range, sum of finite elements, counts of others, block sums."""

    rows: Array
    columns: Array
    size: int = 0
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    nans: int = 0
    infs: int = 0
    blocks: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.blocks = np.zeros((len(self.rows), len(self.columns)))

    def add(self, row: int, column: int, plain: Array) -> None:
        """Add a part: rows of numbers as f64, and the row and column at which the part begins."""
        finite = np.isfinite(plain)
        zeroed = np.where(finite, plain, 0.0)
        self.size += int(finite.sum())
        self.low = min(self.low, float(np.min(plain, where=finite, initial=np.inf)))
        self.high = max(self.high, float(np.max(plain, where=finite, initial=-np.inf)))
        with np.errstate(all="ignore"):
            self.total += float(zeroed.sum())
            self._add_blocks(row, column, zeroed)
        self.nans += int(np.isnan(plain).sum())
        self.infs += int(np.isinf(plain).sum())

    def _add_blocks(self, row: int, column: int, zeroed: Array) -> None:
        if not self.blocks.size:
            return
        of_rows, first = _blocks(self.rows, row, zeroed.shape[0])
        of_columns, left = _blocks(self.columns, column, zeroed.shape[1])
        sums = np.add.reduceat(np.add.reduceat(zeroed, of_rows, axis=0), of_columns, axis=1)
        self.blocks[first : first + len(of_rows), left : left + len(of_columns)] += sums


def _blocks(starts: Array, begin: int, extent: int) -> tuple[Array, int]:
    """The offsets in a part at which its blocks begin, and the number of its first block."""
    first = int(starts.searchsorted(begin, side="right")) - 1
    inside = starts[(starts > begin) & (starts < begin + extent)] - begin
    return np.concatenate([[0], inside]), first


def parts(array: Any, row: int = 0) -> Iterator[tuple[int, int, Array]]:
    """The parts of an array as rows over its last dimension, each with its first row and column."""
    if array.ndim == 1:
        for start in range(0, len(array), PART):
            yield row, start, array[None, start : start + PART]
        return
    each, rows = prod(array.shape[1:]), prod(array.shape[1:-1])
    if each > PART:
        for number in range(len(array)):
            yield from parts(array[number], row + number * rows)
        return
    step = PART // max(1, each)
    for start in range(0, len(array), step):
        some = array[start : start + step]
        yield row + start * rows, 0, some.reshape(-1, array.shape[-1])


def without_repeats(array: Array) -> tuple[Array, int]:
    """The view with each repeated dimension shrunk to one element, and how often the view has each element."""
    kept = tuple(slice(None) if stride else slice(1) for stride in array.strides)
    shrunk = array[kept]
    return shrunk, array.size // max(1, shrunk.size)
