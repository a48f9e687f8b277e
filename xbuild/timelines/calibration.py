"""The machine that this process runs on, measured: products and copies of NumPy."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np

from ..process.memory import memory
from .machines import Machine

_EXTENT = 768
_COPIED = 64 << 20
_ROUNDS = 5


def calibrated() -> Machine:
    """The machine here: the best of several products in f32 and f64, and of several copies. Takes about a second.

    Without links: programs of several devices need them in the machine file.

    Source: none; these are measurements, of as many threads as NumPy's products use.
    """
    flops = {name: _product(dtype) for name, dtype in (("f32", np.float32), ("f64", np.float64))}
    source = np.ones(_COPIED, dtype=np.uint8)
    target = np.empty_like(source)
    seconds = _best(lambda: np.copyto(target, source))
    return Machine(
        name=platform.node() or "this machine", flops=flops, memory_bandwidth=2 * _COPIED / seconds, memory=memory()
    )


def _product(dtype: type) -> float:
    """FLOPs a second of a product of two square matrices."""
    square: np.ndarray = np.ones((_EXTENT, _EXTENT), dtype=dtype)
    return 2 * _EXTENT**3 / _best(lambda: np.matmul(square, square))


def _best(work: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls."""
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
