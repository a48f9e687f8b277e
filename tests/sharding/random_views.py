"""Random global programs that only move elements: chains of slices, crops, pads, reversals, with any filler.

No element is computed, so that results are compared bit by bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import XbuildError

EXTENTS = (1, 2, 3, 3, 4, 5, 6, 7, 8, 9)
TYPES = (xb.f32, xb.f32, xb.s32, xb.s32, xb.pred, xb.u8, xb.bf16, xb.f16, xb.f64, xb.s64, xb.f8e4m3fn, xb.c64)
MOST_ELEMENTS = 1500
Draw = Callable[[random.Random, "list[xb.Value]"], "xb.Value"]


def view_program(chance: random.Random) -> tuple[xb.Module, list[np.ndarray[Any, Any]]]:
    """A module of one to seven moves of elements in a row, and its arguments."""
    builder, values, arguments = xb.Builder("views"), list[xb.Value](), []
    dtype = chance.choice(TYPES)
    rank = chance.choice((1, 2, 2, 2, 3))
    shapes = [tuple(chance.choice(EXTENTS) for _ in range(rank)) for _ in range(chance.randrange(1, 3))]
    for number, dims in enumerate([*shapes, ()]):
        values.append(xb.parameter(builder, number=number, shape=dtype[dims]))
        arguments.append(_numbers(chance, dims, dtype))
    left = chance.randrange(1, 8)
    for _ in range(80):
        made = _made(chance, values)
        if made is not None and made.shape.size <= MOST_ELEMENTS:
            values.append(made)
            left -= 1
        if not left:
            break
    results = [values[-1], *chance.sample(values, min(len(values), chance.choice((0, 0, 1, 2))))]
    root = xb.ops.tuple_(tuple(results)) if len(results) > 1 else xb.copy(results[0])
    return xb.Module("views", builder.build(root)), arguments


def _numbers(chance: random.Random, dims: Any, dtype: Any) -> Any:
    """Numbers that are all told apart, zeros with a sign, infinities and NaN among them."""
    count = int(np.prod(dims))
    found = np.arange(1, count + 1).astype(np.float64) % 97
    if dtype.kind == "pred":
        found = np.array([chance.randrange(2) for _ in range(count)])
    if dtype.kind in ("float", "complex"):
        for place in range(count):
            if chance.random() < 0.15:
                found[place] = chance.choice((-0.0, 0.0, np.inf, -np.inf, np.nan, -3.0))
    with np.errstate(all="ignore"):
        return found.astype(dtype.dtype).reshape(dims)


def _made(chance: random.Random, values: list[xb.Value]) -> xb.Value | None:
    try:
        return chance.choice(DRAWS)(chance, values)
    except XbuildError:
        return None


def _one(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """Mostly the last array, so that views of views come about."""
    arrays = [each for each in values if each.shape.rank and each.shape.size]
    return arrays[-1] if chance.random() < 0.75 else chance.choice(arrays)


def filler(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """The number that a pad puts in: a constant, neutral or not, a parameter, or an element of an array."""
    builder, dtype = values[0].builder, values[0].shape.dtype
    draw = chance.random()
    if draw < 0.15:
        return next(each for each in values if not each.shape.rank)
    if draw < 0.25:
        x = _one(chance, values)
        place = [chance.randrange(extent) if extent else 0 for extent in x.shape.dims]
        limits = [each + 1 for each in place]
        part = xb.ops.slice(x, start_indices=place, limit_indices=limits, strides=[1] * len(place))
        return xb.ops.reshape(part, new_sizes=())
    kinds = {"pred": (0, 1), "unsigned": (0, 1, 7)}
    number = chance.choice(kinds.get(dtype.kind, (0, 1, 1, -1, -2, 5)))
    if dtype.kind in ("float", "complex") and chance.random() < 0.4:
        number = chance.choice((-0.0, np.inf, -np.inf, np.nan, 0.5))
    with np.errstate(all="ignore"):
        return xb.constant(builder, np.array(number).astype(dtype.dtype))


def padded(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """Padding, or cropping, of some dimensions, and between elements."""
    x = _one(chance, values)
    around = []
    for extent in x.shape.dims:
        if chance.random() < 0.35:
            around.append(xb.PaddingDimension(0, 0, 0))
            continue
        low, high = (chance.choice((0, 1, 2, 4, -1, -2, -extent + 1)) for _ in range(2))
        around.append(xb.PaddingDimension(low, high, chance.choice((0, 0, 0, 1, 2))))
    return xb.ops.pad(x, filler(chance, values), padding=around)


def sliced(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    x = _one(chance, values)
    starts, limits, strides = [], [], []
    for extent in x.shape.dims:
        low = chance.randrange(extent) if extent and chance.random() < 0.6 else 0
        high = chance.randrange(low + 1, extent + 1) if extent > low and chance.random() < 0.6 else extent
        starts.append(low), limits.append(high), strides.append(chance.choice((1, 1, 1, 2, 3)))
    return xb.ops.slice(x, start_indices=starts, limit_indices=limits, strides=strides)


def narrow(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """A few elements along one dimension, which devices hold in part, and padding along the others."""
    x = _one(chance, values)
    dim = chance.randrange(x.shape.rank)
    extent = x.shape.dims[dim]
    size = chance.randrange(1, max(2, extent // 2 + 1))
    low = chance.randrange(max(1, extent - size + 1))
    around = [
        xb.PaddingDimension(-low, low + size - extent, 0)
        if n == dim
        else xb.PaddingDimension(chance.randrange(4), chance.randrange(4), chance.choice((0, 0, 1)))
        for n in range(x.shape.rank)
    ]
    return xb.ops.pad(x, filler(chance, values), padding=around)


def reversed_(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    x = _one(chance, values)
    dims = chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1))
    return xb.ops.reverse(x, dimensions=sorted(dims))


def joined(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    x = _one(chance, values)
    dim = chance.randrange(x.shape.rank)
    rest = [n for n in range(x.shape.rank) if n != dim]
    fitting = [
        each for each in values
        if each.shape.rank == x.shape.rank and all(each.shape.dims[n] == x.shape.dims[n] for n in rest)
    ]  # fmt: skip
    return xb.ops.concatenate([chance.choice(fitting) for _ in range(chance.randrange(1, 4))], dimension=dim)


def placed(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """A dynamic slice, or an update by such a part, at places that are constants."""
    x = _one(chance, values)
    sizes = [chance.choice((extent, chance.randrange(1, extent + 1))) for extent in x.shape.dims]
    starts = [xb.constant(x.builder, np.int32(chance.randrange(-1, extent + 1))) for extent in x.shape.dims]
    part = xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)
    if chance.random() < 0.6:
        return part
    others = [xb.constant(x.builder, np.int32(chance.randrange(-1, extent + 1))) for extent in x.shape.dims]
    return xb.ops.dynamic_update_slice(x, part, others)


def turned(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    x = _one(chance, values)
    return xb.ops.transpose(x, permutation=chance.sample(range(x.shape.rank), x.shape.rank))


def reshaped(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """Two dimensions as one, or one as two."""
    x = _one(chance, values)
    dims = list(x.shape.dims)
    dim = chance.randrange(len(dims))
    divisors = [n for n in range(1, dims[dim] + 1) if dims[dim] % n == 0]
    if len(dims) > 1 and dim + 1 < len(dims) and chance.random() < 0.5:
        dims[dim : dim + 2] = [dims[dim] * dims[dim + 1]]
    elif len(dims) < 3:
        first = chance.choice(divisors)
        dims[dim : dim + 1] = [first, dims[dim] // first]
    return xb.ops.reshape(x, new_sizes=dims)


def chosen(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """Elements of one array or of another of its shape."""
    x = _one(chance, values)
    y = chance.choice([each for each in values if each.shape == x.shape])
    places = xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=chance.randrange(x.shape.rank))
    least = xb.ops.broadcast(xb.constant(x.builder, np.int32(chance.randrange(4))), sizes=x.shape.dims, dimensions=())
    return xb.ops.select(xb.ops.compare(places, least, direction="GE"), x, y)


def in_a_loop(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    """A move of elements that keeps the shape, in each trip of a loop, or in a branch."""
    x, seed = _one(chance, values), chance.random()

    def step(y: Any) -> Any:
        inner = random.Random(seed)
        wide = narrow(inner, [y, _first(inner, y)]) if inner.random() < 0.5 else padded(inner, [y, _first(inner, y)])
        dims = [max(0, extent - have) for extent, have in zip(y.shape.dims, wide.shape.dims, strict=True)]
        filled = xb.ops.pad(wide, filler(inner, [y, _first(inner, y)]),
                            padding=[xb.PaddingDimension(0, each, 0) for each in dims])  # fmt: skip
        return xb.ops.slice(filled, start_indices=[0] * y.shape.rank, limit_indices=y.shape.dims,
                            strides=[1] * y.shape.rank)  # fmt: skip

    if chance.random() < 0.4:
        return xb.ops.call((x,), to_apply=step)
    trips = chance.randrange(1, 4)
    state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x))
    found = xb.ops.while_(
        state, condition=lambda s: xb.lt(s[0], np.int32(trips)), body=lambda s: (s[0] + 1, step(s[1]))
    )
    return xb.ops.get_tuple_element(found, index=1)


def _first(chance: random.Random, x: xb.Value) -> xb.Value:
    """An element of an array, as a number of its own."""
    part = xb.ops.slice(
        x, start_indices=[0] * x.shape.rank, limit_indices=[1] * x.shape.rank, strides=[1] * x.shape.rank
    )
    return xb.ops.reshape(part, new_sizes=())


DRAWS: tuple[Draw, ...] = (
    padded, padded, padded, narrow, narrow, narrow, sliced, sliced, reversed_, joined, placed, turned, reshaped, chosen,
    in_a_loop,
)  # fmt: skip
