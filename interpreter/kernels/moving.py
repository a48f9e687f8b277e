"""Broadcasts of arrays: a copy of a small result, a view with strides of zero of a large one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

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
