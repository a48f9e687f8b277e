"""Shapes of the slices that a scan passes to its computation."""

from __future__ import annotations

from collections.abc import Sequence

from . import dims
from .rules import refuse
from .types import AnyShape, Shape


def sliced(inputs: Sequence[AnyShape], dimension: int) -> list[Shape]:
    """The shapes of the inputs without the scanned dimension."""
    found = []
    for number, each in enumerate(inputs):
        shape = dims.array(f"operands[{number}]", each)
        if not shape.dims:
            refuse("rank_too_small", f"operands[{number}] is {shape}, which has no dimension to be scanned along")
        dims.dimension("dimension", dimension, f"operands[{number}]", shape)
        kept = [dim for dim in range(shape.rank) if dim != dimension]
        flags = dims.dynamic_of(len(kept), (shape.dynamic[dim] for dim in kept if shape.dynamic))
        found.append(Shape(shape.dtype, tuple(shape.dims[dim] for dim in kept), flags))
    return found
