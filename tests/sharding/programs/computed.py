"""Draws of products, reductions, windows and lookups of rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import xbuild as xb

from .drawing import Draw, Values, adds, constant, number, one, small


def product(chance: random.Random, values: Values) -> xb.Value | None:
    pairs = [
        (x, y, m, n)
        for x in values[-5:] for y in values[-5:] if x.shape.dtype is y.shape.dtype
        for m, a in enumerate(x.shape.dims) for n, b in enumerate(y.shape.dims)
        if a == b and x.shape.rank + y.shape.rank <= 5 and adds(x)
    ]  # fmt: skip
    if not pairs:
        return None
    x, y, m, n = chance.choice(pairs)
    return small(xb.ops.dot(small(x), small(y), lhs_contracting_dims=(m,), rhs_contracting_dims=(n,)))


def folded(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    dims = sorted(chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1)))
    by = chance.choice((xb.ops.add if adds(x) else xb.ops.maximum, xb.ops.maximum, xb.ops.minimum))
    return xb.ops.reduce((x,), (number(x, chance.randrange(-2, 3)),), to_apply=by, dimensions=dims)


def best(chance: random.Random, values: Values) -> xb.Value | None:
    """The place of the greatest number along a dimension: a reduction of two arrays."""
    x = one(chance, values, 1)
    if x is None:
        return None
    dim = chance.randrange(x.shape.rank)
    places = xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=dim)

    def better(a: Any, i: Any, b: Any, j: Any) -> Any:
        is_first = xb.ops.or_(xb.gt(a, b), xb.ops.and_(xb.eq(a, b), xb.lt(i, j)))
        return xb.select(is_first, a, b), xb.select(is_first, i, j)

    inits = (number(x, -100), xb.constant(x.builder, np.int32(1 << 20)))
    found = xb.ops.reduce((x, places), inits, to_apply=better, dimensions=(dim,))
    return xb.ops.get_tuple_element(found, index=1)


def ordered(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None

    def less(a: Any, b: Any) -> Any:
        return xb.ops.compare(a, b, direction="LT")

    return xb.ops.sort((x,), to_apply=less, dimension=chance.randrange(x.shape.rank))


def windows(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    window = []
    for extent in x.shape.dims:
        size = chance.choice((1, 1, 2, 3, extent))
        low, high = (
            (extent - 1, 0) if chance.random() < 0.3 and size == extent else (chance.randrange(2), chance.randrange(2))
        )
        window.append(
            xb.WindowDimension(
                size, chance.choice((1, 1, 2)), low, high, chance.choice((1, 1, 2)), chance.choice((1, 1, 2))
            )
        )
    if any(each.places(n) <= 0 for each, n in zip(window, x.shape.dims, strict=True)):
        return None
    sums = (xb.ops.add, 0) if adds(x) else (xb.ops.maximum, -1)
    by, start = chance.choice((sums, (xb.ops.maximum, -9), (xb.ops.minimum, 9)))
    return small(xb.ops.reduce_window((x,), (number(x, start),), to_apply=by, window=window))


def convolved(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 3)
    if x is None or x.shape.rank != 3 or not adds(x):
        return None
    _, features, extent = x.shape.dims
    out, size = chance.choice((1, 2, 4)), chance.choice((1, 2, 3))
    weights = constant(chance, x, (out, features, size), -2, 2)
    low, high, dilation = chance.randrange(3), chance.randrange(3), chance.choice((1, 1, 2))
    window = xb.WindowDimension(size, chance.choice((1, 1, 2)), low, high, dilation)
    if window.places(extent) <= 0:
        return None
    roles = xb.ConvolutionDimensionNumbers.read("bf0_oi0->bf0")
    return small(xb.ops.convolution(small(x), weights, window=(window,), dimension_numbers=roles))


def picked(chance: random.Random, values: Values) -> xb.Value | None:
    """Rows by a list of numbers, some of them outside."""
    x = one(chance, values, 1)
    if x is None:
        return None
    dim, count = chance.randrange(x.shape.rank), chance.choice((1, 2, 3, 4, 6))
    rows = xb.constant(
        x.builder, np.array([chance.randrange(-1, x.shape.dims[dim] + 2) for _ in range(count)], np.int32)
    )
    sizes = [1 if n == dim else extent for n, extent in enumerate(x.shape.dims)]
    rest = list(range(1, x.shape.rank))
    return xb.ops.gather(x, rows, offset_dims=rest, collapsed_slice_dims=(dim,), start_index_map=(dim,),
                         index_vector_dim=1, slice_sizes=sizes)  # fmt: skip


def scattered(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    dim, count = chance.randrange(x.shape.rank), chance.choice((1, 2, 3, 4, 6))
    rows = xb.constant(
        x.builder, np.array([chance.randrange(-1, x.shape.dims[dim] + 2) for _ in range(count)], np.int32)
    )
    dims = [count, *(extent for n, extent in enumerate(x.shape.dims) if n != dim)]
    updates = constant(chance, x, dims)
    by, rest = chance.choice((xb.ops.add if adds(x) else xb.ops.maximum, xb.ops.maximum)), range(1, len(dims))
    return xb.ops.scatter((x,), rows, (updates,), to_apply=by, update_window_dims=rest, inserted_window_dims=(dim,),
                          scatter_dims_to_operand_dims=(dim,), index_vector_dim=1)  # fmt: skip


def _start(chance: random.Random, x: xb.Value, extent: int) -> xb.Value:
    return xb.constant(x.builder, np.int32(chance.randrange(-1, extent + 1)))


def moved(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    sizes = [chance.choice((extent, chance.randrange(extent + 1))) for extent in x.shape.dims]
    starts = [_start(chance, x, extent) for extent in x.shape.dims]
    part = xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)
    if chance.random() < 0.5:
        return part
    starts = [_start(chance, x, extent) for extent in x.shape.dims]
    return xb.ops.dynamic_update_slice(x, small(part), starts)


DRAWS: tuple[Draw, ...] = (
    product, product, folded, folded, best, ordered, windows, windows, convolved, convolved, picked, scattered, moved,
)  # fmt: skip
