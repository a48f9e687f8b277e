"""Draws of random numbers: bits that the state determines, and distributions that leave one value only."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType, u64

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def rng_bit_generator(chance: Chance, dtype: PrimitiveType) -> Instance:
    algorithm, words = chance.one((("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3), ("rng_default", 2)))
    attributes = {"algorithm": algorithm, "shape": dtype[chance.dims(most=6)]}
    return Instance("rng_bit_generator", dtype, (chance.values(u64, (words,)),), attributes)


def rng(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Uniform between neighbours, where only the first remains, or normal without deviation."""
    mean = chance.whole(dtype)
    if dtype.is_float and chance.odds(0.5):
        return _of(chance, dtype, mean, np.zeros((), dtype.dtype), "rng_normal")
    if not dtype.is_integer:
        return _of(chance, dtype, mean, mean, "rng_uniform")
    return _of(chance, dtype, mean, np.asarray(mean + dtype.dtype.type(1)), "rng_uniform")


def _of(chance: Chance, dtype: PrimitiveType, a: np.ndarray, b: np.ndarray, distribution: str) -> Instance:
    attributes = {"shape": dtype[chance.dims()], "distribution": distribution}
    return Instance("rng", dtype, (np.asarray(a), np.asarray(b)), attributes, is_exact=True)


def rng_get_and_update_state(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Where the device's state begins is XLA's own affair: compared is that it has two words, of which one is zero."""

    def record(builder: xb.Builder) -> xb.Value:
        state = xb.ops.rng_get_and_update_state(builder, delta=chance.between(1, 9), shape=dtype[2])
        return xb.ops.slice(state, start_indices=(1,), limit_indices=(2,))

    return Instance("rng_get_and_update_state", dtype, record=record)


DRAWS: dict[str, Draw] = {
    "rng": rng,
    "rng_bit_generator": rng_bit_generator,
    "rng_get_and_update_state": rng_get_and_update_state,
}
