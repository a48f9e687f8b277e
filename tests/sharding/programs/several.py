"""Draws of ops of several arrays: sorts, reductions, windows; of barriers and tuples, random bits, asynchronous ops."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import xbuild as xb

from .drawing import Draw, Values, adds, number, one, small, spread_to


def _with_places(x: xb.Value, dim: int) -> xb.Value:
    return xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=dim)


def sorted_together(chance: random.Random, values: Values) -> xb.Value | None:
    """An array sorted downwards, and what stands beside it moved with it."""
    x = one(chance, values, 1, "signed", "unsigned", "float", "pred")
    if x is None:
        return None
    dim = chance.randrange(x.shape.rank)
    others = [each for each in values if each.shape.dims == x.shape.dims]
    beside = chance.choice([_with_places(x, dim), *others])

    def before(a: Any, b: Any, _c: Any, _d: Any) -> Any:
        return xb.ops.compare(a, b, direction="GT")

    found = xb.ops.sort((x, beside), to_apply=before, dimension=dim, is_stable=True)
    return xb.ops.get_tuple_element(found, index=chance.randrange(2))


def greatest(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1, "signed", "unsigned", "float")
    if x is None or not x.shape.dims[-1]:
        return None
    found = xb.ops.topk(x, k=chance.randrange(1, x.shape.dims[-1] + 1), largest=chance.random() < 0.5)
    return xb.ops.get_tuple_element(found, index=chance.randrange(2))


def folded_oddly(chance: random.Random, values: Values) -> xb.Value | None:
    """A reduction by a computation that is no single op."""
    x = one(chance, values, 1, "signed", "float")
    if x is None or not adds(x):
        return None
    dims = sorted(chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1)))

    def by(a: Any, b: Any) -> Any:
        return xb.ops.maximum(xb.ops.abs(a), xb.ops.abs(b))

    return xb.ops.reduce((x,), (number(x, 1),), to_apply=by, dimensions=dims)


def folded_together(chance: random.Random, values: Values) -> xb.Value | None:
    """The sum and the greatest of one array, in one reduction or in one window."""
    x = one(chance, values, 1, "signed", "float")
    if x is None or not adds(x):
        return None
    inits = (number(x, 0), number(x, -9))

    def by(a: Any, b: Any, c: Any, d: Any) -> Any:
        return xb.ops.add(a, c), xb.ops.maximum(b, d)

    dim = chance.randrange(x.shape.rank)
    if chance.random() < 0.5:
        found = xb.ops.reduce((x, x), inits, to_apply=by, dimensions=(dim,))
    else:
        window = [xb.WindowDimension(2 if n == dim and extent > 1 else 1) for n, extent in enumerate(x.shape.dims)]
        found = xb.ops.reduce_window((x, x), inits, to_apply=by, window=window)
    return small(xb.ops.get_tuple_element(found, index=chance.randrange(2)))


def mapped(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 0, "signed", "float")
    y = chance.choice([each for each in values if x is not None and each.shape == x.shape] or [None])
    if x is None or y is None:
        return None
    made = xb.ops.map((x, y), to_apply=lambda a, b: xb.ops.maximum(a, xb.ops.negate(b)), dimensions=range(x.shape.rank))
    return small(made)


def chosen_places(chance: random.Random, values: Values) -> xb.Value | None:
    """The places of the greatest elements of windows get the numbers of a source."""
    x = one(chance, values, 1, "signed", "float")
    if x is None or not adds(x) or 0 in x.shape.dims:
        return None
    window = []
    for extent in x.shape.dims:
        size = chance.randrange(1, min(extent, 3) + 1)
        low, high = (chance.randrange(2), chance.randrange(2)) if size > 1 else (0, 0)
        window.append(xb.WindowDimension(size, chance.choice((1, 2)), low, high))
    dims = [each.places(extent) for each, extent in zip(window, x.shape.dims, strict=True)]
    source = spread_to(x, number(x, 2)) if tuple(dims) == x.shape.dims else xb.ops.broadcast(
        number(x, 2), sizes=dims, dimensions=())  # fmt: skip
    return xb.ops.select_and_scatter(x, source, number(x, 0), select=lambda a, b: xb.ops.compare(a, b, direction="GE"),
                                     scatter=xb.ops.add, window=window)  # fmt: skip


def behind_a_barrier(chance: random.Random, values: Values) -> xb.Value | None:
    x, y = one(chance, values), one(chance, values)
    nested = xb.ops.tuple_((x, xb.ops.tuple_((y, x))))
    found = xb.ops.opt_barrier(nested)
    if chance.random() < 0.5:
        return xb.ops.get_tuple_element(found, index=0)
    return xb.ops.get_tuple_element(xb.ops.get_tuple_element(found, index=1), index=chance.randrange(2))


def beside(chance: random.Random, values: Values) -> xb.Value | None:
    """What hands a value on: copies, asynchronous calls, domains, dependencies."""
    x, ops = one(chance, values), xb.ops
    token = ops.after_all((), builder=x.builder)

    def turned(y: xb.Value) -> xb.Value:
        return ops.reverse(y, dimensions=range(y.shape.rank))

    ways = (
        lambda: ops.copy_done(ops.copy_start(x)),
        lambda: ops.async_done(ops.async_start((x,), calls=turned)),
        lambda: ops.add_dependency(x, token),
        lambda: ops.domain(x, entry="{}", exit="{}"),
        lambda: ops.bitcast(x, shape=x.shape),
    )
    return chance.choice(ways)()


def random_bits(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values)
    state = xb.constant(x.builder, np.array([chance.randrange(1 << 30), 7], np.uint64))
    dtype = chance.choice((xb.u32, xb.u8, xb.u64))
    found = xb.ops.rng_bit_generator(state, algorithm="rng_three_fry", shape=dtype[x.shape.dims])
    return small(xb.ops.get_tuple_element(found, index=1))


def marked(chance: random.Random, values: Values) -> xb.Value | None:
    """A constraint on a sharding, that of the annotation it may get."""
    x = one(chance, values)
    return xb.ops.custom_call((x,), custom_call_target="Sharding", shape=x.shape)


DRAWS: tuple[Draw, ...] = (
    sorted_together, greatest, folded_oddly, folded_together, mapped, chosen_places, behind_a_barrier, beside,
    random_bits, marked,
)  # fmt: skip
