"""All ranks launch the kernels of two communicators in one order, and there is room for only one kernel."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]
DATA, MODEL = [[0, 1, 2]], [[0, 1], [2]]  # the groups of two communicators


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        data = xb.all_reduce_start(value, xb.add, replica_groups=DATA, channel_id=1, name="data")
        with xb.control(after=[data]):
            model = xb.all_reduce_start(value, xb.add, replica_groups=MODEL, channel_id=2, name="model")
        return xb.all_reduce_done(data) + xb.all_reduce_done(model)

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=3, is_scheduled=True)


def fixed() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        data = xb.all_reduce_start(value, xb.add, replica_groups=DATA, channel_id=1, name="data")
        summed = xb.all_reduce_done(data)
        with xb.control(after=[summed]):
            model = xb.all_reduce_start(value, xb.add, replica_groups=MODEL, channel_id=2, name="model")
        return summed + xb.all_reduce_done(model)

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=3, is_scheduled=True)


STORY = Story(
    title="Two NCCL communicators deadlock, although all ranks call them in one order",
    threads=tuple(f"NVIDIA/nccl#{number}" for number in (195, 208, 522, 592, 781, 783)),
    symptom="A program with two communicators on two streams hangs now and then, and more often on busy GPUs.",
    cause=(
        "CUDA does not promise that kernels of two streams run at the same time, nor in which order they begin. The "
        "kernel that begins on one GPU waits for its peer, which waits for room on another GPU."
    ),
    fix=(
        "Wait for the kernel of one communicator before launching the next, or launch both on one stream. NCCL's "
        "NCCL_LAUNCH_ORDER_IMPLICIT=1 makes kernels begin in the order of their launches."
    ),
    omitted="All other kernels: a GPU has room for one collective here.",
    hanging=Inputs("any arguments", [[np.full(2, rank, np.float32)] for rank in range(3)]),
    results=[np.full(2, value, np.float32) for value in (4, 4, 5)],
    runtime="two_communicators.toml",
)
