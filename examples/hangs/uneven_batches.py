"""Two ranks sum gradients in a loop over their own batches; one has a batch more."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

GRADIENT, COUNT = xb.f32[2], xb.s32[()]


def broken() -> xb.Module:
    def epoch(gradient: xb.Value, batches: xb.Value) -> xb.Value:
        def trip(state: xb.Value) -> list[xb.Value]:
            step, batches, total, gradient = state
            total = total + xb.all_reduce(gradient, xb.add, name="gradients")
            return [step + 1, batches, total, gradient]

        start = [0, batches, gradient * 0.0, gradient]
        return xb.while_(start, lambda state: state[0] < state[1], trip, name="epoch")[2]

    return xb.Module("train", xb.computation(GRADIENT, COUNT)(epoch), num_replicas=2)


def fixed() -> xb.Module:
    def epoch(gradient: xb.Value, batches: xb.Value) -> xb.Value:
        def trip(state: xb.Value) -> list[xb.Value]:
            step, most, batches, total, gradient = state
            mine = xb.select(step < batches, gradient, gradient * 0.0)
            total = total + xb.all_reduce(mine, xb.add, name="gradients")
            return [step + 1, most, batches, total, gradient]

        most = xb.all_reduce(batches, xb.maximum, name="most_batches")
        start = [0, most, batches, gradient * 0.0, gradient]
        return xb.while_(start, lambda state: state[0] < state[1], trip, name="epoch")[3]

    return xb.Module("train", xb.computation(GRADIENT, COUNT)(epoch), num_replicas=2)


def ranks(*batches: int) -> list[list[object]]:
    return [[np.ones(2, np.float32), np.int32(count)] for count in batches]


STORY = Story(
    title="DDP hangs at the end of an epoch: ranks have unequal numbers of batches",
    threads=("pytorch/pytorch#33148", "pytorch/pytorch#38174"),
    symptom="DistributedDataParallel hangs if its processes get different numbers of inputs.",
    cause=(
        "Each rank runs one all-reduce of the gradients for each of its batches. The rank with a batch more waits in "
        "an all-reduce that the other rank never reaches."
    ),
    fix=(
        "Agree on the largest number of batches; a rank without a batch adds zeros. This is what "
        "`torch.distributed.algorithms.Join` does."
    ),
    omitted="The network that is trained, and the buckets of DDP.",
    hanging=Inputs("3 batches on rank 0, 2 on rank 1", ranks(3, 2)),
    harmless=Inputs("2 batches on each rank", ranks(2, 2)),
    results=[np.full(2, 5, np.float32)] * 2,
)
