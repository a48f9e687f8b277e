"""A search by a reader of the documents alone: random partitioned programs against the same program on one device.

`python -m tests.sharding.blind --seed N --programs M` draws programs of long chains of moves, of reductions from odd
initial values, of products, windows, control flow and effects, gives their values random shardings, and compares
`part.run` with the run on one device: results and the payload, number and order of effects. Nothing here is taken from
the partitioner or from another generator: what has to hold is what `docs/sharding.md` says.

Values that only move, integers, and floats that hold small integers have to be equal. After an inexact sum two floats
of type T agree where they are at most `ROUNDINGS` eps(T) of the largest magnitude in the run apart.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb

TYPES = {
    "f32": (xb.f32, np.dtype(np.float32)),
    "f64": (xb.f64, np.dtype(np.float64)),
    "bf16": (xb.bf16, np.dtype(ml_dtypes.bfloat16)),
    "s32": (xb.s32, np.dtype(np.int32)),
    "s8": (xb.s8, np.dtype(np.int8)),
    "u8": (xb.u8, np.dtype(np.uint8)),
    "pred": (xb.pred, np.dtype(np.bool_)),
    "c64": (xb.c64, np.dtype(np.complex64)),
}
FLOATS = ("f32", "f64", "bf16", "c64")
NUMBERS = ("f32", "f64", "bf16", "s32", "s8", "u8")
EPS = {"f32": 2.0**-23, "c64": 2.0**-23, "f64": 2.0**-52, "bf16": 2.0**-7}
ROUNDINGS = 64
# Up to this magnitude sums and products of integers are exact in the type, in any order, with some room.
EXACT_BELOW = {"f32": 2.0**20, "c64": 2.0**18, "f64": 2.0**48, "bf16": 2.0**6}
MESHES: tuple[dict[str, int], ...] = (
    {"x": 2}, {"x": 2}, {"x": 3}, {"x": 3}, {"x": 4}, {"x": 4}, {"x": 5}, {"x": 6}, {"x": 7}, {"x": 8},
    {"x": 2, "y": 2}, {"x": 2, "y": 2}, {"x": 2, "y": 3}, {"x": 3, "y": 2}, {"x": 4, "y": 2}, {"x": 2, "y": 4},
    {"x": 2, "y": 2, "z": 2},
)  # fmt: skip
MOST_ELEMENTS = 160
TINY = {"f32": 1e-42, "c64": 1e-42, "f64": 5e-310, "bf16": 1e-40}  # denormal in their types
TARGET = "tests.sharding.blind"
CALLS: list[tuple[str, Any]] = []


@xb.custom_call_target(TARGET)
def kept(operand: Any, *, backend_config: str) -> Any:
    """Keep the operand of a custom call with a side effect, and give it back."""
    CALLS.append((backend_config, np.array(operand)))
    return operand


@xb.custom_call_target(TARGET + ".reversed")
def reversed_rows(operand: Any) -> Any:
    """The operand without effect, reversed along every dimension."""
    return np.flip(operand)


@dataclass(frozen=True)
class Drawn:
    """A value of the program with its element type, and whether its numbers are free of rounding."""

    value: Any
    kind: str
    exact: bool

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(self.value.shape.dims)


@dataclass
class Draw:
    """The state of drawing one program: its chance, the style of its numbers, and the effects so far."""

    rng: random.Random
    style: str
    tags: Iterator[int] = field(default_factory=itertools.count)
    placed: dict[str, int] = field(default_factory=dict)
    outfeeds: dict[int, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    infeeds: int = 0
    moves_alone: bool = True
    devices: int = 1
    home: int = 0
    denormals: bool = False
    is_mixed: bool = False
    ops: Counter[str] = field(default_factory=Counter)


class Unfit(Exception):
    """An op does not fit the values at hand; another one is drawn."""


def number(draw: Draw, kind: str) -> Any:
    """A scalar of the type: small integers, fractions in the style of reals, and in that of moves anything."""
    rng = draw.rng
    dtype = TYPES[kind][1]
    found: Any
    if kind == "pred":
        found = rng.random() < 0.5
    elif kind in ("s32", "s8", "u8"):
        found = rng.randint(0 if kind == "u8" else -4, 7)
        if rng.random() < 0.15:
            info = np.iinfo(dtype)
            found = rng.choice([int(info.min), int(info.max), int(info.max) - 1])
    elif draw.style == "moves" and rng.random() < 0.25:
        odd = [-0.0, math.nan, math.inf, -math.inf]
        found = rng.choice([*odd, float(TINY[kind])] if draw.denormals else odd)
    elif draw.style == "odd" and rng.random() < 0.06:
        found = rng.choice([math.nan, math.inf, -math.inf])
    elif draw.style == "reals":
        found = complex(rng.uniform(-1, 1), rng.uniform(-1, 1)) if kind == "c64" else rng.uniform(-1, 1)
    else:
        found = rng.choice([-3, -2, -1, 0, 1, 1, 2, 3, 7])
        found = complex(found, rng.randint(-2, 2)) if kind == "c64" else found
    return np.array(found, dtype)


def array(draw: Draw, kind: str, dims: Sequence[int]) -> Any:
    """An array of such numbers."""
    found = np.empty(tuple(dims), TYPES[kind][1])
    for place in np.ndindex(*dims):
        found[place] = number(draw, kind)
    return found


def extents(draw: Draw, low: int = 0, high: int = 3) -> tuple[int, ...]:
    """Small extents, of which most do not divide."""
    while True:
        dims = tuple(draw.rng.choice([1, 2, 3, 4, 4, 5, 6, 7, 8, 9]) for _ in range(draw.rng.randint(low, high)))
        if math.prod(dims) <= MOST_ELEMENTS // 2:
            return dims


def keep(draw: Draw, value: Any, like: Drawn, *, exact: bool | None = None, moved: bool = False) -> Drawn:
    """A new value of the type of another one."""
    if value.shape.size > MOST_ELEMENTS:
        raise Unfit
    draw.moves_alone &= moved
    return Drawn(value, like.kind, like.exact if exact is None else exact)


def constant(like: Drawn, literal: Any) -> Any:
    """A constant in the computation of a value."""
    return xb.constant(like.value.builder, literal=literal)


def filler(draw: Draw, like: Drawn, values: Sequence[Drawn]) -> Any:
    """A scalar that is seldom neutral: a constant, or one that is computed."""
    scalars = [
        each.value for each in values if each.kind == like.kind and each.dims == () and (each.exact or not like.exact)
    ]
    if scalars and draw.rng.random() < 0.3:
        return draw.rng.choice(scalars)
    return constant(like, number(draw, like.kind))


def index(draw: Draw, like: Drawn, values: Sequence[Drawn]) -> Any:
    """A start index: a constant or a computed number, sometimes outside."""
    scalars = [each.value for each in values if each.kind == "s32" and each.dims == ()]
    if scalars and draw.rng.random() < 0.6:
        return draw.rng.choice(scalars)
    return constant(like, np.int32(draw.rng.randint(-2, 9)))


def some(
    draw: Draw, values: Sequence[Drawn], kinds: Sequence[str] = (), rank: int = 0, *, exact: bool = False
) -> Drawn:
    """A value, of the later ones more often."""
    found = [
        each for each in values
        if (not kinds or each.kind in kinds) and len(each.dims) >= rank and (each.exact or not exact)
    ]  # fmt: skip
    if not found:
        raise Unfit
    return found[-1 - int(len(found) * draw.rng.random() ** 2.2)]


def fitted(draw: Draw, of: Drawn, kind: str, dims: Sequence[int]) -> Drawn:
    """The value in another shape and type: flattened, cropped or padded by an odd number, and taken apart again."""
    value = of.value
    wanted = math.prod(dims)
    if of.dims != tuple(dims):
        flat = xb.ops.reshape(value, new_sizes=(value.shape.size,))
        lack = wanted - value.shape.size
        if lack:
            low = draw.rng.randint(min(lack, 0), max(lack, 0))
            flat = xb.ops.pad(flat, constant(of, number(draw, of.kind)), padding=[(low, lack - low)])
        value = xb.ops.reshape(flat, new_sizes=tuple(dims))
    if kind == of.kind:
        return Drawn(value, kind, of.exact)
    draw.moves_alone = False
    if of.kind == "c64":
        value = xb.ops.real(value)
    if kind == "pred":
        if not of.exact:
            raise Unfit
        return Drawn(
            xb.ops.compare(
                value,
                xb.ops.broadcast(
                    constant(of, np.array(1, TYPES["f32" if of.kind == "c64" else of.kind][1])),
                    sizes=tuple(dims),
                    dimensions=(),
                ),
                direction="GE",
            ),
            kind,
            True,
        )
    if not of.exact and kind not in FLOATS:
        raise Unfit
    target = xb.f32 if kind == "c64" else TYPES[kind][0]
    value = xb.ops.convert(value, new_element_type=target)
    if kind == "c64":
        value = xb.ops.complex(value, xb.ops.negate(value))
    return Drawn(value, kind, of.exact)


# Moves.


def sliced(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    starts, limits, strides = [], [], []
    for extent in x.dims:
        start = draw.rng.randint(0, max(0, extent - 1)) if draw.rng.random() < 0.6 else 0
        limit = draw.rng.randint(min(start + 1, extent), extent) if draw.rng.random() < 0.6 else extent
        starts.append(start)
        limits.append(limit)
        strides.append(draw.rng.choice([1, 1, 1, 2, 3]))
    return keep(draw, xb.ops.slice(x.value, start_indices=starts, limit_indices=limits, strides=strides), x, moved=True)


def padded(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    padding = []
    value = filler(draw, x, values)
    if draw.is_mixed and x.kind in ("f32", "f64"):
        value = constant(x, np.array(draw.rng.choice([3, -1, 7]), TYPES["f32" if x.kind == "f64" else "bf16"][1]))
    for extent in x.dims:
        low, high, interior = (
            draw.rng.choice(row) for row in ([0, 0, 1, 2, 3, -1, -2], [0, 0, 1, 2, 4, -1, -3], [0, 0, 0, 1, 2])
        )
        if extent + max(0, extent - 1) * interior + low + high < 0:
            low = high = 0
        padding.append((low, high, interior))
    return keep(draw, xb.ops.pad(x.value, value, padding=padding), x, moved=True)


def concatenated(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    dimension = draw.rng.randrange(len(x.dims))
    parts = [x]
    for _ in range(draw.rng.randint(1, 2)):
        alike = [
            each for each in values
            if each.kind == x.kind and len(each.dims) == len(x.dims)
            and all(a == b or d == dimension for d, (a, b) in enumerate(zip(each.dims, x.dims, strict=True)))
        ]  # fmt: skip
        parts.append(draw.rng.choice(alike))
    draw.rng.shuffle(parts)
    found = xb.ops.concatenate([each.value for each in parts], dimension=dimension)
    return keep(draw, found, x, exact=all(each.exact for each in parts), moved=True)


def rolled(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    dimension = draw.rng.randrange(len(x.dims))
    if x.dims[dimension] < 2:
        raise Unfit
    at = draw.rng.randint(1, x.dims[dimension] - 1)
    zeros, whole = [0] * len(x.dims), list(x.dims)
    middle = [at if d == dimension else 0 for d in range(len(x.dims))]
    until = [at if d == dimension else e for d, e in enumerate(x.dims)]
    tail = xb.ops.slice(x.value, start_indices=middle, limit_indices=whole)
    head = xb.ops.slice(x.value, start_indices=zeros, limit_indices=until)
    return keep(draw, xb.ops.concatenate([tail, head], dimension=dimension), x, moved=True)


def turned(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    dims = [d for d in range(len(x.dims)) if draw.rng.random() < 0.6] or [0]
    return keep(draw, xb.ops.reverse(x.value, dimensions=dims), x, moved=True)


def transposed(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=2)
    order = list(range(len(x.dims)))
    draw.rng.shuffle(order)
    return keep(draw, xb.ops.transpose(x.value, permutation=order), x, moved=True)


def reshaped(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    rest, dims = x.value.shape.size, []
    if rest == 0:
        raise Unfit
    for _ in range(draw.rng.randint(0, 3)):
        part = draw.rng.choice([d for d in range(1, rest + 1) if rest % d == 0])
        dims.append(part)
        rest //= part
    dims.insert(draw.rng.randint(0, len(dims)), rest)
    return keep(draw, xb.ops.reshape(x.value, new_sizes=dims), x, moved=True)


def broadcasted(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    if len(x.dims) > 3:
        raise Unfit
    extra = extents(draw, 1, 2)
    order = [True] * len(x.dims) + [False] * len(extra)
    draw.rng.shuffle(order)
    old, new = iter(x.dims), iter(extra)
    sizes = [next(old) if own else next(new) for own in order]
    where = [d for d, own in enumerate(order) if own]
    if math.prod(sizes) > MOST_ELEMENTS:
        raise Unfit
    if draw.rng.random() < 0.3:
        order_of = list(range(len(where)))
        draw.rng.shuffle(order_of)
        sizes_by = {where[to]: x.dims[at] for at, to in enumerate(order_of)}
        sizes = [sizes_by.get(d, size) for d, size in enumerate(sizes)]
        where = [where[to] for to in order_of]
    return keep(draw, xb.ops.broadcast(x.value, sizes=sizes, dimensions=where), x, moved=True)


def dynamic_sliced(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    sizes = [draw.rng.randint(min(1, e), e) for e in x.dims]
    starts = [index(draw, x, values) for _ in x.dims]
    return keep(draw, xb.ops.dynamic_slice(x.value, starts, dynamic_slice_sizes=sizes), x, moved=True)


def dynamic_updated(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    other = some(draw, values, (x.kind,))
    update = fitted(draw, other, x.kind, [draw.rng.randint(min(1, e), e) for e in x.dims])
    starts = [index(draw, x, values) for _ in x.dims]
    found = xb.ops.dynamic_update_slice(x.value, update.value, starts)
    return keep(draw, found, x, exact=x.exact and update.exact, moved=True)


def indices(draw: Draw, like: Drawn, values: Sequence[Drawn], dims: Sequence[int]) -> Any:
    """Indices of a gather or scatter: constants, or numbers of the program."""
    wholes = [each for each in values if each.kind == "s32"]
    if wholes and draw.rng.random() < 0.6:
        return fitted(draw, draw.rng.choice(wholes), "s32", dims).value
    return constant(
        like, np.array([draw.rng.randint(-2, 9) for _ in range(math.prod(dims))], np.int32).reshape(tuple(dims))
    )


def gathered(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    if 0 in x.dims:
        raise Unfit
    rank = len(x.dims)
    mapped = draw.rng.sample(range(rank), draw.rng.randint(1, rank))
    batch = extents(draw, 0, 2)
    sizes = [1 if d in mapped and draw.rng.random() < 0.5 else draw.rng.randint(1, e) for d, e in enumerate(x.dims)]
    collapsed = [d for d in range(rank) if sizes[d] == 1 and draw.rng.random() < 0.7]
    left = rank - len(collapsed)
    offset = sorted(draw.rng.sample(range(left + len(batch)), left))
    where = draw.rng.randint(0, len(batch))
    found = xb.ops.gather(
        x.value,
        indices(draw, x, values, [*batch[:where], len(mapped), *batch[where:]]),
        offset_dims=offset,
        collapsed_slice_dims=collapsed,
        start_index_map=mapped,
        index_vector_dim=where,
        slice_sizes=sizes,
    )
    return keep(draw, found, x, moved=True)


def chosen(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    y = fitted(draw, some(draw, values, (x.kind,)), x.kind, x.dims)
    mask = fitted(draw, some(draw, values, exact=True), "pred", x.dims)
    return keep(draw, xb.ops.select(mask.value, x.value, y.value), x, exact=x.exact and y.exact, moved=True)


def barred(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x, y = some(draw, values), some(draw, values)
    pair = xb.ops.opt_barrier(xb.tuple_((x.value, y.value)))
    return keep(draw, xb.get_tuple_element(pair, index=0), x, moved=True)


MOVES = (
    sliced, sliced, padded, padded, concatenated, rolled, turned, transposed, reshaped, broadcasted,
    dynamic_sliced, dynamic_updated, gathered, chosen, barred,
)  # fmt: skip

# Arithmetic.


def folds(draw: Draw, kind: str) -> tuple[str, Callable[..., Any]]:
    """A reducer of the type."""
    table: dict[str, Callable[..., Any]] = {"add": xb.ops.add, "multiply": xb.ops.multiply}
    if kind != "c64":
        table |= {"maximum": xb.ops.maximum, "minimum": xb.ops.minimum}
    if kind in ("pred", "s32", "s8", "u8"):
        table |= {"and": xb.ops.and_, "or": xb.ops.or_, "xor": xb.ops.xor}
    if kind == "pred":
        table = {"and": xb.ops.and_, "or": xb.ops.or_, "xor": xb.ops.xor}
    return draw.rng.choice(list(table.items()))


def exactly(draw: Draw, x: Drawn, name: str) -> bool:
    """Whether a fold of the value stays free of rounding."""
    return x.exact and (draw.style != "reals" or x.kind not in FLOATS or name in ("maximum", "minimum"))


def reduced(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    name, fold = folds(draw, x.kind)
    dims = [d for d in range(len(x.dims)) if draw.rng.random() < 0.5] or [draw.rng.randrange(len(x.dims))]
    found = xb.ops.reduce(x.value, filler(draw, x, values), to_apply=fold, dimensions=dims)
    return keep(draw, found, x, exact=exactly(draw, x, name))


def reduced_strangely(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, rank=1, exact=True)
    bound = np.array(5, TYPES[x.kind][1])
    reducers: list[Callable[..., Any]] = [
        lambda a, b: xb.minimum(xb.maximum(a, b), xb.constant(a.builder, literal=bound)),
        lambda a, b: xb.maximum(b, xb.minimum(a, b)),
        lambda a, b: xb.select(xb.compare(a, b, "GE"), a, b),
        lambda a, b: xb.add(b, a),
    ]
    dims = [d for d in range(len(x.dims)) if draw.rng.random() < 0.5] or [draw.rng.randrange(len(x.dims))]
    found = xb.ops.reduce(x.value, filler(draw, x, values), to_apply=draw.rng.choice(reducers), dimensions=dims)
    return keep(draw, found, x, exact=exactly(draw, x, "add"))


def greater(a: Any, i: Any, b: Any, j: Any) -> Any:
    """The greater of two numbers with its place, and of equal ones the first place."""
    first = xb.or_(xb.compare(a, b, "GT"), xb.and_(xb.compare(a, b, "EQ"), xb.compare(i, j, "LE")))
    return xb.tuple_((xb.select(first, a, b), xb.select(first, i, j)))


def arg_reduced(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, rank=1, exact=True)
    places = xb.iota(x.value.builder, xb.s32[x.dims], draw.rng.randrange(len(x.dims)))

    dims = [d for d in range(len(x.dims)) if draw.rng.random() < 0.5] or [draw.rng.randrange(len(x.dims))]
    init = (filler(draw, x, values), constant(x, np.int32(draw.rng.randint(-1, 5))))
    found = xb.ops.reduce((x.value, places), init, to_apply=greater, dimensions=dims)
    part = draw.rng.randrange(2)
    draw.moves_alone = False
    return Drawn(xb.get_tuple_element(found, index=part), ("s32" if part else x.kind), True)


def window(draw: Draw, dims: Sequence[int], *, dilated: bool = True) -> list[dict[str, int]]:
    """A window over extents, with strides, padding (negative, too) and dilations."""
    found = []
    for extent in dims:
        one = {"size": draw.rng.randint(1, max(1, min(4, extent)))}
        one["stride"] = draw.rng.choice([1, 1, 2, 3])
        one["padding_low"] = draw.rng.choice([0, 0, 1, 2, -1])
        one["padding_high"] = draw.rng.choice([0, 0, 1, 3, -1])
        if dilated:
            one["window_dilation"] = draw.rng.choice([1, 1, 1, 2])
            one["base_dilation"] = draw.rng.choice([1, 1, 1, 2])
        found.append(one)
    return found


def windowed(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    if 0 in x.dims:
        raise Unfit
    name, fold = folds(draw, x.kind)
    if draw.rng.random() < 0.2:
        rows = [{"size": 1} for _ in x.dims]
        at = draw.rng.randrange(len(x.dims))
        rows[at] = {"size": x.dims[at], "padding_low": x.dims[at] - 1}
    else:
        rows = window(draw, x.dims)
    found = xb.ops.reduce_window(x.value, filler(draw, x, values), to_apply=fold, window=rows)
    return keep(draw, found, x, exact=exactly(draw, x, name))


def selected_and_scattered(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, rank=1, exact=True)
    if 0 in x.dims:
        raise Unfit
    rows = window(draw, x.dims, dilated=False)
    places = [
        (e + w["padding_low"] + w["padding_high"] - w["size"]) // w["stride"] + 1
        for e, w in zip(x.dims, rows, strict=True)
    ]
    if min(places) < 1:
        raise Unfit
    source = fitted(draw, some(draw, values, (x.kind,), exact=True), x.kind, places)
    name, fold = folds(draw, x.kind)
    direction = draw.rng.choice(["GE", "GE", "LE", "GT"])
    found = xb.ops.select_and_scatter(
        x.value,
        source.value,
        filler(draw, x, values),
        select=lambda a, b: xb.ops.compare(a, b, direction=direction),
        scatter=fold,
        window=rows,
    )
    return keep(draw, found, x, exact=exactly(draw, x, name))


def product(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, (*NUMBERS, "c64"), rank=1)
    rank = len(x.dims)
    roles = [draw.rng.choice("bcf") for _ in range(rank)]
    batch = [d for d in range(rank) if roles[d] == "b"]
    contracted = [d for d in range(rank) if roles[d] == "c"]
    free = extents(draw, 0, 2)
    parts = [("b", d) for d in batch] + [("c", d) for d in contracted] + [("f", n) for n in range(len(free))]
    draw.rng.shuffle(parts)
    dims = [free[n] if role == "f" else x.dims[n] for role, n in parts]
    if math.prod(dims) > MOST_ELEMENTS:
        raise Unfit
    y = fitted(draw, some(draw, values, (x.kind,)), x.kind, dims)
    found = xb.ops.dot(
        x.value,
        y.value,
        lhs_batch_dims=batch,
        rhs_batch_dims=[parts.index(("b", d)) for d in batch],
        lhs_contracting_dims=contracted,
        rhs_contracting_dims=[parts.index(("c", d)) for d in contracted],
    )
    return keep(draw, found, x, exact=exactly(draw, x, "add") and exactly(draw, y, "add"))


def convolved(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    kinds = ("f32", "f64", "bf16", "s32", "s8", "c64")
    x = some(draw, values, kinds)
    rank = draw.rng.choice([1, 1, 2])
    groups, batches = draw.rng.choice([1, 1, 1, 2]), 1
    if groups == 1 and draw.rng.random() < 0.2:
        batches = 2
    batch, features, out = (
        draw.rng.choice([1, 2, 3]) * batches,
        draw.rng.choice([1, 2, 3]) * groups,
        draw.rng.choice([1, 2]) * groups * batches,
    )
    space = [draw.rng.randint(2, 8 if rank == 1 else 5) for _ in range(rank)]
    rows = window(draw, space)
    for row in rows:
        row["window_reversal"] = int(draw.rng.random() < 0.2)
    lhs = fitted(draw, x, x.kind, [batch, *space, features])
    k = fitted(draw, some(draw, values, (x.kind,)), x.kind, [*(row["size"] for row in rows), features // groups, out])
    letters = "01"[:rank]
    result = draw.rng.choice([f"b{letters}f", f"bf{letters}", f"{letters}fb"])
    found = xb.ops.convolution(
        lhs.value,
        k.value,
        window=rows,
        dimension_numbers=f"b{letters}f_{letters}io->{result}",
        feature_group_count=groups,
        batch_group_count=batches,
    )
    return keep(draw, found, x, exact=exactly(draw, x, "add") and exactly(draw, k, "add"))


def scattered(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    if 0 in x.dims:
        raise Unfit
    name, fold = folds(draw, x.kind)
    rank = len(x.dims)
    mapped = draw.rng.sample(range(rank), draw.rng.randint(1, rank))
    inserted = [d for d in range(rank) if draw.rng.random() < 0.5]
    batch = extents(draw, 0, 2)
    sizes = [draw.rng.randint(1, e) for d, e in enumerate(x.dims) if d not in inserted]
    places = sorted(draw.rng.sample(range(len(sizes) + len(batch)), len(sizes)))
    of_window, of_batch = iter(sizes), iter(batch)
    dims = [next(of_window) if d in places else next(of_batch) for d in range(len(sizes) + len(batch))]
    if math.prod(dims) > MOST_ELEMENTS:
        raise Unfit
    update = fitted(draw, some(draw, values, (x.kind,)), x.kind, dims)
    found = xb.ops.scatter(
        x.value,
        indices(draw, x, values, [*batch, len(mapped)]),
        update.value,
        to_apply=fold,
        update_window_dims=places,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=mapped,
        index_vector_dim=len(batch),
    )
    return keep(draw, found, x, exact=exactly(draw, x, name) and exactly(draw, update, name))


def elementwise(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    y = fitted(draw, some(draw, values, (x.kind,)), x.kind, x.dims)
    table: list[Callable[..., Any]] = [xb.ops.add, xb.ops.subtract, xb.ops.multiply, xb.ops.maximum, xb.ops.minimum]
    if x.kind == "pred":
        table = [xb.ops.and_, xb.ops.or_, xb.ops.xor]
    elif x.kind == "c64":
        table = table[:3]
    elif x.kind in ("s32", "s8", "u8"):
        table += [
            xb.ops.and_,
            xb.ops.xor,
            xb.ops.divide,
            xb.ops.remainder,
            xb.ops.shift_left,
            xb.ops.shift_right_logical,
        ]
    exact = exactly(draw, x, "add") and exactly(draw, y, "add")
    return keep(draw, draw.rng.choice(table)(x.value, y.value), x, exact=exact)


def unary(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    table: list[Callable[..., Any]] = [xb.ops.negate, xb.ops.abs, xb.ops.sign]
    exact = x.exact
    if x.kind == "pred":
        table = [xb.ops.not_]
    elif x.kind == "u8":
        table = [xb.ops.not_, xb.ops.popcnt, xb.ops.count_leading_zeros]
    elif x.kind == "c64":
        table = [xb.ops.negate]
    elif x.kind in FLOATS and draw.style == "reals":
        table, exact = [xb.ops.tanh, xb.ops.sine, xb.ops.logistic, xb.ops.negate], False
    elif x.kind in FLOATS and not exact:
        table = table[:2]
    return keep(draw, draw.rng.choice(table)(x.value), x, exact=exact)


def compared(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, exact=True)
    y = fitted(draw, some(draw, values, (x.kind,), exact=True), x.kind, x.dims)
    found = xb.ops.compare(x.value, y.value, direction=draw.rng.choice(["EQ", "NE", "LT", "LE", "GT", "GE"]))
    draw.moves_alone = False
    return Drawn(found, "pred", True)


def converted(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    return fitted(draw, x, draw.rng.choice(list(TYPES)), x.dims)


def numbered(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, rank=1)
    draw.moves_alone = False
    dims = extents(draw, 1, 3)
    kind = draw.rng.choice(["s32", "s32", "u8", "f32"])
    found = xb.iota(x.value.builder, TYPES[kind][0][dims], draw.rng.randrange(len(dims)))
    return Drawn(found, kind, True)


def sorted_rows(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, rank=1, exact=True)
    y = fitted(draw, some(draw, values, exact=True), draw.rng.choice(NUMBERS), x.dims)
    found = xb.sort((x.value, y.value), None, draw.rng.randrange(len(x.dims)), True)
    part = draw.rng.randrange(2)
    draw.moves_alone = False
    return Drawn(xb.get_tuple_element(found, index=part), (y.kind if part else x.kind), True)


def scanned(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS, rank=1)
    if 0 in x.dims:
        raise Unfit
    dimension = draw.rng.randrange(len(x.dims))
    carry = xb.ops.broadcast(
        filler(draw, x, values), sizes=[e for d, e in enumerate(x.dims) if d != dimension], dimensions=()
    )
    found = xb.scan(
        x.value,
        carry,
        lambda one, sum_: (one + sum_, xb.maximum(one, sum_)),
        dimension,
        is_reverse=draw.rng.random() < 0.3,
    )
    return keep(draw, xb.get_tuple_element(found, index=0), x, exact=exactly(draw, x, "add"))


def mapped(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, NUMBERS)
    found = xb.map(
        x.value, lambda e: xb.add(xb.add(e, e), xb.constant(e.builder, literal=np.array(3, TYPES[x.kind][1])))
    )
    return keep(draw, found, x, exact=exactly(draw, x, "add"))


def foreign(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    found = xb.custom_call(x.value, TARGET + ".reversed", TYPES[x.kind][0][x.dims])
    return keep(draw, found, x, moved=True)


def bits(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    """The bits of numbers as others, of the same width or as a row of smaller ones, and back."""
    x = some(draw, values, ("f32", "s32", "u8", "s8"), exact=True)
    draw.moves_alone = False
    if x.kind in ("u8", "s8"):
        to = "s8" if x.kind == "u8" else "u8"
        return Drawn(xb.bitcast_convert(x.value, TYPES[to][0]), to, True)
    if draw.rng.random() < 0.6 and len(x.dims) < 4 and x.value.shape.size * 4 <= MOST_ELEMENTS:
        found = xb.bitcast_convert(x.value, xb.u8)
        return Drawn(found, "u8", True)
    number_ = xb.bitcast_convert(x.value, xb.s32) if x.kind == "f32" else x.value
    return Drawn(number_, "s32", True)


def greatest(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values, ("f32", "s32", "f64"), rank=1, exact=True)
    found = xb.top_k(x.value, draw.rng.randint(1, max(1, min(4, x.dims[-1]))), draw.rng.random() < 0.7)
    part = draw.rng.randrange(2)
    draw.moves_alone = False
    return Drawn(xb.get_tuple_element(found, index=part), ("s32" if part else x.kind), True)


def accumulated(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    """A cumulative fold from either end, from an odd initial value, sometimes too long or too short by one."""
    x = some(draw, values, rank=1)
    if 0 in x.dims:
        raise Unfit
    name, fold = folds(draw, x.kind)
    rows = [{"size": 1} for _ in x.dims]
    at = draw.rng.randrange(len(x.dims))
    extent = x.dims[at]
    size = max(1, extent + draw.rng.choice([0, 0, 0, 1, -1]))
    side = draw.rng.choice(["padding_low", "padding_high"])
    rows[at] = {"size": size, side: size - 1 + draw.rng.choice([0, 0, 1])}
    found = xb.ops.reduce_window(x.value, filler(draw, x, values), to_apply=fold, window=rows)
    return keep(draw, found, x, exact=exactly(draw, x, name))


def twice_windowed(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    """A window over two arrays at once: the greatest element and its place."""
    x = some(draw, values, NUMBERS, rank=1, exact=True)
    if 0 in x.dims:
        raise Unfit
    places = xb.iota(x.value.builder, xb.s32[x.dims], draw.rng.randrange(len(x.dims)))

    init = (filler(draw, x, values), constant(x, np.int32(draw.rng.randint(-1, 5))))
    found = xb.ops.reduce_window((x.value, places), init, to_apply=greater, window=window(draw, x.dims))
    part = draw.rng.randrange(2)
    draw.moves_alone = False
    return Drawn(xb.get_tuple_element(found, index=part), ("s32" if part else x.kind), True)


def fused(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    x = some(draw, values)
    y = fitted(draw, some(draw, values, (x.kind,)), x.kind, x.dims)

    def inside(a: Any, b: Any) -> Any:
        own = [Drawn(a, x.kind, x.exact), Drawn(b, y.kind, y.exact)]
        for _ in range(draw.rng.randint(1, 3)):
            try:
                own.append(draw.rng.choice([sliced, padded, rolled, turned, concatenated, reshaped])(draw, own))
            except (Unfit, xb.XbuildError):
                continue
        return own[-1].value

    found = xb.fusion((x.value, y.value), inside)
    return keep(draw, found, x, exact=x.exact and y.exact, moved=True)


ARITHMETIC = (
    reduced, reduced, reduced, reduced_strangely, arg_reduced, windowed, windowed, selected_and_scattered,
    product, product, convolved, scattered, elementwise, elementwise, elementwise, unary, compared, converted, numbered,
    sorted_rows, scanned, mapped, foreign,
    bits,
    greatest,
    accumulated,
    twice_windowed,
    fused,
)  # fmt: skip

# Effects and control flow.


def effect(draw: Draw, values: Sequence[Drawn]) -> Drawn:
    rng = draw.rng
    x = some(draw, values)
    tag = next(draw.tags)
    form = rng.random()
    if form < 0.4:
        name = f"feed{tag}"
        item = xb.tuple_((constant(x, np.int32(tag)), x.value))
        token = xb.outfeed(item, name=name)
        draw.placed[name] = rng.randrange(draw.devices)
        draw.outfeeds[tag] = name
        return Drawn(xb.add_dependency(x.value, token) if rng.random() < 0.3 else x.value, x.kind, x.exact)
    if form < 0.55:
        name = f"item{tag}"
        found = xb.infeed(x.value.builder, xb.s32[5], name=name)
        draw.placed[name] = draw.home
        draw.infeeds += 1
        draw.moves_alone = False
        return Drawn(xb.get_tuple_element(found, index=0), "s32", True)
    name = f"kept{tag}"
    found = xb.custom_call(
        x.value, TARGET, TYPES[x.kind][0][x.dims], has_side_effect=True, backend_config=str(tag), name=name
    )
    if rng.random() < 0.4:
        draw.placed[name] = rng.randrange(draw.devices)
    draw.calls[str(tag)] = name
    return Drawn(found, x.kind, x.exact)


def operands(draw: Draw, values: Sequence[Drawn]) -> list[Drawn]:
    return [some(draw, values) for _ in range(draw.rng.randint(1, 3))]


def called(draw: Draw, values: Sequence[Drawn], depth: int) -> Drawn:
    taken = operands(draw, values)
    result: list[Drawn] = []

    def inside(*arguments: Any) -> Any:
        own = [Drawn(a, t.kind, t.exact) for a, t in zip(arguments, taken, strict=True)]
        grown(draw, own, draw.rng.randint(1, 4), depth - 1)
        result.append(own[-1])
        return own[-1].value

    found = xb.call([each.value for each in taken], inside)
    return Drawn(found, result[-1].kind, result[-1].exact)


def decider(draw: Draw, like: Drawn, values: Sequence[Drawn]) -> Any:
    """A number of the program that decides."""
    wholes = [each for each in values if each.kind in ("s32", "s8", "u8", "pred") and each.exact]
    if not wholes or draw.rng.random() < 0.15:
        return constant(like, np.int32(draw.rng.randint(-1, 3)))
    of = fitted(draw, draw.rng.choice(wholes), "s32", [])
    return of.value


def looped(draw: Draw, values: Sequence[Drawn], depth: int) -> Drawn:
    taken = operands(draw, values)
    like = taken[0]
    stop = xb.minimum(decider(draw, like, values), constant(like, np.int32(draw.rng.randint(1, 3))))
    loud = draw.rng.random() < 0.1
    exact = [each.exact for each in taken]
    state = (constant(like, np.int32(0)), stop, *(each.value for each in taken))

    def body(loop: Any) -> Any:
        parts = [xb.get_tuple_element(loop, index=n) for n in range(2 + len(taken))]
        own = [Drawn(p, t.kind, e) for p, t, e in zip(parts[2:], taken, exact, strict=True)]
        first = list(own)
        grown(draw, own, draw.rng.randint(1, 4), depth - 1)
        after = []
        for t in first:
            alike = [e for e in own if e.kind == t.kind and (e.exact or not t.exact)]
            after.append(fitted(draw, some(draw, alike), t.kind, t.dims))
        return (parts[0] + 1, parts[1], *(each.value for each in after))

    def condition(loop: Any) -> Any:
        count, until = (xb.get_tuple_element(loop, index=n) for n in range(2))
        if loud:
            tag = str(next(draw.tags))
            draw.calls[tag] = "kept" + tag
            count = xb.custom_call(
                count, TARGET, xb.s32[()], has_side_effect=True, backend_config=tag, name="kept" + tag
            )
        return xb.ops.compare(count, until, direction="LT")

    found = xb.while_(state, condition, body)
    at = draw.rng.randrange(len(taken))
    return Drawn(xb.get_tuple_element(found, index=2 + at), taken[at].kind, taken[at].exact)


def branched(draw: Draw, values: Sequence[Drawn], depth: int) -> Drawn:
    taken = [operands(draw, values) for _ in range(draw.rng.randint(2, 3))]
    like = taken[0][0]
    kind, dims = like.kind, like.dims
    results: list[Drawn] = []

    def branch(own_operands: Sequence[Drawn]) -> Callable[[Any], Any]:
        def inside(given: Any) -> Any:
            parts = [xb.get_tuple_element(given, index=n) for n in range(len(own_operands))]
            own = [Drawn(p, t.kind, t.exact) for p, t in zip(parts, own_operands, strict=True)]
            grown(draw, own, draw.rng.randint(0, 3), depth - 1)
            for each in (own[-1], *own):
                try:
                    found = fitted(draw, each, kind, dims)
                except Unfit:
                    continue
                results.append(found)
                return found.value
            raise Unfit

        return inside

    chooser = decider(draw, like, values)
    found = xb.conditional(
        chooser,
        branch_operands=[xb.tuple_([each.value for each in row]) for row in taken],
        branch_computations=[branch(row) for row in taken],
    )
    return Drawn(found, kind, all(each.exact for each in results))


def grown(draw: Draw, values: list[Drawn], count: int, depth: int) -> None:
    """Append values of `count` random ops; what does not fit is drawn again."""
    done = tries = 0
    while done < count and tries < 12 * count + 12:
        tries += 1
        chance = draw.rng.random()
        try:
            if chance < (0.16 if depth > 1 else 0.1) and depth > 0:
                form = draw.rng.choice([called, looped, branched])
                found = form(draw, values, depth)
                draw.ops[form.__name__] += 1
            elif chance < 0.22:
                found = effect(draw, values)
                draw.ops["effect"] += 1
            else:
                moves = draw.style == "moves" or chance < 0.58
                drawn = draw.rng.choice(MOVES if moves else ARITHMETIC)
                found = drawn(draw, values)
                draw.ops[drawn.__name__] += 1
        except (Unfit, xb.XbuildError):
            continue
        values.append(found)
        done += 1


PARTS = {4: ["(1)2", "(2)2"], 8: ["(1)2", "(2)2", "(4)2", "(1)4", "(2)4"], 6: ["(1)2", "(2)3", "(1)3", "(3)2"]}


def spec(draw: Draw, mesh: xb.Mesh, rank: int, *, is_inner: bool = False) -> Any:
    """A random sharding of an array: each axis, or a part of it, cuts one dimension, or none."""
    rng = draw.rng
    entries: list[list[str]] = [[] for _ in range(rank)]
    axes = list(mesh.axes)
    rng.shuffle(axes)
    lacking = []
    for axis in axes:
        if rank and rng.random() < 0.75:
            entries[rng.randrange(rank)].append(axis)
        else:
            lacking.append(axis)
    sizes = dict(mesh.sizes)
    if rank and rng.random() < 0.15 and mesh == xb.Mesh(sizes):
        rows = []
        for row in entries:
            named = [
                f"'{axis}'"
                + (":" + rng.choice(PARTS[sizes[axis]]) if sizes[axis] in PARTS and rng.random() < 0.6 else "")
                for axis in row
            ]
            rows.append("{" + ", ".join([*named, *(["?"] if rng.random() < 0.3 else [])]) + "}")
        text = ",".join(f"'{axis}'={size}" for axis, size in sizes.items())
        return xb.shard.shardings(f"{{mesh[{text}], [{', '.join(rows)}]}}")
    parts = frozenset(lacking[:1]) if is_inner and lacking and rng.random() < 0.1 else frozenset()
    if parts:
        draw.moves_alone = False
        draw.ops["parts of sums"] += 1
    return xb.P(*(tuple(row) if len(row) > 1 else row[0] if row else None for row in entries), unreduced=parts)


@dataclass
class Program:
    """A program with its arguments and effects."""

    draw: Draw
    module: xb.Module
    cut: xb.Module
    arguments: list[Any]
    is_propagated: bool
    items: list[Any]


def program(seed: int, *, denormals: bool = False, mixed: bool = False) -> Program:
    """The program of a seed, with shardings."""
    rng = random.Random(seed)
    draw = Draw(rng, rng.choice(["moves", "moves", "wholes", "wholes", "wholes", "reals", "odd"]))
    draw.denormals, draw.is_mixed = denormals, mixed and rng.random() < 0.5
    axes = rng.choice(MESHES)
    draw.devices = math.prod(axes.values())
    draw.home = rng.randrange(draw.devices)
    ids = list(range(draw.devices))
    if rng.random() < 0.15:
        rng.shuffle(ids)
    mesh = xb.Mesh(axes, device_ids=ids)
    builder = xb.Builder("blind")
    values, arguments = [], []
    kind = rng.choice(list(TYPES))
    for n in range(rng.randint(1, 3)):
        own = kind if rng.random() < 0.6 else rng.choice([*TYPES, "s32"])
        dims = extents(draw, 0 if n else 1, 3)
        arguments.append(array(draw, own, dims))
        shape = TYPES[own][0][dims]
        values.append(Drawn(xb.parameter(builder, number=n, shape=shape, name=f"arg{n}"), own, True))
    count = len(values)
    grown(draw, values, rng.randint(2, 12), rng.choice([0, 0, 1, 2, 3]))
    if count == len(values):
        grown(draw, values, 3, 0)
    wanted = [values[-1], *rng.sample(values, min(len(values), rng.randint(0, 2)))]
    root = xb.tuple_([each.value for each in wanted]) if len(wanted) > 1 else wanted[0].value
    module = xb.Module("blind", builder.build(root))
    names = {
        each.name: each
        for computation in module.computations
        for each in computation.instructions
        if isinstance(each.shape, xb.Shape) and each.shape.rank and each.opcode not in ("constant", "parameter")
    }
    shardings: dict[Any, Any] = {}
    for n, value in enumerate(values[:count]):
        if n == 0 or rng.random() < 0.7:
            shardings[n] = spec(draw, mesh, len(value.dims))
            if rng.random() < 0.03:
                shardings[n] = xb.shard.shardings(f"{{maximal device={rng.randrange(draw.devices)}}}")
    inner = [n for n in names if n not in draw.placed]
    for name in rng.sample(inner, min(len(inner), rng.choice([0, 0, 1, 2, 3]))):
        is_summed = names[name].shape.dtype != xb.pred
        shardings[name] = spec(draw, mesh, names[name].shape.rank, is_inner=is_summed)
    present = {each.name for computation in module.computations for each in computation.instructions}
    for name, device in draw.placed.items():
        if name in present:
            shardings[name] = xb.shard.shardings(f"{{maximal device={device}}}")
    cut = xb.shard.annotated(module, shardings, mesh=mesh)
    items = [np.array([rng.randint(-3, 6) for _ in range(5)], np.int32) for _ in range(600 if draw.infeeds else 0)]
    return Program(draw, module, cut, arguments, rng.random() < 0.75, items)


def leaves(value: Any) -> list[Any]:
    """The arrays of a result."""
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, tuple) else [np.asarray(value)]


def close(one: Any, other: Any, tolerance: float | None) -> bool:
    """Whether two arrays agree: bit by bit without a tolerance of 0 or more."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if tolerance is None:
        return bool(one.tobytes() == other.tobytes())
    if one.dtype.kind in "iub":
        return bool(np.array_equal(one, other))
    if one.dtype.kind == "c":
        return close(one.real.copy(), other.real.copy(), tolerance) and close(
            one.imag.copy(), other.imag.copy(), tolerance
        )
    a, b = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance)))


