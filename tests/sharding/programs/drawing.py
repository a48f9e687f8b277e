"""What the draws of random programs share: a value among those made, numbers of its type, sums that stay exact."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType
from shape_inference.dims import limits

EXTENTS = (1, 2, 3, 4, 5, 6, 8)
Values = list[xb.Value]
Draw = Callable[[random.Random, Values], "xb.Value | None"]


def one(chance: random.Random, values: Values, rank: int = 0, *kinds: str) -> xb.Value | None:
    """One of the later values, of at least a rank, and of an element type of these kinds."""
    fitting = [
        each for each in values[-6:] if each.shape.rank >= rank and (not kinds or each.shape.dtype.kind in kinds)
    ]
    return chance.choice(fitting) if fitting else None


def of_type(dtype: PrimitiveType, value: int) -> Any:
    """A number in an element type, the nearest that it has."""
    if dtype.is_integer:
        low, high = limits(dtype)
        return np.array(min(max(value, low), high), dtype.dtype)
    return np.array(abs(value) or 1 if dtype.name == "f8e8m0fnu" else value).astype(dtype.dtype)


def number(x: xb.Value, value: int) -> xb.Value:
    """A scalar of the type of a value."""
    return xb.constant(x.builder, of_type(x.shape.dtype, value))


def spread_to(x: xb.Value, scalar: xb.Value) -> xb.Value:
    """A scalar with the extents of a value."""
    return xb.ops.broadcast(scalar, sizes=x.shape.dims, dimensions=())


def small(x: xb.Value) -> xb.Value:
    """The numbers folded into a small range, so that sums and products of a few stay exact."""
    dtype = x.shape.dtype
    if dtype.is_integer:
        return xb.ops.remainder(x, spread_to(x, number(x, 7)))
    return xb.ops.clamp(number(x, -4), x, number(x, 4)) if dtype.is_float else x


def adds(x: xb.Value) -> bool:
    """Whether sums of some small numbers are exact in the type of a value."""
    return x.shape.dtype.kind != "float" or x.shape.dtype.bits >= 16


def total(x: xb.Value) -> xb.Value:
    """The sum of an array of integers or floats, a scalar of f32."""
    wide = xb.ops.convert(small(x), new_element_type=xb.f32)
    zero = xb.constant(x.builder, np.float32(0))
    return xb.ops.reduce((wide,), (zero,), to_apply=xb.ops.add, dimensions=range(x.shape.rank))


def integers(chance: random.Random, dims: Sequence[int], low: int = -4, high: int = 4) -> Any:
    """Random integers of these extents."""
    return np.array([chance.randrange(low, high + 1) for _ in range(int(np.prod(dims)))]).reshape(dims)


def constant(chance: random.Random, x: xb.Value, dims: Sequence[int], low: int = -3, high: int = 3) -> xb.Value:
    """A constant of the type of a value, of random small numbers."""
    dtype = x.shape.dtype
    low = 0 if dtype.kind in ("unsigned", "pred") else low
    return xb.constant(x.builder, integers(chance, dims, low, high).astype(dtype.dtype))
