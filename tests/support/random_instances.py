"""An instance of an op with operands and the result of a reference, and random values for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from shape_inference import primitive_type

Array = np.ndarray[Any, Any]


@frozen
class Instance:
    call: Callable[..., xb.Value]
    arguments: tuple[Array, ...]
    expected: Callable[[], Array]
    words: str

    def computation(self) -> xb.Computation:
        builder = xb.Builder("instance")
        shapes = [primitive_type(a.dtype)[a.shape] for a in self.arguments]
        return builder.build(self.call(*(xb.parameter(builder, number=n, shape=s) for n, s in enumerate(shapes))))


def values(rng: np.random.Generator, shape: Any, dtype: Any) -> Array:
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        return (rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)).astype(dtype)
    if primitive_type(dtype).is_integer:
        low = 0 if primitive_type(dtype).kind == "unsigned" else -100
        return rng.integers(low, 100, shape).astype(dtype)
    return rng.integers(-8, 9, shape).astype(dtype)  # whole numbers: every order of adding gives the same
