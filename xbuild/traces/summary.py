"""Values as people read them: one line of text, plain data for JSON, and summaries of large arrays."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import primitive_type

from ..core.attributes import Array

# ----------------------------------------------------------------------------
# Summaries of large arrays, computed part by part to bound the memory that they take.

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


def split_into_parts(array: Any, row: int = 0) -> Iterator[tuple[int, int, Array]]:
    """The parts of an array as rows over its last dimension, each with its first row and column."""
    if array.ndim == 1:
        for start in range(0, len(array), PART):
            yield row, start, array[None, start : start + PART]
        return
    each, rows = prod(array.shape[1:]), prod(array.shape[1:-1])
    if each > PART:
        for number in range(len(array)):
            yield from split_into_parts(array[number], row + number * rows)
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


# ----------------------------------------------------------------------------
# Summaries of arrays that are too large to be kept: range, mean, counts of NaN and infinity, means of blocks.

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
        if prod(dims) > AT_ONCE:
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
    if array.size > PICTURED:
        (array, times), most = without_repeats(array), 0
    rows, columns = prod(array.shape[:-1]), array.shape[-1]
    sums = Sums(_starts_of(rows, most), _starts_of(columns, most))
    for row, column, part in split_into_parts(array):
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


# ----------------------------------------------------------------------------
# Values as one line of text, and as plain data for JSON.

FEW = 12


def said(value: Any, most: int = FEW) -> str:
    """A value as text: its elements where there are few, else its range and mean.

    >>> import numpy as np
    >>> said(np.array([1.5, 2.5], np.float32)), said(np.zeros((8, 8), np.float32))
    ('[1.5, 2.5]', 'f32[8,8] 0 .. 0, mean 0')
    """
    if value is None:
        return "not kept"
    if isinstance(value, tuple):
        return f"({', '.join('-' if each is None else said(each, most) for each in value)})"
    if isinstance(value, Summary):
        return str(value)
    array = np.asarray(value)
    if array.size > most:
        return str(summary(array))
    return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split()).replace("[ ", "[")


def plain(value: Any, most: int = 1 << 12) -> Any:
    """A value as JSON: nested lists, or the figures of a large array; elements that are not finite are texts."""
    if isinstance(value, tuple):
        return [plain(each, most) for each in value]
    if isinstance(value, np.ndarray | np.generic) and value.size <= most:
        return _listed(np.asarray(value))
    if value is None:
        return None
    told = value if isinstance(value, Summary) else summary(value)
    names = ("type", "low", "high", "mean", "nans", "infs")
    return {"dims": list(told.dims), **{name: getattr(told, name) for name in names}}


def _listed(array: Any) -> Any:
    kind = array.dtype.kind
    if kind in "biu":
        return array.tolist()
    if kind == "c":
        return np.stack([array.real, array.imag], -1).tolist()
    wide = array.astype(np.float64)
    return wide.tolist() if np.isfinite(wide).all() else np.where(np.isfinite(wide), wide, wide.astype(str)).tolist()
