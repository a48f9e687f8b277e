"""Two of eight ranks run the all-reduce of one group before the all-to-all of another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

ROWS = xb.f32[8]


def shuffle_first(rows: xb.Value) -> xb.Value:
    mine = xb.all_to_all(rows, 0, 0, split_count=8, channel_id=1, name="shuffle")
    summed = xb.all_reduce(rows, xb.add, channel_id=2, name="gradients")
    return mine + summed


def gradients_first(rows: xb.Value) -> xb.Value:
    summed = xb.all_reduce(rows, xb.add, channel_id=2, name="gradients")
    mine = xb.all_to_all(rows, 0, 0, split_count=8, channel_id=1, name="shuffle")
    return mine + summed


def compiled(step: Callable[[xb.Value], xb.Value]) -> xb.Module:
    return xb.Module("step", xb.computation(ROWS)(step), is_scheduled=True)


def broken() -> xb.ModuleGroup:
    usual, crossed = compiled(shuffle_first), compiled(gradients_first)
    return xb.ModuleGroup({rank: usual if rank < 6 else crossed for rank in range(8)})


def fixed() -> xb.ModuleGroup:
    usual = compiled(shuffle_first)
    return xb.ModuleGroup(dict.fromkeys(range(8), usual))


STORY = Story(
    title="Deadlock across two process groups: all-to-all on one, all-reduce on the other",
    threads=("meta-pytorch/torchrec#4149",),
    symptom="A job on 64 GPUs hangs during warm-up: 62 ranks are in an all-to-all, and ranks 6 and 7 in an all-reduce.",
    cause=(
        "The two groups have the same members, but not all ranks use them in the same order. An implicit "
        "synchronization with the GPU makes each rank wait for its first collective."
    ),
    fix="Use the groups in the same order on all ranks.",
    omitted=(
        "Streams and the implicit synchronization: here each collective blocks, as if one followed it. The program "
        "has 8 ranks, not 64."
    ),
    hanging=Inputs("any arguments", [[np.full(8, rank, np.float32)] for rank in range(8)]),
    results=[np.arange(8, dtype=np.float32) + 28] * 8,
)
