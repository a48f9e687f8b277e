"""Traces to step through: loops, devices that meet, a deadlock, and one without values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples import ring
from examples.deadlocks import ring as crossed
from examples.digits import model
from interpreter import trace
from xbuild.files.arrays import random_arguments
from xbuild.traces import Trace


def _traced(program: xb.Module, **options: Any) -> Trace:
    shapes = [[p.shape for p in program.entry.parameters]] * program.num_devices
    return trace(program, random_arguments(0, shapes), **options)


def _loop() -> Trace:
    """Four trips on two devices, which meet in each."""

    @xb.computation(xb.f32[2, 3])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        body = lambda s: xb.tuple_((s[0] + 1, xb.all_reduce(s[1] * 0.5, xb.add) - 1.0))  # noqa: E731
        return xb.while_(start, condition=lambda s: xb.lt(s[0], 4), body=body)[1]

    inputs = [[np.arange(6, dtype=np.float32).reshape(2, 3) * factor] for factor in (1, 2)]
    return trace(xb.Module("loop", program, num_replicas=2), inputs)


def _unequal() -> Trace:
    """Device r makes r trips, then all meet."""

    @xb.computation(xb.f32[()])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.convert(xb.replica_id(x.builder), xb.s32), x))
        body = lambda s: xb.tuple_((s[0] - 1, xb.sqrt(s[1])))  # noqa: E731
        return xb.all_reduce(xb.while_(start, condition=lambda s: xb.gt(s[0], 0), body=body)[1], xb.add)

    return trace(xb.Module("unequal", program, num_replicas=3), [[np.float32(16.0)]] * 3)


TRACES = {
    "loop": _loop,
    "unequal": _unequal,
    "ring": lambda: _traced(ring.program()),
    "deadlock": lambda: _traced(crossed.program(), check=False),
    "digits": lambda: _traced(xb.Module("digits", model.train_epoch(2, 16, xb.f32), num_replicas=4)),
    "none": lambda: _traced(ring.program(), values=False),
}


@pytest.fixture(scope="package")
def traces() -> dict[str, Trace]:
    return {name: build() for name, build in TRACES.items()}
