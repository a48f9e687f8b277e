"""Draws of gathers and scatters in their general form, and of slices whose starts are values of the program."""

from __future__ import annotations

import random
from typing import Any

import xbuild as xb

from .drawing import Draw, Values, adds, constant, integers, one

INDICES = (xb.s32, xb.s32, xb.s64, xb.u32, xb.s8)


def _places(chance: random.Random, x: xb.Value, dims: list[int], most: int) -> xb.Value:
    """Index vectors, some of them outside: constants, or numbers of the program."""
    dtype = chance.choice(INDICES)
    drawn = integers(chance, dims, 0 if dtype.kind == "unsigned" else -2, most + 1)
    made = xb.constant(x.builder, drawn.astype(dtype.dtype))
    if x.shape.dtype is dtype and x.shape.rank and chance.random() < 0.5:
        zeros = xb.ops.reduce((x,), (xb.constant(x.builder, dtype.dtype.type(0)),), to_apply=xb.ops.minimum,
                              dimensions=range(x.shape.rank))  # fmt: skip
        made = xb.ops.add(made, xb.ops.broadcast(zeros, sizes=dims, dimensions=()))
    return made


def _roles(chance: random.Random, rank: int) -> tuple[list[int], list[int], list[int]]:
    """The dimensions that are batches, those of which single elements are taken, and those that indices name."""
    roles = [chance.choice(("batch", "single", "window", "window")) for _ in range(rank)]
    batch = [n for n, role in enumerate(roles) if role == "batch"][:1]
    single = [n for n, role in enumerate(roles) if role == "single" and n not in batch]
    named = [n for n in range(rank) if n not in batch and (chance.random() < 0.7)]
    chance.shuffle(named)
    return batch, single, named


def looked_up(chance: random.Random, values: Values) -> xb.Value | None:
    x = one(chance, values, 1)
    if x is None or 0 in x.shape.dims:
        return None
    batch, single, named = _roles(chance, x.shape.rank)
    extents = [x.shape.dims[n] for n in batch] + [chance.choice((1, 2, 3, 4)) for _ in range(chance.randrange(3))]
    order = list(range(len(extents)))
    vector_dim = chance.randrange(len(extents) + 1)
    dims = [*extents[:vector_dim], len(named), *extents[vector_dim:]]
    sizes = [1 if n in single or n in batch else chance.choice((extent, chance.randrange(1, extent + 1)))
             for n, extent in enumerate(x.shape.dims)]  # fmt: skip
    kept = x.shape.rank - len(batch) - len(single)
    offsets = sorted(chance.sample(range(len(order) + kept), kept))
    places = _places(chance, x, dims, max(x.shape.dims))
    lists = [0 if vector_dim > 0 else 1] if batch else []
    return xb.ops.gather(
        x, places, offset_dims=offsets, collapsed_slice_dims=single, start_index_map=named, operand_batching_dims=batch,
        start_indices_batching_dims=lists, index_vector_dim=vector_dim, slice_sizes=sizes,
    )  # fmt: skip


def put_in(chance: random.Random, values: Values) -> xb.Value | None:
    """A scatter of windows into one array, or into two at the same places."""
    x = one(chance, values, 1)
    if x is None or 0 in x.shape.dims:
        return None
    batch, single, named = _roles(chance, x.shape.rank)
    extents = [x.shape.dims[n] for n in batch] + [chance.choice((1, 2, 3)) for _ in range(chance.randrange(3))]
    vector_dim = chance.randrange(len(extents) + 1)
    places = _places(chance, x, [*extents[:vector_dim], len(named), *extents[vector_dim:]], max(x.shape.dims))
    windows = [chance.randrange(1, extent + 1) for n, extent in enumerate(x.shape.dims) if n not in (*single, *batch)]
    window_dims = sorted(chance.sample(range(len(extents) + len(windows)), len(windows)))
    left, parts = iter(extents), iter(windows)
    dims = [next(parts) if n in window_dims else next(left) for n in range(len(extents) + len(windows))]
    count = chance.choice((1, 1, 2))
    arrays = [x, *[each for each in values if each.shape.dims == x.shape.dims]][:count]
    ops = [xb.ops.add if all(map(adds, arrays)) else xb.ops.maximum, xb.ops.maximum]

    def combined(*given: Any) -> Any:
        half = len(given) // 2
        made = tuple(by(a, b) for a, b in zip(given[:half], given[half:], strict=True))
        return made if half > 1 else made[0]

    by = chance.choice(ops)
    found = xb.ops.scatter(
        tuple(arrays), places, tuple(constant(chance, each, dims) for each in arrays),
        to_apply=by if len(arrays) == 1 else combined, update_window_dims=window_dims, inserted_window_dims=single,
        scatter_dims_to_operand_dims=named, input_batching_dims=batch,
        scatter_indices_batching_dims=[0 if vector_dim > 0 else 1] if batch else [], index_vector_dim=vector_dim,
    )  # fmt: skip
    return found if len(arrays) == 1 else xb.ops.get_tuple_element(found, index=chance.randrange(2))


def started(chance: random.Random, values: Values) -> xb.Value | None:
    """A slice, or its update, that starts where a number of the program says."""
    x, source = one(chance, values, 1), one(chance, values, 0, "signed")
    if x is None or source is None or source.shape.dtype.bits < 8:
        return None
    zero = xb.constant(x.builder, source.shape.dtype.dtype.type(0))
    start = xb.ops.reduce((source,), (zero,), to_apply=xb.ops.maximum, dimensions=range(source.shape.rank))
    starts = [start if chance.random() < 0.7 else zero for _ in x.shape.dims]
    sizes = [chance.choice((extent, chance.randrange(extent + 1))) for extent in x.shape.dims]
    part = xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)
    if chance.random() < 0.5:
        return part
    return xb.ops.dynamic_update_slice(x, xb.ops.negate(part), [*reversed(starts)])


DRAWS: tuple[Draw, ...] = (looked_up, looked_up, put_in, put_in, started)
