"""Functions that move elements, prepared for known extents: broadcasts, and slices at starts that vary."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

SMALL = 4096  # the number of elements up to which a copy is faster than a view


@lru_cache(maxsize=4096)
def broadcaster(operand: Dims, target: Dims, dimensions: Dims) -> Callable[[Array], Array]:
    """The function that broadcasts an array of these extents: its dimension i becomes `dimensions[i]` of the target."""
    ascending = sorted(dimensions)
    order = None if ascending == [*dimensions] else [dimensions.index(dim) for dim in ascending]
    aligned = [1] * len(target)
    for dim, extent in zip(dimensions, operand, strict=True):
        aligned[dim] = extent

    def broadcast(array: Array) -> Array:
        if order is not None:
            array = array.transpose(order)
        if prod(target) > SMALL:
            return np.broadcast_to(array.reshape(aligned), target)
        result = np.empty(target, array.dtype)
        result[...] = array.reshape(aligned) if dimensions else array
        return result

    return broadcast


@lru_cache(maxsize=4096)
def slicer(operand: Dims, sizes: Dims) -> Callable[..., Array]:
    """The function that slices an array of these extents; it takes a start for each dimension that is not complete.

    Starts are clamped so that the slice is inside.
    """
    moving = [dim for dim, extent in enumerate(operand) if sizes[dim] != extent]
    if len(moving) == 1:
        (dim,) = moving
        before, size, last = (slice(None),) * dim, sizes[dim], operand[dim] - sizes[dim]

        def take_one(array: Array, start: Any) -> Array:
            first = max(0, min(int(start), last))
            return array[(*before, slice(first, first + size))]

        return take_one

    def take(array: Array, *starts: Any) -> Array:
        index = [slice(None)] * len(operand)
        for dim, start in zip(moving, starts, strict=True):
            first = max(0, min(int(start), operand[dim] - sizes[dim]))
            index[dim] = slice(first, first + sizes[dim])
        return array[tuple(index)]

    return take
