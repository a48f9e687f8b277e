"""Draws of the slices, with starts far outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shape_inference import PrimitiveType

from ..chance import TYPES, Array, Chance
from ..instance import Instance
from .draw import Draw


def slice_(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    ends = [sorted((chance.between(0, n), chance.between(0, n))) for n in dims]
    attributes = {
        "start_indices": tuple(low for low, _ in ends),
        "limit_indices": tuple(high for _, high in ends),
        "strides": tuple(chance.one((1, 1, 2, 3)) for _ in dims),
    }
    return Instance("slice", dtype, (chance.values(dtype, dims),), attributes)


def dynamic_slice(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    sizes = tuple(n if chance.odds(0.1) else chance.between(0 if chance.odds(0.1) else min(1, n), n) for n in dims)
    operands = chance.values(dtype, dims), starts(chance, dims)
    return Instance("dynamic_slice", dtype, operands, {"dynamic_slice_sizes": sizes})


def dynamic_update_slice(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()
    update = chance.values(dtype, [chance.between(0 if chance.odds(0.05) else min(1, n), n) for n in dims])
    return Instance("dynamic_update_slice", dtype, (chance.values(dtype, dims), update, starts(chance, dims)))


def starts(chance: Chance, dims: tuple[int, ...]) -> tuple[Array, ...]:
    """A start for each dimension, of one type of integers, near the ends or at those of the type.

    Of types of less than a byte XLA:CPU reads starts wrongly, or past their end.
    """
    dtype = chance.one([t for t in TYPES if t.is_integer and t.bits >= 8])
    near = [chance.whole(dtype, (), n + 2) for n in dims]
    return tuple(np.asarray(chance.values(dtype) if chance.odds(0.2) else each) for each in near)


def indices(chance: Chance, shape: Sequence[int], largest: int) -> Array:
    """An array of indices of one type, most of them within or near the legal range."""
    dtype = chance.one([t for t in TYPES if t.is_integer and t.bits >= 8])
    is_far = chance.data.random(shape) < 0.1
    near = chance.data.integers(0 if dtype.kind == "unsigned" else -2, largest + 3, shape).astype(dtype.dtype)
    return np.asarray(np.where(is_far, chance.values(dtype, shape), near))


DRAWS: dict[str, Draw] = {
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "slice": slice_,
}
