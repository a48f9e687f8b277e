"""Draws of ops on each element, and of those that move elements."""

from __future__ import annotations

import random

import xbuild as xb

from .drawing import EXTENTS, Draw, Values, number, one, small, spread_to


def unary(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    is_smooth = x.shape.dtype in (xb.f32, xb.f64)
    ops = (xb.ops.negate, xb.ops.floor if x.shape.dtype.is_float else xb.ops.abs, xb.ops.tanh if is_smooth else small)
    return chance.choice(ops)(x)


def binary(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    same = [each for each in values if each.shape == x.shape]
    y = chance.choice(same)
    op = xb.ops
    return small(chance.choice((op.add, op.subtract, op.multiply, op.maximum, op.minimum))(x, y))


def chosen(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    is_more = xb.ops.compare(x, spread_to(x, number(x, chance.randrange(2))), direction="GT")
    return xb.ops.select(is_more, x, spread_to(x, number(x, 3)))


def turned(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    order = list(range(x.shape.rank)) if x is not None else []
    chance.shuffle(order)
    return None if x is None else xb.ops.transpose(x, permutation=order)


def relaid(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    dims = list(x.shape.dims)
    place = chance.randrange(len(dims))
    divisors = [each for each in range(1, dims[place] + 1) if dims[place] % each == 0]
    if chance.random() < 0.5 and len(dims) > 1:
        place = chance.randrange(len(dims) - 1)
        dims[place : place + 2] = [dims[place] * dims[place + 1]]
    elif divisors and len(dims) < 4:
        first = chance.choice(divisors)
        dims[place : place + 1] = [first, dims[place] // first]
    return xb.ops.reshape(x, new_sizes=dims)


def spread(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    if x.shape.rank > 3:
        return None
    place = chance.randrange(x.shape.rank + 1)
    sizes = [*x.shape.dims[:place], chance.choice(EXTENTS), *x.shape.dims[place:]]
    return xb.ops.broadcast(x, sizes=sizes, dimensions=[n for n in range(len(sizes)) if n != place])


def cropped(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    starts, limits, strides = [], [], []
    for extent in x.shape.dims:
        low = chance.randrange(extent + 1) if chance.random() < 0.5 else 0
        high = chance.randrange(low, extent + 1) if chance.random() < 0.5 else extent
        starts.append(low), limits.append(high), strides.append(chance.choice((1, 1, 2)))
    return xb.ops.slice(x, start_indices=starts, limit_indices=limits, strides=strides)


def padded(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    around = [
        xb.PaddingDimension(chance.choice((0, 0, 1, 2, -1)), chance.choice((0, 0, 1, 3, -1)), chance.choice((0, 0, 1)))
        for _ in x.shape.dims
    ]
    sizes = [n + (n - 1) * p.interior + p.low + p.high if n else 0 for n, p in zip(x.shape.dims, around, strict=True)]
    return xb.ops.pad(x, number(x, 2), padding=around) if min(sizes) >= 0 else None


def joined(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    same = [each for each in values if each.shape == x.shape]
    return xb.ops.concatenate((x, chance.choice(same)), dimension=chance.randrange(x.shape.rank))


def reversed_(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    return None if x is None else xb.ops.reverse(x, dimensions=(chance.randrange(x.shape.rank),))


def counted(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None:
        return None
    return xb.ops.iota(x.builder, shape=x.shape.dtype[x.shape.dims], iota_dimension=chance.randrange(x.shape.rank))


def as_other(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 0, "signed", "unsigned", "float", "pred")
    if x is None:
        return None
    to = chance.choice((xb.s32, xb.f32, xb.s8, xb.bf16, xb.f64, xb.u8, xb.s64))
    return xb.ops.convert(small(x), new_element_type=xb.s32 if x.shape.dtype is not xb.s32 and to is xb.u8 else to)


DRAWS: tuple[Draw, ...] = (
    unary, binary, binary, chosen, turned, relaid, relaid, spread, cropped, padded, joined, reversed_, counted,
    as_other,
)  # fmt: skip
