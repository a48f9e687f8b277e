"""The master core builds a graph with one more all-gather, for its log."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

QUERY = xb.f32[4]


def broken() -> xb.ModuleGroup:
    def core(ordinal: int) -> xb.Module:
        def step(query: xb.Value) -> xb.Value:
            pooled = xb.all_gather(query, 0, shard_count=4, channel_id=1, name="pooled")
            loss = xb.reduce(pooled * pooled, 0.0, xb.add)
            if ordinal == 0:
                logged = xb.all_gather(query, 0, shard_count=4, channel_id=2, name="logged")
                return xb.tuple_([loss, xb.reduce(logged, 0.0, xb.add)])
            return xb.tuple_([loss])

        return xb.Module("step", xb.computation(QUERY)(step))

    return xb.ModuleGroup({ordinal: core(ordinal) for ordinal in range(4)})


def fixed() -> xb.ModuleGroup:
    def core(ordinal: int) -> xb.Module:
        def step(query: xb.Value) -> xb.Value:
            pooled = xb.all_gather(query, 0, shard_count=4, channel_id=1, name="pooled")
            loss = xb.reduce(pooled * pooled, 0.0, xb.add)
            if ordinal == 0:
                return xb.tuple_([loss, xb.reduce(pooled, 0.0, xb.add)])
            return xb.tuple_([loss])

        return xb.Module("step", xb.computation(QUERY)(step))

    return xb.ModuleGroup({ordinal: core(ordinal) for ordinal in range(4)})


STORY = Story(
    title="all_gather hangs if one core logs: code under is_master_ordinal()",
    threads=("pytorch/xla#2311",),
    symptom="A script on eight TPU cores works without `xm.all_gather` and hangs on the first step with it.",
    cause=(
        "Code under `if xm.is_master_ordinal()` uses tensors, so the master core builds a different graph. Its "
        "all-gather needs every core, and the other cores have no such collective."
    ),
    fix="Let all cores run the same collectives, and log a value that the master already has.",
    omitted="Lazy tensors. As there, the branch on the ordinal is taken while the graph is built. There are 4 cores.",
    hanging=Inputs("any arguments", [[np.full(4, value, np.float32)] for value in range(4)]),
    results=[(np.float32(56), np.float32(24)), *[(np.float32(56),)] * 3],
)
