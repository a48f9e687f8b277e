"""Elements of sliding windows, as slices for each window offset or as element numbers for each window position."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import gcd, prod
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from shape_inference import Dims
from shape_inference.windows import Window, WindowDimension
from xbuild.core.attributes import Array

Slices: TypeAlias = tuple[slice, ...]

LARGE = 4096
"""The window size above which only offsets that lead from a position to an element are enumerated."""


def taps(window: Window, extents: Dims, counts: Dims, first: int = 0) -> Iterator[tuple[Dims, Slices, Slices]]:
    """For each window offset, in order: the window positions at which the offset reads an element, and these elements.

    `counts` are the numbers of positions per dimension; in dimension 0 they begin at `first`. Offsets that only read
    padding or holes are left out.
    """
    hits = [
        _hits(dim, extent, first if axis == 0 else 0, count)
        for axis, (dim, extent, count) in enumerate(zip(window, extents, counts, strict=True))
    ]
    for chosen in itertools.product(*hits):
        yield tuple(c[0] for c in chosen), tuple(c[1] for c in chosen), tuple(c[2] for c in chosen)


@lru_cache(maxsize=4096)
def _hits(dim: WindowDimension, extent: int, first: int, count: int) -> tuple[tuple[int, slice, slice], ...]:
    """For each offset in one dimension of the window: a slice of positions, and a slice of the elements read there."""
    found = []
    for offset in _offsets(dim, extent, first, count):
        hit = _hit(dim, extent, dim.padding_low - offset * dim.window_dilation, first, count)
        if hit:
            found.append((offset, *hit))
    return tuple(found)


def _offsets(dim: WindowDimension, extent: int, first: int, count: int) -> Iterable[int]:
    """The offsets that may read an element; for a huge window, only those that lead from a position to an element."""
    if dim.size <= LARGE or dim.size <= count * extent:
        return range(dim.size)
    found: set[int] = set()
    for place in range(first, first + count):
        for element in range(extent):
            offset, rest = divmod(
                element * dim.base_dilation + dim.padding_low - place * dim.stride, dim.window_dilation
            )
            if not rest and 0 <= offset < dim.size:
                found.add(offset)
    return sorted(found)


def _hit(dim: WindowDimension, extent: int, shift: int, first: int, count: int) -> tuple[slice, slice] | None:
    """The positions p with p * stride - shift == base_dilation * e for an element number e, and these elements."""
    common = gcd(dim.stride, dim.base_dilation)
    if shift % common or not extent:
        return None
    step = dim.base_dilation // common
    start = (shift // common) * pow(dim.stride // common, -1, step) % step if step > 1 else 0
    low = max(first, -(-shift // dim.stride))
    high = min(first + count - 1, ((extent - 1) * dim.base_dilation + shift) // dim.stride)
    low += (start - low) % step
    if low > high:
        return None
    number = (high - low) // step
    element, stride = (low * dim.stride - shift) // dim.base_dilation, dim.stride // common
    return (
        slice(low - first, low - first + number * step + 1, step),
        slice(element, element + number * stride + 1, stride),
    )


def elements(dim: WindowDimension, extent: int, count: int) -> Array:
    """The element number at each position and each offset of one dimension; -1 for padding and holes."""
    places = np.arange(count)[:, None] * dim.stride - dim.padding_low
    base = places + np.arange(dim.size) * dim.window_dilation
    found, hole = np.divmod(base, dim.base_dilation)
    found[(hole != 0) | (found < 0) | (found >= extent)] = -1
    return found


def is_whole(places: Slices, counts: Dims) -> bool:
    """Whether the slices cover all positions."""
    return all(p.start == 0 and p.step == 1 and p.stop == count for p, count in zip(places, counts, strict=True))


def in_parts(window: Window, extents: Dims, block: int) -> Iterator[slice | EllipsisType]:
    """Parts of dimension 0 of about `block` elements if the window is trivial in it, else the whole dimension."""
    rest = prod(extents[1:])
    if not extents or window[0] != WindowDimension(1) or rest * extents[0] <= block or not rest:
        yield ...
        return
    size = max(1, block // rest)
    for start in range(0, extents[0], size):
        yield slice(start, start + size)
