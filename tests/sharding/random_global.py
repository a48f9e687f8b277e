"""Random global programs of small arrays: ops of every family in a row, of integers and floats."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import XbuildError

EXTENTS = (1, 2, 3, 4, 5, 6, 8)
Values = list[xb.Value]
Draw = Callable[[random.Random, Values], "xb.Value | None"]


def random_program(chance: random.Random, length: int) -> tuple[xb.Module, list[np.ndarray[Any, Any]]]:
    """A module of about `length` ops, and its arguments."""
    builder, arguments, values = xb.Builder("program"), [], []
    for number in range(chance.randrange(1, 4)):
        dims = tuple(chance.choice(EXTENTS) for _ in range(chance.randrange(1, 4)))
        dtype = chance.choice((xb.s32, xb.s32, xb.f32))
        values.append(xb.parameter(builder, number=number, shape=dtype[dims]))
        arguments.append(
            np.array([chance.randrange(-4, 5) for _ in range(int(np.prod(dims)))]).reshape(dims).astype(dtype.dtype)
        )
    while len(builder.recorded) < length:
        made = _made(chance, values)
        if made is not None and made.shape.size <= 4096:
            values.append(made)
    results = values[-2:] if chance.random() < 0.5 else values[-1:]
    root = xb.ops.tuple_(tuple(results)) if len(results) > 1 else xb.copy(results[0])
    return xb.Module("program", builder.build(root)), arguments


def _made(chance: random.Random, values: Values) -> xb.Value | None:
    """One more value, or None where the op refuses what was drawn."""
    try:
        return chance.choice(DRAWS)(chance, values)
    except XbuildError:
        return None


def _one(chance: random.Random, values: Values, rank: int = 0) -> xb.Value | None:
    """One of the later values, of at least a rank."""
    fitting = [each for each in values[-6:] if each.shape.rank >= rank]
    return chance.choice(fitting) if fitting else None


def _small(x: xb.Value) -> xb.Value:
    """The numbers folded into a small range, so that products stay exact."""
    if x.shape.dtype is xb.s32:
        return xb.remainder(x, xb.ops.broadcast(xb.constant(x.builder, np.int32(7)), sizes=x.shape.dims, dimensions=()))
    return xb.clamp(-4.0, x, 4.0)


def unary(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    ops = (xb.negate, xb.abs, xb.sign, _small) if x.shape.dtype is xb.s32 else (xb.negate, xb.tanh, xb.floor, _small)
    return chance.choice(ops)(x)


def binary(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    same = [each for each in values if each.shape == x.shape]
    y = chance.choice(same)
    return _small(chance.choice((xb.add, xb.subtract, xb.multiply, xb.maximum, xb.minimum))(x, y))


def chosen(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    return xb.select(xb.gt(x, xb.negate(x)), x, xb.ops.broadcast(_number(x, 3), sizes=x.shape.dims, dimensions=()))


def _number(x: xb.Value, number: int) -> xb.Value:
    return xb.constant(x.builder, np.array(number, x.shape.dtype.dtype))


def turned(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    order = list(range(x.shape.rank)) if x is not None else []
    chance.shuffle(order)
    return None if x is None else xb.ops.transpose(x, permutation=order)


def relaid(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
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
    x = _one(chance, values)
    if x.shape.rank > 3:
        return None
    place = chance.randrange(x.shape.rank + 1)
    sizes = [*x.shape.dims[:place], chance.choice(EXTENTS), *x.shape.dims[place:]]
    return xb.ops.broadcast(x, sizes=sizes, dimensions=[n for n in range(len(sizes)) if n != place])


def product(chance: random.Random, values: Values) -> xb.Value | None:
    pairs = [
        (x, y, m, n)
        for x in values[-5:] for y in values[-5:] if x.shape.dtype is y.shape.dtype
        for m, a in enumerate(x.shape.dims) for n, b in enumerate(y.shape.dims)
        if a == b and x.shape.rank + y.shape.rank <= 5
    ]  # fmt: skip
    if not pairs:
        return None
    x, y, m, n = chance.choice(pairs)
    return _small(xb.ops.dot(_small(x), _small(y), lhs_contracting_dims=(m,), rhs_contracting_dims=(n,)))


def folded(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    dims = sorted(chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1)))
    by = chance.choice((xb.ops.add, xb.ops.maximum, xb.ops.minimum))
    return xb.ops.reduce((x,), (_number(x, chance.randrange(-2, 3)),), to_apply=by, dimensions=dims)


def best(chance: random.Random, values: Values) -> xb.Value | None:
    """The place of the greatest number along a dimension: a reduction of two arrays."""
    x = _one(chance, values, 1)
    if x is None:
        return None
    dim = chance.randrange(x.shape.rank)
    places = xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=dim)

    def better(a: Any, i: Any, b: Any, j: Any) -> Any:
        is_first = xb.ops.or_(xb.gt(a, b), xb.ops.and_(xb.eq(a, b), xb.lt(i, j)))
        return xb.select(is_first, a, b), xb.select(is_first, i, j)

    least = np.array(-100, x.shape.dtype.dtype)
    inits = (xb.constant(x.builder, least), xb.constant(x.builder, np.int32(1 << 20)))
    found = xb.ops.reduce((x, places), inits, to_apply=better, dimensions=(dim,))
    return xb.ops.get_tuple_element(found, index=1)


def cropped(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    starts, limits, strides = [], [], []
    for extent in x.shape.dims:
        low = chance.randrange(extent + 1) if chance.random() < 0.5 else 0
        high = chance.randrange(low, extent + 1) if chance.random() < 0.5 else extent
        starts.append(low), limits.append(high), strides.append(chance.choice((1, 1, 2)))
    return xb.ops.slice(x, start_indices=starts, limit_indices=limits, strides=strides)


def padded(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    around = [
        xb.PaddingDimension(chance.choice((0, 0, 1, 2, -1)), chance.choice((0, 0, 1, 3, -1)), chance.choice((0, 0, 1)))
        for _ in x.shape.dims
    ]
    sizes = [n + (n - 1) * p.interior + p.low + p.high if n else 0 for n, p in zip(x.shape.dims, around, strict=True)]
    return xb.ops.pad(x, _number(x, 2), padding=around) if min(sizes) >= 0 else None


def joined(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    same = [each for each in values if each.shape == x.shape]
    return xb.ops.concatenate((x, chance.choice(same)), dimension=chance.randrange(x.shape.rank))


def reversed_(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    return None if x is None else xb.ops.reverse(x, dimensions=(chance.randrange(x.shape.rank),))


def ordered(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    return (
        None
        if x is None
        else xb.ops.sort((x,), to_apply=lambda a, b: xb.lt(a, b), dimension=chance.randrange(x.shape.rank))
    )


def windows(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
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
    by, start = chance.choice(((xb.ops.add, 0), (xb.ops.maximum, -9), (xb.ops.minimum, 9)))
    return _small(xb.ops.reduce_window((x,), (_number(x, start),), to_apply=by, window=window))


def convolved(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 3)
    if x is None or x.shape.rank != 3:
        return None
    _, features, extent = x.shape.dims
    out, size = chance.choice((1, 2, 4)), chance.choice((1, 2, 3))
    kernel = np.array([chance.randrange(-2, 3) for _ in range(out * features * size)]).reshape(out, features, size)
    weights = xb.constant(x.builder, kernel.astype(x.shape.dtype.dtype))
    low, high, dilation = chance.randrange(3), chance.randrange(3), chance.choice((1, 1, 2))
    window = xb.WindowDimension(size, chance.choice((1, 1, 2)), low, high, dilation)
    if window.places(extent) <= 0:
        return None
    roles = xb.ConvolutionDimensionNumbers.read("bf0_oi0->bf0")
    return _small(xb.ops.convolution(_small(x), weights, window=(window,), dimension_numbers=roles))


def picked(chance: random.Random, values: Values) -> xb.Value | None:
    """Rows by a list of numbers, some of them outside."""
    x = _one(chance, values, 1)
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
    x = _one(chance, values, 1)
    if x is None:
        return None
    dim, count = chance.randrange(x.shape.rank), chance.choice((1, 2, 3, 4, 6))
    rows = xb.constant(
        x.builder, np.array([chance.randrange(-1, x.shape.dims[dim] + 2) for _ in range(count)], np.int32)
    )
    dims = [count, *(extent for n, extent in enumerate(x.shape.dims) if n != dim)]
    numbers = np.array([chance.randrange(-3, 4) for _ in range(int(np.prod(dims)))]).reshape(dims)
    updates = xb.constant(x.builder, numbers.astype(x.shape.dtype.dtype))
    by, rest = chance.choice((xb.ops.add, xb.ops.maximum)), range(1, len(dims))
    return xb.ops.scatter((x,), rows, (updates,), to_apply=by, update_window_dims=rest, inserted_window_dims=(dim,),
                          scatter_dims_to_operand_dims=(dim,), index_vector_dim=1)  # fmt: skip


def _start(chance: random.Random, x: xb.Value, extent: int) -> xb.Value:
    return xb.constant(x.builder, np.int32(chance.randrange(-1, extent + 1)))


def moved(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    sizes = [chance.choice((extent, chance.randrange(extent + 1))) for extent in x.shape.dims]
    starts = [_start(chance, x, extent) for extent in x.shape.dims]
    part = xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)
    if chance.random() < 0.5:
        return part
    starts = [_start(chance, x, extent) for extent in x.shape.dims]
    return xb.ops.dynamic_update_slice(x, _small(part), starts)


def looped(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    trips = chance.randrange(4)
    state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x))

    def body(state: Any) -> Any:
        number, y = state
        return number + 1, _small(y + y)

    found = xb.ops.while_(state, condition=lambda state: xb.lt(state[0], np.int32(trips)), body=body)
    return xb.ops.get_tuple_element(found, index=1)


def branched(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    flat = xb.ops.reduce((x,), (_number(x, 0),), to_apply=xb.ops.add, dimensions=range(x.shape.rank))
    is_more = xb.gt(flat, _number(x, 0))
    return xb.ops.conditional(is_more, (x, x), branch_computations=(lambda y: xb.negate(y), lambda y: _small(y + y)))


def called(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values)
    return xb.ops.call((x,), to_apply=lambda y: xb.abs(y) - y)


def counted(chance: random.Random, values: Values) -> xb.Value | None:
    x = _one(chance, values, 1)
    if x is None:
        return None
    return xb.ops.iota(x.builder, shape=x.shape.dtype[x.shape.dims], iota_dimension=chance.randrange(x.shape.rank))


def as_other(chance: random.Random, values: Values) -> xb.Value | None:
    x = _small(_one(chance, values))
    return xb.ops.convert(x, new_element_type=xb.f32 if x.shape.dtype is xb.s32 else xb.s32)


DRAWS: tuple[Draw, ...] = (
    unary, binary, binary, chosen, turned, relaid, relaid, spread, product, product, folded, folded, best, cropped,
    padded, joined, reversed_, ordered, windows, windows, convolved, convolved, picked, scattered, moved, looped,
    branched, called, counted, as_other,
)  # fmt: skip
