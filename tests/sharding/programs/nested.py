"""Draws of loops, branches, calls, fusions and scans, with random ops inside of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import xbuild as xb

from .drawing import Draw, Values, adds, constant, number, one, small, spread_to, total

DEEPEST = 2


def _inside(chance: random.Random, x: xb.Value, y: xb.Value | None = None) -> xb.Value:
    """A value of the type of `x`, made of it (and of another) by some random ops."""
    from .making import add_values

    values = [x] if y is None else [y, x]
    builder = x.builder
    if _depth(builder) < DEEPEST:
        add_values(chance, builder, values, len(builder.recorded) + chance.randrange(1, 5))
    same = [each for each in values if each.shape == x.shape]
    last = values[-1]
    if last.shape.dtype.kind in ("complex", "pred") or (not x.shape.dtype.is_integer and not x.shape.dtype.is_float):
        return same[-1]
    more = spread_to(x, xb.ops.convert(total(last), new_element_type=x.shape.dtype))
    return small(xb.ops.add(small(same[-1]), small(more)))


def _depth(builder: Any) -> int:
    depth = 0
    while getattr(builder, "parent", None) is not None:
        builder, depth = builder.parent, depth + 1
    return depth


def looped(chance: random.Random, values: Values) -> xb.Value | None:
    x, y = one(chance, values), one(chance, values)
    trips = chance.randrange(4)
    state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), xb.ops.tuple_((x, y))))
    seed = chance.random()

    def body(state: Any) -> Any:
        count, (a, b) = state[0], (state[1][0], state[1][1])
        inner = random.Random(seed)
        return count + 1, (_inside(inner, a, b), _inside(inner, b) if inner.random() < 0.5 else b)

    found = xb.ops.while_(state, condition=lambda state: xb.lt(state[0], np.int32(trips)), body=body)
    return xb.ops.get_tuple_element(xb.ops.get_tuple_element(found, index=1), index=chance.randrange(2))


def counted_by_data(chance: random.Random, values: Values) -> xb.Value | None:
    """A loop whose trips data decide, at most four."""
    x, y = one(chance, values), one(chance, values, 0, "signed", "float", "unsigned")
    if y is None:
        return None
    least, most = (xb.constant(x.builder, np.float32(each)) for each in (0, 4))
    trips = xb.ops.convert(xb.ops.clamp(least, total(y), most), new_element_type=xb.s32)
    state, seed = xb.ops.tuple_((trips, x)), chance.random()

    def body(state: Any) -> Any:
        return state[0] - 1, _inside(random.Random(seed), state[1])

    found = xb.ops.while_(state, condition=lambda state: xb.gt(state[0], np.int32(0)), body=body)
    return xb.ops.get_tuple_element(found, index=1)


def branched(chance: random.Random, values: Values) -> xb.Value | None:
    x, y = one(chance, values), one(chance, values, 0, "signed", "float", "unsigned")
    if y is None:
        return None
    seeds = [chance.random() for _ in range(chance.choice((2, 2, 3)))]
    branches = tuple(lambda a, seed=seed: _inside(random.Random(seed), a) for seed in seeds)
    flat = xb.ops.convert(total(y), new_element_type=xb.s32)
    chosen = xb.gt(flat, np.int32(0)) if len(seeds) == 2 and chance.random() < 0.5 else flat
    return xb.ops.conditional(chosen, (x,) * len(seeds), branch_computations=branches)


def called(chance: random.Random, values: Values) -> xb.Value | None:
    x, seed = one(chance, values), chance.random()

    def inner(a: Any) -> Any:
        return _inside(random.Random(seed), a)

    if chance.random() < 0.3:
        return xb.ops.fusion((x,), kind="kLoop", calls=inner)
    return xb.ops.call((x,), to_apply=inner)


def scanned(chance: random.Random, values: Values) -> xb.Value | None:
    """The sums up to each place along a dimension, or the last of them."""
    x = one(chance, values, 1, "signed", "float")
    if x is None or not adds(x):
        return None
    dim = chance.randrange(x.shape.rank)
    rest = [extent for n, extent in enumerate(x.shape.dims) if n != dim]
    init = constant(chance, x, rest) if rest else number(x, 1)

    def step(part: Any, carry: Any) -> Any:
        added = small(xb.ops.add(part, carry))
        return added, added

    found = xb.ops.scan((x, init), dimension=dim, num_carries=1, is_reverse=chance.random() < 0.3, to_apply=step)
    return xb.ops.get_tuple_element(found, index=chance.randrange(2))


DRAWS: tuple[Draw, ...] = (looped, looped, counted_by_data, branched, branched, called, called, scanned)