KIND_OF = {dtype: kind for kind, (_, dtype) in TYPES.items()}


@dataclass
class Scale:
    """The largest magnitude of finite floats of each type in a run, by an observer."""

    most: dict[str, float] = field(default_factory=dict)

    def __call__(self, step: int, device: int, instruction: Any, value: Any) -> None:
        for leaf in leaves(value) if not isinstance(value, tuple) else []:
            kind = KIND_OF.get(leaf.dtype, "")
            if kind in FLOATS and leaf.size:
                sizes = np.abs(leaf.astype(np.complex128 if kind == "c64" else np.float64))
                sizes = sizes[np.isfinite(sizes)]
                if sizes.size:
                    self.most[kind] = max(self.most.get(kind, 0.0), float(sizes.max()))


def judged(found: Program, counts: Counter[str]) -> str | None:
    """Where the partitioned run parts from that on one device, in words, or None."""
    draw = found.draw
    scale = Scale()
    CALLS.clear()
    fed: list[Any] = []
    whole = xb.execute(
        found.module,
        [found.arguments],
        infeed={0: found.items} if draw.infeeds else None,
        outfeed=lambda device, item: fed.append(item),
        observer=scale,
    )[0]
    calls = list(CALLS)
    try:
        part = xb.shard.partition(found.cut, propagate=found.is_propagated)
    except xb.XbuildError as error:
        counts[f"refused {error.kind}"] += 1
        return None
    CALLS.clear()
    fed_on: dict[int, list[Any]] = {}
    infeed = {d: found.items if d == draw.home else [] for d in range(draw.devices)}
    parted = part.run(
        *found.arguments,
        infeed=infeed if draw.infeeds else None,
        outfeed=lambda device, item: fed_on.setdefault(device, []).append(item),
        limits=xb.Limits(trips=1000),
    )
    calls_on = list(CALLS)
    is_rounded = any(size >= EXACT_BELOW[kind] for kind, size in scale.most.items())
    is_loose = is_rounded or draw.style == "reals"
    if is_rounded and draw.style != "reals":
        counts["rounded, results not compared"] += 1
    # Conversions between floats carry the error of the coarsest type on.
    eps = max([EPS[kind] for kind in scale.most], default=0.0)
    most = max([1.0, *scale.most.values()])

    def differ(one: Any, other: Any) -> bool:
        tolerance = None if draw.moves_alone else ROUNDINGS * eps * most if is_loose else 0.0
        return not close(np.asarray(one), np.asarray(other), tolerance)

    if not (is_rounded and draw.style != "reals"):
        for n, (one, other) in enumerate(zip(leaves(whole), leaves(parted), strict=True)):
            if differ(one, other):
                return f"result {n} is {other.tolist()} in place of {one.tolist()}"
        counts[
            "compared bit by bit" if draw.moves_alone else "compared within a tolerance" if is_loose else "compared"
        ] += 1
    elif draw.ops["effect"]:
        return None
    counts["effects"] += len(fed) + len(calls)
    for device in range(draw.devices):
        mine = [(int(tag), item) for tag, item in fed if draw.placed[draw.outfeeds[int(tag)]] == device]
        theirs = [(int(tag), item) for tag, item in fed_on.get(device, [])]
        if [tag for tag, _ in mine] != [tag for tag, _ in theirs]:
            return f"device {device} feeds {[tag for tag, _ in theirs]} in place of {[tag for tag, _ in mine]}"
        for (tag, one), (_, other) in zip(mine, theirs, strict=True):
            if differ(one, other):
                was, now = np.asarray(one).tolist(), np.asarray(other).tolist()
                return f"outfeed {tag} of device {device} is {now} in place of {was}"
    for tag, name in draw.calls.items():
        mine = [item for each, item in calls if each == tag]
        theirs = [item for each, item in calls_on if each == tag]
        times = 1 if name in draw.placed else draw.devices
        if len(theirs) != times * len(mine):
            return f"custom call {name} runs {len(theirs)} times in place of {times} x {len(mine)}"
        remaining = [item for item in mine for _ in range(times)]
        for item in theirs:
            for n, other in enumerate(remaining):
                if not differ(other, item):
                    del remaining[n]
                    break
            else:
                return f"custom call {name} is given {item.tolist()}, which it is not on one device"
    return None


