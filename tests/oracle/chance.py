"""Random numbers, shapes and values for the draws, from a seed, with a bias towards corner cases."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from shape_inference import PRIMITIVES, PrimitiveType
from shape_inference.dims import limits
from shape_inference.types import COMPONENT, f4e2m1fn, f8e8m0fnu

Array = np.ndarray[Any, Any]
Row = TypeVar("Row")

UNRUN = frozenset({"f6e2m3fn", "f6e3m2fn"})
"""Types that XLA's parser knows, and neither its literals nor its CPU backend: ml_dtypes judges them."""

FLUSHED = {PRIMITIVES[name].dtype for name in ("f8e8m0fnu", "bf16", "f32", "f64", "c64", "c128")}
"""The types whose subnormal numbers XLA:CPU takes for zero."""

FEW_SUBNORMALS = 0.06


class Chance:
    """One instance's source of chance; what it gives is a function of the seed alone.

    Shapes and attributes come from one stream and values from another, so that the same module, which takes a second
    to compile and a hundredth of it to run, is fed many times: `data` numbers the values.
    """

    def __init__(self, *seed: int, data: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.data = np.random.default_rng((*seed, data))
        self.is_subnormal = bool(self.data.random() < FEW_SUBNORMALS)

    def odds(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def one(self, rows: Sequence[Row]) -> Row:
        return rows[self.between(0, len(rows) - 1)]

    def any(self, rows: Sequence[Row]) -> Row:
        """One of the rows, for a value: it makes no other shape or attribute."""
        return rows[int(self.data.integers(0, len(rows)))]

    def some(self, rows: Sequence[Row], count: int | None = None) -> list[Row]:
        """So many of the rows, or any number of them, in their order."""
        count = self.between(0, len(rows)) if count is None else count
        return [rows[n] for n in sorted(self.rng.permutation(len(rows))[:count])]

    def shuffled(self, rows: Sequence[Row]) -> list[Row]:
        return [rows[n] for n in self.rng.permutation(len(rows))]

    def dims(self, rank: int | None = None, least: int = 0, most: int = 5) -> tuple[int, ...]:
        """Extents: of any rank to 5 unless it is told; often 1, and seldom 0; few where there are many of them."""
        rank = self.one((0, 1, 1, 2, 2, 3, 4, 5)) if rank is None else rank
        low, most = max(least, 0 if self.odds(0.1) else 1), most if rank < 4 else min(most, 3)
        return tuple(low if self.odds(0.15) else self.between(low, most) for _ in range(rank))

    def type(self, *kinds: str) -> PrimitiveType:
        """An element type of these kinds, or of any, but of two bits, with which XLA:CPU may write past its buffers."""
        return self.one([t for t in TYPES if t.bits != 2 and (not kinds or t.kind in kinds)])

    def values(self, dtype: PrimitiveType, dims: Sequence[int] = ()) -> Array:
        """Corners, random bits, whole and half numbers, and numbers near 1."""
        if dtype in COMPONENT:
            real, imag = (self.values(COMPONENT[dtype], dims) for _ in "ri")
            result = np.empty(dims, dtype.dtype)
            result.real, result.imag = real, imag
            return result
        count = int(np.prod(dims, dtype=int))
        if dtype.kind == "pred":
            return self.data.integers(0, 2, dims).astype(bool)
        drawn = self._floats(dtype, count) if dtype.is_float else self._integers(dtype, count)
        return drawn.reshape(dims)

    def _floats(self, dtype: PrimitiveType, count: int) -> Array:
        sources = self.data.integers(0, 4, count)
        edges = corners(dtype)
        rows = (
            edges[self.data.integers(0, len(edges), count)],
            self.bits(dtype, count),
            self._rounded(self.data.integers(-20, 21, count) / 2, dtype),
            self._rounded(self.data.normal(size=count) * 3, dtype),
        )
        drawn = rows[0].copy()
        for number, row in enumerate(rows):
            drawn[sources == number] = row[sources == number]
        return drawn if self.is_subnormal else flushed(drawn)

    def bits(self, dtype: PrimitiveType, count: int) -> Array:
        """Random bits, read as the type."""
        size = dtype.dtype.itemsize
        raw = self.data.integers(0, 256, (count, size), dtype=np.uint8)
        if dtype is f4e2m1fn:
            raw &= 15
        return raw.reshape(-1).view(dtype.dtype)

    def _integers(self, dtype: PrimitiveType, count: int) -> Array:
        low, high = limits(dtype)
        edges = [n for n in (low, low + 1, high, high - 1, -1, 0, 1, dtype.bits, dtype.bits - 1) if low <= n <= high]
        sources = self.data.integers(0, 3, count)
        edge = np.array([edges[n] for n in self.data.integers(0, len(edges), count)], object)
        near = self.data.integers(max(low, -10), min(high, 10) + 1, count).astype(object)
        wide = self.data.integers(low, high, count, dtype=np.uint64 if low == 0 else np.int64, endpoint=True)
        chosen = np.where(sources == 0, edge, np.where(sources == 1, near, wide.astype(object)))
        return chosen.astype(np.uint64 if low == 0 else np.int64).astype(dtype.dtype)

    def whole(self, dtype: PrimitiveType, dims: Sequence[int] = (), size: int = 4) -> Array:
        """Whole numbers so small that every order of adding a few gives the same."""
        if dtype in COMPONENT:
            return (self.whole(COMPONENT[dtype], dims, size) + 1j * self.whole(COMPONENT[dtype], dims, size)).astype(
                dtype.dtype
            )
        if dtype.kind == "pred":
            return self.values(dtype, dims)
        if dtype is f8e8m0fnu:
            return self._rounded(2.0 ** self.data.integers(0, 3, dims), dtype)
        low, high = limits(dtype) if dtype.is_integer else (-size, size)
        drawn = self.data.integers(max(low, -size), min(high, size) + 1, dims)
        return drawn.astype(dtype.dtype)

    def positive(self, dtype: PrimitiveType, dims: Sequence[int] = ()) -> Array:
        """Numbers from 0.5 to 2, so that sums of them lose no digits."""
        return self._rounded(self.data.uniform(0.5, 2, dims), dtype)

    def normal(self, dtype: PrimitiveType, dims: Sequence[int] = ()) -> Array:
        """Numbers around 0, of both signs, complex ones with both parts."""
        drawn = self.data.normal(size=dims)
        return self._rounded(drawn + 1j * self.data.normal(size=dims) if dtype.kind == "complex" else drawn, dtype)

    def _rounded(self, numbers: Any, dtype: PrimitiveType) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(numbers).astype(dtype.dtype)


TYPES = tuple(t for t in PRIMITIVES.values() if t.name not in UNRUN and (t.bits > 1 or t.kind == "pred"))
"""All but s1 and u1, which XLA:CPU does not compile, and those that it only reads and prints."""


@functools.cache
def corners(dtype: PrimitiveType) -> Array:
    """The float values at which something changes: zeros, ends, neighbours of 1, halves, the ends of the integers."""
    about = ml_dtypes.finfo(dtype.dtype)
    ends = [float(about.max), float(about.tiny), float(about.smallest_subnormal), float(about.tiny) * 0.75]
    near = [0.0, 0.25, 0.5, 0.75, 1.0, 1 + float(about.eps), 1 - float(about.eps) / 2, 1.5, 2.0, 2.5, 3.0, np.pi]
    powers = [2.0**n + add for n in (7, 8, 15, 16, 31, 32, 63, 64) for add in (-1, -0.5, 0, 0.5)]
    small = [1e-20, 1e-10, 1e-5, 10.0, 80.0, 89.0, 100.0, 710.0, 1e10, np.inf]
    sizes = np.array([*ends, *near, *powers, *small])
    with np.errstate(all="ignore"):
        return np.concatenate([sizes, -sizes, [np.nan]]).astype(dtype.dtype)


def flushed(values: Any, *, at_most: bool = False) -> Any:
    """The values with a zero of the same sign for each subnormal number of a type for which XLA:CPU does so.

    `at_most`: for the smallest normal number, too, to which a smaller one may have been rounded.
    """
    if values.dtype.kind == "c":
        result = values.copy()
        result.real, result.imag = flushed(values.real, at_most=at_most), flushed(values.imag, at_most=at_most)
        return result
    if values.dtype not in FLUSHED:
        return values
    with np.errstate(all="ignore"):
        tiny = values.dtype.type(ml_dtypes.finfo(values.dtype).tiny)
        small = (abs(values) <= tiny if at_most else abs(values) < tiny).astype(bool)
        return np.where(small, np.copysign(values.dtype.type(0), values), values) if small.any() else values
