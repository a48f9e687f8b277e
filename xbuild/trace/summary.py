"""What is said of an array that is too large to be kept: its range, its mean, what is no number, a small picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import primitive_type

from ..attributes import Array

CELLS = 16


@frozen(eq=False)
class Summary:
    """An array told in short; `cells` are means over at most 16 x 16 blocks of it, rows over its last dimension.

    `low`, `high` and `mean` are of the finite elements, None where there is none; of complex numbers the magnitude.
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
    array = np.asarray(value)
    plain = numbers(array)
    finite = np.isfinite(plain)
    kept = plain if finite.all() else plain[finite]
    return Summary(
        str(primitive_type(array.dtype)),
        array.shape,
        float(kept.min()) if kept.size else None,
        float(kept.max()) if kept.size else None,
        float(kept.mean()) if kept.size else None,
        int(np.isnan(plain).sum()),
        int(np.isinf(plain).sum()),
        cells(np.where(finite, plain, 0.0), most),
    )


def numbers(array: Array) -> Array:
    """The elements as f64; of complex numbers the magnitudes."""
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(array) if array.dtype.kind == "c" else array).astype(np.float64)


def coarser(told: Summary, most: int) -> Summary:
    """A summary with fewer cells."""
    return evolve(told, cells=cells(told.cells.astype(np.float64), most))


def cells(plain: Array, most: int) -> Array:
    """Means over at most so many rows and columns of blocks."""
    columns = plain.shape[-1] if plain.ndim else 1
    if not plain.size or not most:
        return np.zeros((0, 0), np.float32)
    count = plain.size // columns
    rows = np.add.reduceat(plain.reshape(-1, columns), starts(count, most), axis=0)
    blocks = np.add.reduceat(rows, starts(columns, most), axis=1)
    share = np.outer(lengths(count, most), lengths(columns, most))
    return np.asarray(blocks / share, np.float32)


def starts(extent: int, most: int) -> Array:
    """Where each of at most so many blocks of a dimension begins."""
    return np.unique(np.linspace(0, extent, min(extent, most), endpoint=False).astype(np.int64))


def lengths(extent: int, most: int) -> Array:
    return np.diff(np.append(starts(extent, most), extent))
