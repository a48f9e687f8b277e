"""Two ranks compile different programs, and the autotuner of each waits for a key that only an equal program has."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


def rank(fingerprint: str) -> xb.Module:
    def compile_and_run(value: xb.Value) -> xb.Value:
        times = xb.all_gather(value, 0, shard_count=2, name=f"autotune_{fingerprint}")
        best = xb.reduce(times, np.inf, xb.minimum)
        with xb.control(after=[best]):
            return xb.all_reduce(value, xb.add, channel_id=1, name="step")

    return xb.Module("rank", xb.computation(VALUE)(compile_and_run))


def broken() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: rank("1a2b"), 1: rank("3c4d")})


def fixed() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: rank("1a2b"), 1: rank("1a2b")})


STORY = Story(
    title="Compilation hangs for a day: the autotuner waits for a key of another rank",
    threads=("marin-community/marin#9042",),
    symptom="Ranks wait in the autotuner for the results of the other ranks, up to its timeout of 24 hours.",
    cause=(
        "The ranks lower different HLO. The autotuner exchanges its results under a key that contains the fingerprint "
        "of the module, so each waits for a key that the other never writes."
    ),
    fix="Lower the same program on all ranks; `xbuild check` on the dumps of all ranks says where they differ.",
    omitted="The compiler: its exchange of results is an all-gather, whose name has the fingerprint.",
    hanging=Inputs("any arguments", [[np.full(2, 1, np.float32)], [np.full(2, 2, np.float32)]]),
    results=[np.full(2, 3, np.float32)] * 2,
    written_out=True,
)
