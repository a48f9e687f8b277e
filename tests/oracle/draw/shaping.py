"""Draws of the ops that move elements, or say how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def broadcast(chance: Chance, dtype: PrimitiveType) -> Instance:
    sizes = chance.dims()
    dimensions = chance.some(range(len(sizes)))
    if chance.odds(0.2):  # which may change places, too
        dimensions = chance.shuffled(dimensions)
    operand = chance.values(dtype, [sizes[d] for d in dimensions])
    return Instance("broadcast", dtype, (operand,), {"sizes": sizes, "dimensions": tuple(dimensions)})


def reshape(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    return Instance("reshape", dtype, (chance.values(dtype, dims),), {"new_sizes": reshaped(chance, dims)})


def reshaped(chance: Chance, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Other extents for as many elements."""
    left, found = int(np.prod(dims, dtype=int)), []
    if not left:
        return tuple(chance.shuffled([0, *chance.dims(rank=chance.between(0, 4))]))
    while (left > 1 or chance.odds(0.1)) and len(found) < 4:
        factor = chance.one([n for n in range(1, left + 1) if left % n == 0])
        found.append(factor)
        left //= factor
    return tuple(chance.shuffled([*found, left]))


def transpose(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    permutation = tuple(chance.shuffled(range(len(dims))))
    return Instance("transpose", dtype, (chance.values(dtype, dims),), {"permutation": permutation})


def reverse(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    dimensions = tuple(chance.some(range(len(dims))))
    return Instance("reverse", dtype, (chance.values(dtype, dims),), {"dimensions": dimensions})


def concatenate(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = list(chance.dims(rank=chance.between(1, 5)))
    dimension = chance.between(0, len(dims) - 1)
    extents = [chance.between(0, 4) for _ in range(chance.between(1, 4))]
    parts = [chance.values(dtype, [*dims[:dimension], n, *dims[dimension + 1 :]]) for n in extents]
    return Instance("concatenate", dtype, (tuple(parts),), {"dimension": dimension})


def pad(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    padding = [amounts(chance, extent) for extent in dims]
    return Instance("pad", dtype, (chance.values(dtype, dims), chance.values(dtype)), {"padding": padding})


def amounts(chance: Chance, extent: int) -> tuple[int, int, int]:
    """Padding of one dimension, of which at most everything is cropped."""
    low, interior = chance.between(-3, 4), chance.one((0, 0, 0, 1, 2))
    room = extent + max(extent - 1, 0) * interior + low
    return low, max(chance.between(-3, 4), -room), interior


def get_dimension_size(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims(rank=chance.between(1, 5))
    attributes = {"dimension": chance.between(0, len(dims) - 1)}
    return Instance("get_dimension_size", dtype, (chance.values(dtype, dims),), attributes)


def set_dimension_size(chance: Chance, dtype: PrimitiveType) -> Instance:
    """What the dynamic dimension leaves is seen through its size and, where the type can be compared, its elements."""
    dims = chance.dims(rank=chance.between(1, 3), least=1)
    dimension = chance.between(0, len(dims) - 1)
    size = np.int32(chance.between(0, dims[dimension]))
    return Instance(
        "set_dimension_size",
        dtype,
        (chance.whole(dtype, dims), np.asarray(size)),
        {"dimension": dimension},
        is_exact=True,
        finish=lambda value: [xb.ops.get_dimension_size(value, dimension=dimension), greatest(value, dtype)],
    )


def greatest(value: xb.Value, dtype: PrimitiveType) -> xb.Value:
    """The sum of everything; of a dynamic dimension only what is there."""
    start = xb.constant(value.builder, literal=np.zeros((), np.int32))
    present = xb.ops.convert(value, new_element_type=xb.s32)
    return xb.ops.reduce(present, start, to_apply=xb.add, dimensions=range(value.shape.rank))


def dynamic_reshape(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims(rank=chance.between(0, 3), least=1)
    bounds = reshaped(chance, dims)
    attributes: dict[str, Any] = {
        "new_size_bounds": bounds,
        "dims_are_dynamic": tuple(chance.odds(0.5) for _ in bounds),
    }
    sizes = tuple(np.asarray(n, np.int32) for n in bounds)
    return Instance("dynamic_reshape", dtype, (chance.values(dtype, dims), sizes), attributes)


DRAWS: dict[str, Draw] = {
    "broadcast": broadcast,
    "concatenate": concatenate,
    "dynamic_reshape": dynamic_reshape,
    "get_dimension_size": get_dimension_size,
    "pad": pad,
    "reshape": reshape,
    "reverse": reverse,
    "set_dimension_size": set_dimension_size,
    "transpose": transpose,
}
