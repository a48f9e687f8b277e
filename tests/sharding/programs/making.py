"""Random programs: parameters of any element type, then ops of every family in a row."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import XbuildError

from . import computed, lookups, nested, plain, several, typed
from .drawing import EXTENTS, Draw, Values, integers

COMMON = (xb.s32, xb.s32, xb.s32, xb.f32, xb.f32)
RARE = (
    xb.s4, xb.u4, xb.s8, xb.u8, xb.s16, xb.u16, xb.u32, xb.s64, xb.u64, xb.bf16, xb.f16, xb.f64, xb.c64, xb.c128,
    xb.pred, xb.f8e4m3fn, xb.f8e5m2, xb.f8e4m3b11fnuz, xb.f4e2m1fn,
)  # fmt: skip
MOST_ELEMENTS = 4096

DRAWS: tuple[Draw, ...] = (
    *plain.DRAWS, *plain.DRAWS, *computed.DRAWS, *computed.DRAWS, *typed.DRAWS, *lookups.DRAWS, *several.DRAWS,
    *nested.DRAWS,
)  # fmt: skip


def random_program(chance: random.Random, length: int) -> tuple[xb.Module, list[np.ndarray[Any, Any]]]:
    """A module of about `length` ops, and its arguments."""
    builder, arguments, values = xb.Builder("program"), [], []
    for number in range(chance.randrange(1, 4)):
        dims = tuple(chance.choice(EXTENTS) for _ in range(chance.randrange(1, 4)))
        dtype = chance.choice(COMMON if chance.random() < 0.7 else RARE)
        values.append(xb.parameter(builder, number=number, shape=dtype[dims]))
        drawn = integers(chance, dims, 0 if dtype.kind in ("unsigned", "pred") else -4, 4)
        arguments.append(np.asarray(drawn % 2 if dtype.kind == "pred" else drawn).astype(dtype.dtype))
    add_values(chance, builder, values, length)
    results = values[-2:] if chance.random() < 0.5 else values[-1:]
    root = xb.ops.tuple_(tuple(results)) if len(results) > 1 else xb.copy(results[0])
    return xb.Module("program", builder.build(root)), arguments


def add_values(chance: random.Random, builder: xb.Builder, values: Values, length: int) -> None:
    """Values until a computation has so many instructions."""
    for _ in range(40 * length):
        if len(builder.recorded) >= length:
            return
        made = _made(chance, values)
        if made is not None and made.shape.size <= MOST_ELEMENTS:
            values.append(made)


def _made(chance: random.Random, values: Values) -> xb.Value | None:
    """One more value, or None where the op refuses what was drawn."""
    try:
        return chance.choice(DRAWS)(chance, values)
    except XbuildError:
        return None
