"""Summaries of arrays that are too large to be kept: range, mean, counts of NaN and infinity, means of blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import primitive_type

from ..core.attributes import Array
from . import large

CELLS = 16

_TOGETHER = 1 << 18
"""The greatest number of elements of the arrays that are summarised at a time."""


@frozen(eq=False)
class Summary:
    """The summary of an array; `cells` are means over at most 16 x 16 blocks of its rows over the last dimension.

    `low`, `high` and `mean` are those of the finite elements (of magnitudes, if complex), None where there are none.
    """

    type: str
    dims: tuple[int, ...]
    low: float | None
    high: float | None
    mean: float | None
    nans: int
    infs: int
    cells: Array

    def __str__(self) -> str:
        shape = f"{self.type}[{','.join(map(str, self.dims))}]"
        odd = "".join(f", {count} {what}" for count, what in ((self.nans, "NaN"), (self.infs, "inf")) if count)
        if self.low is None or self.high is None or self.mean is None:
            return f"{shape} nothing finite{odd}"
        return f"{shape} {self.low:.6g} .. {self.high:.6g}, mean {self.mean:.6g}{odd}"


def summary(value: Any, most: int = CELLS) -> Summary:
    """The summary of an array of numbers, with at most so many rows and columns of cells.

    >>> import numpy as np
    >>> print(summary(np.arange(600, dtype=np.float32)))
    f32[600] 0 .. 599, mean 299.5
    """
    return summaries([np.asarray(value)], most)[0]


def summaries(arrays: Sequence[Array], most: int = CELLS) -> list[Summary]:
    """The summaries of arrays, those of one type and shape computed together."""
    alike: dict[Any, list[int]] = {}
    for number, array in enumerate(arrays):
        alike.setdefault((array.dtype, array.shape), []).append(number)
    found: dict[int, Summary] = {}
    for (_, dims), members in alike.items():
        if prod(dims) > large.AT_ONCE:
            found |= {number: _of_large(arrays[number], most) for number in members}
            continue
        share = max(1, _TOGETHER // max(1, prod(dims)))
        for start in range(0, len(members), share):
            some = members[start : start + share]
            found |= zip(some, _told(np.stack([arrays[number] for number in some]), most), strict=True)
    return [found[number] for number in range(len(arrays))]


def _told(arrays: Array, most: int) -> Iterator[Summary]:
    """The summaries of the rows of an array."""
    dims, count = arrays.shape[1:], len(arrays)
    plain = numbers(arrays).reshape(count, -1)
    finite = np.isfinite(plain)
    zeroed = np.where(finite, plain, 0.0)
    sizes = finite.sum(axis=1)
    low = np.where(finite, plain, np.inf).min(axis=1, initial=np.inf)
    high = np.where(finite, plain, -np.inf).max(axis=1, initial=-np.inf)
    with np.errstate(all="ignore"):
        mean = zeroed.sum(axis=1) / sizes
    odd = np.isnan(plain).sum(axis=1), np.isinf(plain).sum(axis=1)
    columns = [each.tolist() for each in (sizes, low, high, mean, *odd)]
    blocks = cells(zeroed.reshape(count, *dims), most)
    name = str(primitive_type(arrays.dtype))
    for row, (size, *figures, nans, infs) in enumerate(zip(*columns, strict=True)):
        least, largest, middle = figures if size else (None, None, None)
        yield Summary(name, dims, least, largest, middle, nans, infs, blocks[row])


def _of_large(array: Array, most: int) -> Summary:
    dims, times = array.shape, 1
    if array.size > large.PICTURED:
        (array, times), most = large.without_repeats(array), 0
    rows, columns = prod(array.shape[:-1]), array.shape[-1]
    sums = large.Sums(_starts_of(rows, most), _starts_of(columns, most))
    for row, column, part in large.parts(array):
        sums.add(row, column, numbers(part))
    low, high, mean = (sums.low, sums.high, sums.total / sums.size) if sums.size else (None, None, None)
    sizes = np.outer(lengths(rows, most), lengths(columns, most)) if most else np.ones((0, 0))
    picture = np.asarray(sums.blocks / sizes, np.float32)
    return Summary(
        str(primitive_type(array.dtype)), dims, low, high, mean, sums.nans * times, sums.infs * times, picture
    )


def _starts_of(extent: int, most: int) -> Array:
    return starts(extent, most) if most else np.zeros(0, np.int64)


def numbers(array: Array) -> Array:
    """The elements of an array as f64; the magnitudes of complex numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(array) if array.dtype.kind == "c" else array).astype(np.float64)


def coarser(told: Summary, most: int) -> Summary:
    """The summary with at most `most` rows and columns of cells."""
    return evolve(told, cells=cells(told.cells.astype(np.float64)[None], most)[0])


def cells(plain: Array, most: int) -> Array:
    """For each array of a batch, the means over at most `most` rows and columns of blocks."""
    count, *dims = plain.shape
    columns = dims[-1] if dims else 1
    if not plain.size or not most:
        return np.zeros((count, 0, 0), np.float32)
    rows = prod(dims) // columns
    high = np.add.reduceat(plain.reshape(count, rows, columns), starts(rows, most), axis=1)
    blocks = np.add.reduceat(high, starts(columns, most), axis=2)
    return np.asarray(blocks / np.outer(lengths(rows, most), lengths(columns, most)), np.float32)


@functools.lru_cache(maxsize=1024)
def starts(extent: int, most: int) -> Array:
    """The indices at which the blocks of a dimension begin, at most `most` blocks."""
    found = np.unique(np.linspace(0, extent, min(extent, most), endpoint=False).astype(np.int64))
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=1024)
def lengths(extent: int, most: int) -> Array:
    found = np.diff(np.append(starts(extent, most), extent))
    found.flags.writeable = False
    return found
