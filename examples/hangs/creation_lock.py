"""Each host creates the communicators of its devices one at a time, and two hosts begin with different ones."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


def reduce(value: xb.Value, groups: list[list[int]], name: str) -> xb.Value:
    return xb.all_reduce(value, xb.add, replica_groups=groups, name=name)


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        return reduce(value, [[0, 2], [1, 3]], "across_hosts")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=4)


def fixed() -> xb.Module:
    def barrier(value: xb.Value, name: str) -> xb.Value:
        return reduce(value * 0.0, [[0, 1, 2, 3]], name)

    def step(value: xb.Value) -> xb.Value:
        value = value + barrier(value, "begin")
        value = reduce(value, [[0, 2], [1], [3]], "first_communicator")
        value = value + barrier(value, "between")
        return reduce(value, [[0], [1, 3], [2]], "second_communicator")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=4)


STORY = Story(
    title="Multi-host GPU jobs hang at their first collective: communicators are created under one lock",
    threads=("tensorflow/tensorflow@0be5a10c185",),
    symptom="Programs with several replica groups across hosts deadlock when they begin.",
    cause=(
        "A host creates one communicator at a time. While host 0 creates the one of devices 0 and 2, host 1 may have "
        "begun with that of devices 1 and 3, and each waits for the other."
    ),
    fix="Create the communicators in one order on all hosts. XLA then gave each communicator a lock of its own.",
    omitted="The threads of a host: each device of a host is one that may take the lock first.",
    hanging=Inputs("any arguments", [[np.full(2, rank, np.float32)] for rank in range(4)]),
    results=[np.full(2, value, np.float32) for value in (2, 4, 2, 4)],
    runtime="creation_lock.toml",
)
