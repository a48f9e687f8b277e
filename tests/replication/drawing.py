"""What random programs are drawn from: the values that there are, by kind, and the two sources of chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

import xbuild as xb

KINDS = {"i": xb.s32[()], "b": xb.pred[()], "v": xb.s32[4], "f": xb.f32[4]}


@define
class Drawing:
    """`rng` decides what all programs of a group share, `local` what each computes by itself."""

    rng: random.Random
    local: random.Random
    replicas: int
    partitions: int
    is_one: bool
    depth: int = 0
    channels: int = 0
    quiet: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.quiet = self.rng.choice((0.3, 0.7, 0.9, 1.0))

    def channel(self) -> int:
        self.channels += 1
        return self.channels


@define
class Pool:
    """The values of a computation under construction, by kind; picked with a liking for the newest."""

    builder: xb.Builder
    values: dict[str, list[xb.Value]] = field(factory=lambda: {kind: [] for kind in KINDS})

    @property
    def types(self) -> str:
        return "iibvvvf"

    def add(self, value: xb.Value) -> None:
        self.values[kind_of(value)].append(value)

    def take(self, result: xb.Value, kinds: str) -> None:
        for n, _ in enumerate(kinds):
            self.add(xb.ops.get_tuple_element(result, index=n))

    def pick(self, drawing: Drawing, kind: str) -> xb.Value:
        """A value of a kind; a constant where there is none."""
        found = self.values[kind]
        if not found:
            self.add(constant(self.builder, kind, drawing.local))
        place = drawing.local.choice((0, drawing.local.random()))
        return found[-1 - int(place * len(found))]

    def number(self, value: int) -> xb.Value:
        return xb.ops.constant(self.builder, literal=np.int32(value))


def kind_of(value: xb.Value) -> str:
    return next(kind for kind, shape in KINDS.items() if shape == value.shape)


def constant(builder: xb.Builder, kind: str, rng: random.Random) -> xb.Value:
    shape: Any = KINDS[kind]
    numbers: Any = [rng.randrange(-1, 4) for _ in range(4)] if shape.rank else rng.randrange(-1, 4)
    return xb.ops.constant(builder, literal=np.array(numbers).astype(shape.dtype.dtype))


def given(builder: xb.Builder, values: Sequence[xb.Value]) -> Pool:
    pool = Pool(builder)
    for value in values:
        pool.add(value)
    return pool


def unpacked(state: xb.Value, kinds: str) -> Pool:
    pool = Pool(state.builder)
    pool.take(state, kinds)
    return pool


def packed(pool: Pool) -> xb.Value:
    """The newest value of each kind, in a tuple."""
    return xb.ops.tuple_([values[-1] for values in pool.values.values() if values])
