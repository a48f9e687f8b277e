"""A broadcast that another thread queues comes before the step's all-reduce on one rank, and after it on the other."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]
BOTH = [[0, 1]]


def put(value: xb.Value) -> xb.Value:
    return xb.collective_broadcast(value, replica_groups=BOTH, channel_id=1, name="device_put")


def reduce(value: xb.Value) -> xb.Value:
    return xb.all_reduce(value, xb.add, replica_groups=BOTH, channel_id=2, name="step")


def put_first(data: xb.Value, value: xb.Value) -> xb.Value:
    data = put(data)
    with xb.control(after=[data]):
        return data + reduce(value)


def step_first(data: xb.Value, value: xb.Value) -> xb.Value:
    value = reduce(value)
    with xb.control(after=[value]):
        return put(data) + value


def broken() -> xb.ModuleGroup:
    first, second = (xb.Module("step", xb.computation(VALUE, VALUE)(each)) for each in (put_first, step_first))
    return xb.ModuleGroup({0: first, 1: second})


def fixed() -> xb.ModuleGroup:
    first = xb.Module("step", xb.computation(VALUE, VALUE)(put_first))
    return xb.ModuleGroup({0: first, 1: first})


ONES = np.ones(2, np.float32)
STORY = Story(
    title="A step hangs while device_put runs: two threads queue NCCL calls on one communicator",
    threads=("openxla/xla#31027",),
    symptom="A job on several hosts hangs if `jax.device_put` copies to other hosts while a step runs.",
    cause=(
        "The copy and the step are queued by different threads, so each rank may queue them in another order. NCCL "
        "pairs the calls of a communicator by their order."
    ),
    fix="Queue the calls of a communicator in one order on all ranks: wait for the copy before the step is launched.",
    omitted="The threads: the two orders that they may choose are those of the two programs.",
    hanging=Inputs("any arguments", [[ONES, ONES], [2 * ONES, ONES]]),
    results=[3 * ONES, 3 * ONES],
    runtime="nccl",
)