def tried(seed: int, counts: Counter[str], ops: Counter[str], **choices: bool) -> str | None:
    """The disagreement of a seed, in words, with the program's text, or None."""
    found = None
    try:
        found = program(seed, **choices)
        ops.update(found.draw.ops)
        said = judged(found, counts)
    except Exception as error:
        if isinstance(error, xb.XbuildError) and found is None:
            counts[f"not drawn: {error.kind}"] += 1
            return None
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__} at {os.path.basename(where.filename)}:{where.lineno}: {str(error)[:400]}"
    if said is None:
        return None
    text = found.cut.to_hlo() if found else ""
    given = [each.tolist() for each in found.arguments] if found else []
    flags = "" if found is None or found.is_propagated else ", propagate=False"
    return f"seed {seed}{flags}: {said}\n{text}\n  arguments {given}".replace("\n", "\n    ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and compare; the exit status says whether anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this long")
    parser.add_argument("--denormals", action="store_true", help="let denormal numbers move, too")
    parser.add_argument("--mixed", action="store_true", help="fill pads with numbers of less precision, too")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    ops: Counter[str] = Counter()
    begun, finds, done = time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() - begun > options.seconds:
            break
        said = tried(seed, counts, ops, denormals=options.denormals, mixed=options.mixed)
        done += 1
        if said:
            finds += 1
            print(said, flush=True)
    print("ops:", ", ".join(f"{name} {count}" for name, count in ops.most_common()))
    rows = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{done} programs from seed {options.seed} on: {finds} disagreements; {rows}")
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(main())
