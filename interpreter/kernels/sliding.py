"""Folds of sliding windows, one dimension at a time if the computation is a known op, else one offset at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import Dims
from shape_inference.types import primitive_type
from shape_inference.windows import Window, WindowDimension
from xbuild.core.attributes import Array
from xbuild.properties.patterns import neutral_element

from ..rules.region import AppliedComputation
from .applying import applied
from .folds import SIGNING, Arrays, accumulator, ufunc_of, with_signs
from .lifting import narrowed
from .windowing import in_parts, is_whole, taps

BLOCK = 1 << 18
"""The number of elements that are folded along all dimensions at once, so that they stay in the cache."""

LONG = 16
"""The window size from which a fold by doubling is faster than a fold offset by offset."""


def fold_windows(region: AppliedComputation, operands: Arrays, init_values: Arrays, window: Window) -> Arrays:
    """The fold of each window, starting from the init values; several operands are folded by one computation."""
    if region.reordering:
        return (_by_ufunc(region.reordering, operands[0], init_values[0], window),)
    extents = operands[0].shape
    counts = tuple(dim.places(extent) for dim, extent in zip(window, extents, strict=True))
    totals = [np.full(counts, init, operand.dtype) for init, operand in zip(init_values, operands, strict=True)]
    for _, places, elements in taps(window, extents, counts):
        found = applied(region, [*(t[places] for t in totals), *(o[elements] for o in operands)])
        for total, each in zip(totals, found, strict=True):
            total[places] = each
    return tuple(totals)


def _by_ufunc(opcode: str, operand: Array, init: Array, window: Window) -> Array:
    ufunc, wide = ufunc_of(opcode, operand.dtype), np.dtype(accumulator(opcode, operand.dtype))
    neutral, start = neutral_element(opcode, primitive_type(wide)), np.asarray(init).astype(wide)
    result = np.empty(
        tuple(dim.places(extent) for dim, extent in zip(window, operand.shape, strict=True)), operand.dtype
    )
    for part in in_parts(window, operand.shape, BLOCK):
        total = operand[part].astype(wide, copy=False)
        for axis in _order(window, total.shape):
            total = _along(ufunc, neutral, total, axis, window[axis])
        result[part] = narrowed(ufunc(total, start), operand.dtype)
    if opcode not in SIGNING:
        return result
    signed = with_signs(
        opcode,
        result.astype(wide, copy=False),
        lambda zero: _by_ufunc("or", zero(operand.astype(wide, copy=False)), zero(start), window),
    )
    return narrowed(signed, operand.dtype)


def _order(window: Window, extents: Dims) -> list[int]:
    """The dimensions in which the window is not trivial, those that shrink most first."""
    axes = [axis for axis, dim in enumerate(window) if dim != WindowDimension(1)]
    return sorted(axes, key=lambda axis: window[axis].places(extents[axis]) / max(extents[axis], 1))


def _along(ufunc: np.ufunc, neutral: Any, operand: Array, axis: int, dim: WindowDimension) -> Array:
    """The fold of windows along one dimension."""
    extent = operand.shape[axis]
    places = dim.places(extent)
    counts = (*operand.shape[:axis], places, *operand.shape[axis + 1 :])
    if dim.size >= LONG and places and _reach(dim, places) <= 4 * (extent + places):
        return _by_doubling(ufunc, neutral, operand, axis, dim, places)
    window = [WindowDimension(1)] * operand.ndim
    window[axis] = dim
    total: Array | None = None
    for _, where, elements in taps(tuple(window), operand.shape, counts):
        if total is None and is_whole(where, counts):
            total = operand[elements].copy()
            continue
        if total is None:
            total = np.full(counts, neutral, operand.dtype)
        ufunc(total[where], operand[elements], out=total[where])
    return np.full(counts, neutral, operand.dtype) if total is None else total


def _reach(dim: WindowDimension, places: int) -> int:
    """The number of base elements from the start of the first window to the end of the last."""
    return (places - 1) * dim.stride + dim.span


def _by_doubling(ufunc: np.ufunc, neutral: Any, operand: Array, axis: int, dim: WindowDimension, places: int) -> Array:
    """The fold of windows from folds of runs of 1, 2, 4, ... elements, each combined from two runs of half the size."""
    reach = _reach(dim, places)
    runs = np.full((reach, *np.delete(operand.shape, axis)), neutral, operand.dtype)
    line = np.moveaxis(operand, axis, 0)
    ones = evolve(dim, size=1, stride=1)
    for _, where, elements in taps((ones,), line.shape[:1], (reach,)):
        runs[where] = line[elements]
    total, done, length = None, 0, 1
    while length <= dim.size:
        if dim.size & length:
            part = runs[done * dim.window_dilation :][: (places - 1) * dim.stride + 1 : dim.stride]
            total = part.copy() if total is None else ufunc(total, part, out=total)
            done += length
        shift = length * dim.window_dilation
        runs = ufunc(runs[:-shift], runs[shift:]) if shift < len(runs) else runs[:0]
        length *= 2
    return np.moveaxis(np.asarray(total), 0, axis)


def selected(region: AppliedComputation, operand: Array, window: Window) -> Array:
    """The number of the element that the computation selects in each window, or -1 for a window without elements.

    Window elements are read in order: where the computation is false, a later element replaces the selected one.
    """
    counts = tuple(dim.places(extent) for dim, extent in zip(window, operand.shape, strict=True))
    numbers = np.arange(operand.size, dtype=np.min_scalar_type(-operand.size - 1)).reshape(operand.shape)
    best, which = np.zeros(counts, operand.dtype), np.full(counts, -1, numbers.dtype)
    have_all = False
    for _, at_places, at_elements in taps(window, operand.shape, counts):
        # the ellipsis makes an index of rank 0 give an array instead of a copy of the element
        places: Any = (*at_places, ...)
        elements: Any = (*at_elements, ...)
        now, candidate = best[places], operand[elements]
        if have_all:
            taken = ~applied(region, [now, candidate])[0]
        else:
            taken = _taken(region, now, candidate, which[places] < 0)
            have_all = is_whole(at_places, counts)
        _replace(now, candidate, taken)
        _replace(which[places], numbers[elements], taken)
    return which


def _taken(region: AppliedComputation, best: Array, candidate: Array, first: Array) -> Array:
    """Whether each candidate is selected: no element is selected yet, or the computation rejects the selected one."""
    later = ~first
    if later.any():
        first[later] = ~applied(region, [best[later], candidate[later]])[0]
    return first


def _replace(target: Array, source: Array, chosen: Array) -> None:
    """Write the source where `chosen` is true, by bit masks, whose time does not depend on the pattern of `chosen`."""
    if target.dtype.itemsize > 8:
        np.copyto(target, source, where=chosen)
        return
    bits = np.dtype(f"u{target.dtype.itemsize}")
    changed, mask = target.view(bits) ^ source.view(bits), np.array(chosen, bits)
    changed &= np.negative(mask, out=mask)
    np.bitwise_xor(target.view(bits), changed, out=target.view(bits))
