"""Sorting of rows by keys, which are converted to integers for NumPy's sort, or by an arbitrary comparator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from xbuild.core.attributes import Array

from ..rules.region import AppliedComputation
from .comparators import Key, keeps_numbers
from .flushing import flushed
from .lifting import total_order, widened

Arrays: TypeAlias = Sequence[Array]

_INDEX = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_LOWEST = np.uint64(1 << 31)  # added to signed integers of 4 bytes to make them nonnegative


def order_by_keys(keys: Sequence[Key], arrays: Arrays, *, is_flushed: bool = False) -> Array:
    """The stable permutation that sorts each row (the last axis) by the keys.

    With `is_flushed`, denormal numbers compare as zeros, except in keys that use the total order.
    """
    zeros = [flushed(array) for array in arrays] if is_flushed else arrays
    found: Array | None = None
    for key in reversed(keys):
        for ranks in reversed(
            ranks_of(value_of(key, arrays if key.is_total else zeros), key.is_descending, key.is_total)
        ):
            order = order_of(ranks if found is None else taken(ranks, found))
            found = order if found is None else taken(found, order)
    assert found is not None
    return found


def value_of(key: Key, arrays: Arrays) -> Array:
    """The values that a key compares, computed for all elements at once."""
    operands = [arrays[number] for number in key.operands]
    if key.is_element or (len(operands) == 1 and keeps_numbers(key.of) and _is_of_numbers(operands[0])):
        return operands[0]
    function = AppliedComputation.of(key.of).lifted
    assert function is not None
    return np.broadcast_to(function(*operands), operands[0].shape)


def _is_of_numbers(array: Array) -> bool:
    """Whether an array has floats of a type of NumPy, and none that a key which keeps numbers may change."""
    return array.dtype.kind == "f" and array.dtype.isbuiltin == 1 and not _has_odd(array)


def ranks_of(values: Array, descending: bool, total: bool) -> tuple[Array, ...]:
    """Native integers that sort as the values do, most significant array first; unless `total`, NaNs sort last."""
    if total:
        return (_ranks(total_order(values), descending),)
    native = widened(values)
    if native.dtype.kind == "c":
        return _ranks(native.real, descending), _ranks(native.imag, descending)
    return (_ranks(native, descending),)


def _ranks(values: Array, descending: bool) -> Array:
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    if values.dtype.kind in "iu":
        return ~values if descending else values
    ranks = total_order(values + values.dtype.type(0))  # adding 0 turns -0 into +0
    ranks = ~ranks if descending else ranks
    lost = np.isnan(values)
    return np.where(lost, np.iinfo(ranks.dtype).max, ranks) if lost.any() else ranks


def order_of(ranks: Array) -> Array:
    """The stable sorting permutation of integers; integers of 4 bytes are packed with their indices into 8 bytes."""
    size = ranks.dtype.itemsize
    if size < 4 or ranks.shape[-1] <= 64:
        return np.argsort(ranks, axis=-1, kind="stable")
    if size == 4:
        return _places(np.sort(_with_places(ranks), axis=-1))
    return _stable(ranks, np.argsort(ranks, axis=-1))


def _with_places(ranks: Array) -> Array:
    """Integers of 8 bytes that have a rank of at most 4 bytes in the upper half and the index in the lower half."""
    wide = ranks.astype(np.int64).view(np.uint64)
    if ranks.dtype.kind == "i":
        wide += _LOWEST
    wide <<= _HALF
    wide |= np.arange(ranks.shape[-1], dtype=np.uint64)
    return wide


def _places(packed: Array) -> Array:
    return (packed & _INDEX).view(np.int64)


def _stable(ranks: Array, order: Array) -> Array:
    """The stable permutation from an unstable one: the indices within each run of equal elements are sorted."""
    ordered = taken(ranks, order)
    rises = ordered[..., 1:] != ordered[..., :-1]
    if rises.all():
        return order
    runs = np.zeros(order.shape, np.uint64)
    np.cumsum(rises, axis=-1, out=runs[..., 1:])
    return _places(np.sort(runs << _HALF | order.view(np.uint64), axis=-1))


def first_of(ranks: Array, count: int) -> Array:
    """The indices of the `count` lowest ranks in each row, in stable order; long rows are partitioned, not sorted."""
    length = ranks.shape[-1]
    if length <= 1024 or not 0 < count < length // 4 or not ranks.size:
        return order_of(ranks)[..., :count]
    rows = [_first_of_row(row, count) for row in ranks.reshape(-1, length)]
    return np.stack(rows).reshape(*ranks.shape[:-1], count)


def _first_of_row(row: Array, count: int) -> Array:
    candidates = np.flatnonzero(row <= np.partition(row, count - 1)[count - 1])
    return candidates[np.argsort(row[candidates], kind="stable")[:count]]


def taken(array: Array, order: Array) -> Array:
    """The elements of each row at the indices `order`."""
    return array.take(order) if array.ndim == 1 else np.take_along_axis(array, order, axis=-1)


def sorted_alone(array: Array, key: Key) -> Array | None:
    """The rows of a single operand sorted by `np.sort`, if elements that compare equal have equal bits; else None."""
    if array.dtype.isbuiltin != 1 or array.dtype.kind == "c" or (array.dtype.kind == "f" and _has_odd(array)):
        return None
    if not key.is_element:
        value = value_of(key, (array,))
        if value is not array and (value.dtype != array.dtype or not np.array_equal(value, array)):
            return None
    ascending = np.sort(array, axis=-1)
    return ascending[..., ::-1] if key.is_descending else ascending


def _has_odd(values: Array) -> bool:
    """Whether floats contain a NaN, a -0, or a flushed denormal number, whose nonzero bits compare equal to 0."""
    bits = values.view(f"u{values.dtype.itemsize}")
    return bool(((values == 0) & (bits != 0)).any() or np.isnan(values).any())


def order_by_comparator(region: AppliedComputation, arrays: Arrays) -> Array:
    """The sorting permutation of an arbitrary comparator, by a sorting network if the comparator can be lifted."""
    if region.lifted is not None:
        return _by_network(region.lifted, arrays)
    return _row_by_row(region.scalar, arrays)


def _by_network(precedes: Callable[..., Any], arrays: Arrays) -> Array:
    """The sorting permutation by Batcher's odd-even merge network, each round of which runs on whole arrays.

    Equal elements are ordered by their original indices, so that the sort is stable.
    """
    rows = [np.array(np.moveaxis(array, -1, 0)) for array in arrays]
    extents = rows[0].shape
    places = np.broadcast_to(np.arange(extents[0]).reshape(-1, *(1,) * (len(extents) - 1)), extents).copy()
    for upper, lower in _rounds(extents[0]):
        above, below = [row[upper] for row in rows], [row[lower] for row in rows]
        forward, backward = _asked(precedes, above, below), _asked(precedes, below, above)
        swapped = np.where(forward == backward, places[lower] < places[upper], backward)
        for row in (*rows, places):
            first, second = row[upper], row[lower]
            row[upper], row[lower] = np.where(swapped, second, first), np.where(swapped, first, second)
    return np.moveaxis(places, 0, -1)


def _asked(precedes: Callable[..., Any], left: Arrays, right: Arrays) -> Array:
    pairs = [each for pair in zip(left, right, strict=True) for each in pair]
    return np.broadcast_to(precedes(*pairs), left[0].shape)


@functools.lru_cache(maxsize=64)
def _network(size: int) -> tuple[tuple[Array, Array], ...]:
    return tuple(_exchanges(size))


def _rounds(size: int) -> Sequence[tuple[Array, Array]]:
    """The rounds of the network for rows of this size: pairs of index arrays to compare, the lower indices first."""
    return _network(size) if size <= 4096 else tuple(_exchanges(size))


def _exchanges(size: int) -> Iterator[tuple[Array, Array]]:
    merged = 1
    while merged < size:
        distance = merged
        while distance:
            upper = np.arange(distance % merged, size - distance)
            upper = upper[(upper - distance % merged) // distance % 2 == 0]
            upper = upper[upper // (2 * merged) == (upper + distance) // (2 * merged)]
            yield upper, upper + distance
            distance //= 2
        merged *= 2


def _row_by_row(precedes: Callable[..., Any], arrays: Arrays) -> Array:
    extents = arrays[0].shape
    order = np.empty(extents, np.int64)
    for row in np.ndindex(extents[:-1]):
        columns = [list(array[row]) for array in arrays]
        order[row] = sorted(range(extents[-1]), key=functools.cmp_to_key(_comparison(precedes, columns)))
    return order


def _comparison(precedes: Callable[..., Any], columns: Sequence[list[Any]]) -> Callable[[int, int], int]:
    def compared(i: int, j: int) -> int:
        return -1 if precedes(*(column[place] for column in columns for place in (i, j))) else 0

    return compared
