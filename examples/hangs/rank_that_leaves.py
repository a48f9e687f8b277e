"""One process stops after five steps; the others run eight."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


def process(steps: int) -> xb.Module:
    def train(value: xb.Value) -> xb.Value:
        def trip(state: xb.Value) -> list[xb.Value]:
            step, value = state
            return [step + 1, xb.all_reduce(value, xb.maximum, channel_id=1, name="psum")]

        return xb.while_([0, value], lambda state: state[0] < steps, trip, name="steps")[1]

    return xb.Module("train", xb.computation(VALUE)(train))


def broken() -> xb.ModuleGroup:
    usual, early = process(8), process(5)
    return xb.ModuleGroup({0: usual, 1: early, 2: usual, 3: usual})


def fixed() -> xb.ModuleGroup:
    usual = process(8)
    return xb.ModuleGroup({0: usual, 1: usual, 2: usual, 3: usual})


STORY = Story(
    title="A multi-host job hangs, and no timeout fires: one process is alive and enters no collective",
    threads=("jax-ml/jax#38503",),
    symptom=(
        "At step 5, one process no longer enters the all-reduce but keeps sending heartbeats. All other processes "
        "block in `psum`, without an error."
    ),
    cause=(
        "The heartbeat shows that the process is alive, not that it makes progress. The program of that process has "
        "fewer steps than those of the others."
    ),
    fix="Run the same number of steps everywhere.",
    omitted=(
        "Why the process stops. If it hangs in code of the host, no program shows this: read the dumps of the job "
        "with [`xbuild hang`](hangs.md)."
    ),
    hanging=Inputs("any arguments", [[np.full(2, rank, np.float32)] for rank in range(4)]),
    results=[np.full(2, 3, np.float32)] * 4,
)
