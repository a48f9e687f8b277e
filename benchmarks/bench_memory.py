"""The largest temporary of an op, as a multiple of its operands and result combined."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from benchmarks.conftest import Row
from benchmarks.workloads import WORKLOADS, Workload, leaves, normal
from interpreter import evaluate

Case = Callable[[], tuple[xb.Computation, tuple[Any, ...]]]


def _computation(function: Callable[..., Any], *arguments: Any) -> tuple[xb.Computation, tuple[Any, ...]]:
    shapes = [xb.primitive_type(argument.dtype)[argument.shape] for argument in arguments]
    return xb.computation(*shapes)(function), arguments


def _window(to_apply: Any, init: float, window: str) -> Callable[[xb.Value], xb.Value]:
    def function(x: xb.Value) -> xb.Value:
        start = xb.constant(x.builder, literal=np.float32(init))
        return xb.ops.reduce_window((x,), (start,), to_apply=to_apply, window=window)

    return function


def _convolution(**attributes: Any) -> Callable[..., xb.Value]:
    return lambda x, w: xb.ops.convolution(x, w, dimension_numbers="b01f_01io->b01f", **attributes)


def _patches(x: xb.Value, corners: xb.Value) -> xb.Value:
    return xb.ops.gather(
        x, corners, offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1), index_vector_dim=1,
        slice_sizes=(64, 64),
    )  # fmt: skip


def _probability(a: xb.Value, b: xb.Value) -> xb.Value:
    return a + b - a * b


CORNERS: dict[str, Case] = {
    "running sum of 4,096, as a window": lambda: _computation(
        _window(xb.add, 0.0, "size=4096 pad=4095_0"), normal(4096)
    ),
    "window 31x31 of 512x512, sum": lambda: _computation(_window(xb.add, 0.0, "size=31x31"), normal(512, 512)),
    "window 15x15 of 256x256, own computation": lambda: _computation(
        _window(_probability, 0.0, "size=15x15"), normal(256, 256)
    ),
    "window 9x9 with dilation 5": lambda: _computation(
        _window(xb.max, -np.inf, "size=9x9 rhs_dilate=5x5"), normal(512, 512)
    ),
    "convolution with a 15x15 kernel": lambda: _computation(
        _convolution(window="size=15x15 pad=7_7x7_7"), normal(2, 128, 128, 8), normal(15, 15, 8, 8)
    ),
    "convolution of a dilated input, stride 3": lambda: _computation(
        _convolution(window="size=5x5 stride=3x3 lhs_dilate=4x4"), normal(4, 64, 64, 16), normal(5, 5, 16, 16)
    ),
    "gather of 4,096 patches of 64x64": lambda: _computation(
        _patches, normal(512, 512), np.random.default_rng(0).integers(0, 448, (4096, 2), np.int32)
    ),
}


def _of_workload(make: Callable[[], Workload]) -> Case:
    def case() -> tuple[xb.Computation, tuple[Any, ...]]:
        work = make()
        return work.computation, work.arguments

    return case


CASES = {make.__name__: _of_workload(make) for make in WORKLOADS} | CORNERS


@pytest.mark.parametrize("name", CASES)
def test_peak(name: str, benchmark: Any, rows: list[Row]) -> None:
    computation, arguments = CASES[name]()
    result = benchmark.pedantic(evaluate, (computation, *arguments), rounds=1)
    held = sum(np.asarray(each).nbytes for each in (*arguments, *leaves(result)))
    del result
    tracemalloc.start()
    try:
        evaluate(computation, *arguments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows.append(Row(f"peak memory of {name}", peak / held, unit="x operands and result"))
