"""Rank 0 passes two elements more to an all-reduce than the others."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story


def broken() -> xb.ModuleGroup:
    def rank(size: int) -> xb.Module:
        def step(buffer: xb.Value) -> xb.Value:
            return xb.all_reduce(buffer, xb.add, channel_id=1, name="total")

        return xb.Module("step", xb.computation(xb.f32[size])(step))

    larger, usual = rank(6), rank(4)
    return xb.ModuleGroup({0: larger, 1: usual, 2: usual, 3: usual})


def fixed() -> xb.ModuleGroup:
    def rank(size: int) -> xb.Module:
        def step(buffer: xb.Value) -> xb.Value:
            return xb.all_reduce(buffer, xb.add, channel_id=1, name="total")

        return xb.Module("step", xb.computation(xb.f32[size])(step))

    usual = rank(4)
    return xb.ModuleGroup({0: usual, 1: usual, 2: usual, 3: usual})


STORY = Story(
    title="NCCL all-reduce hangs, or returns a wrong tail: ranks pass different sizes",
    threads=("NVIDIA/nccl#1417",),
    symptom=(
        "If rank 0 passes 409,600 elements and the others 32,768,000, the all-reduce hangs. If the others pass "
        "409,598, it returns, and the last two elements are wrong."
    ),
    cause="All ranks must pass the same number of elements. NCCL does not check this.",
    fix="Pass the same number of elements on all ranks.",
    omitted="How NCCL splits a buffer, which decides between a hang and a wrong tail. xbuild refuses both.",
    hanging=Inputs("any arguments", [[np.ones(6 if rank == 0 else 4, np.float32)] for rank in range(4)]),
    fixed_inputs=Inputs("any arguments", [[np.ones(4, np.float32)]] * 4),
    results=[np.full(4, 4, np.float32)] * 4,
)
