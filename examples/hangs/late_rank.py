"""One rank reaches a barrier hours later than the others, which wait on their devices without a limit."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

FLAG, SHARD = xb.s32[()], xb.f32[2]


def broken() -> xb.Module:
    def start(flag: xb.Value) -> xb.Value:
        shard, _ = xb.infeed(xb.after_all(builder=flag.builder), shape=SHARD, name="restore")
        with xb.control(after=[shard]):
            return xb.all_reduce(flag, xb.add, name="barrier")

    return xb.Module("start", xb.computation(FLAG)(start), num_replicas=3)


def fixed() -> xb.Module:
    def start(flag: xb.Value, shard: xb.Value) -> xb.Value:
        with xb.control(after=[shard]):
            return xb.all_reduce(flag, xb.add, name="barrier")

    return xb.Module("start", xb.computation(FLAG, SHARD)(start), num_replicas=3)


ONE, SHARDS = np.int32(1), np.zeros(2, np.float32)
STORY = Story(
    title="703 of 704 processes wait in a device barrier: one is four hours late",
    threads=("marin-community/marin#8538",),
    symptom="A job does not begin. All processes but one are in a barrier on the devices, which has no limit of time.",
    cause="One process still reads its data. A barrier on the devices cannot name the process that is missing.",
    fix="Wait on the host, with a limit of time that names the rank, before the barrier on the devices.",
    omitted="Time: the late process is one whose data do not arrive. There are 3 processes.",
    hanging=Inputs("data for processes 0 and 1", [[ONE]] * 3, infeed=[[SHARDS], [SHARDS], []]),
    harmless=Inputs("data for all processes", [[ONE]] * 3, infeed=[[SHARDS]] * 3),
    fixed_inputs=Inputs("data for all processes, as arguments", [[ONE, SHARDS]] * 3),
    results=[np.int32(3)] * 3,
)
