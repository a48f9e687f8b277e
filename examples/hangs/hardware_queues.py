"""Three communicators are used in one order on all ranks, and a device runs the collectives of only two at a time."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]
NAMES = ("fsdp_gather", "fsdp_scatter", "tensor_parallel")


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        begun: list[xb.Value] = []
        for channel, name in enumerate(NAMES, 1):
            with xb.control(after=begun[-1:]):
                begun.append(xb.all_reduce_start(value, xb.add, channel_id=channel, name=name))
        one, two, three = map(xb.all_reduce_done, begun)
        return one + two + three

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=3, is_scheduled=True)


def fixed() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        done: list[xb.Value] = []
        for channel, name in enumerate(NAMES, 1):
            with xb.control(after=done[-1:]):
                done.append(xb.all_reduce_done(xb.all_reduce_start(value, xb.add, channel_id=channel, name=name)))
        one, two, three = done
        return one + two + three

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=3, is_scheduled=True)


STORY = Story(
    title="FSDP2 with tensor parallelism hangs on MI250, with a consistent order on all ranks",
    threads=("ROCm/rccl#2191",),
    symptom=(
        "Tests with two or three communicators hang in half of the runs or in all. All collectives time out with "
        "matching sequence numbers, and logging hides the hang."
    ),
    cause=(
        "Hardware queues decide which kernels begin. With room for two collectives, each rank may run another two of "
        "the three, and no collective runs on all ranks."
    ),
    fix="Wait for one collective before launching the next.",
    omitted=(
        "The queues themselves, and how many fit. In the thread, an implicit launch order helps with two communicators "
        "and not with three; here it would help with three."
    ),
    hanging=Inputs("any arguments", [[np.full(2, rank, np.float32)] for rank in range(3)]),
    results=[np.full(2, 9, np.float32)] * 3,
    runtime="hardware_queues.toml",
)
