"""The last batch has fewer examples on one device, so its graph has another shape."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

BATCH, LAST = 4, 3


def broken() -> xb.ModuleGroup:
    def device(examples: int) -> xb.Module:
        def step(losses: xb.Value) -> xb.Value:
            return xb.all_gather(losses, 0, shard_count=4, channel_id=1, name="all_losses")

        return xb.Module("step", xb.computation(xb.f32[examples])(step))

    whole, smaller = device(BATCH), device(LAST)
    return xb.ModuleGroup({0: whole, 1: whole, 2: whole, 3: smaller})


def fixed() -> xb.ModuleGroup:
    def device(examples: int) -> xb.Module:
        def step(losses: xb.Value) -> xb.Value:
            losses = xb.pad(losses, 0.0, padding=[(0, BATCH - examples, 0)])
            return xb.all_gather(losses, 0, shard_count=4, channel_id=1, name="all_losses")

        return xb.Module("step", xb.computation(xb.f32[examples])(step))

    whole, smaller = device(BATCH), device(LAST)
    return xb.ModuleGroup({0: whole, 1: whole, 2: whole, 3: smaller})


STORY = Story(
    title="Training hangs after the first iteration: the last batch is smaller on one device",
    threads=("pytorch/xla#3908",),
    symptom=(
        "BERT with DeepSpeed on four GPUs hangs after the first iteration with 30,522 words, and works with 32,032, "
        "which 4 divides."
    ),
    cause=(
        "A maintainer's guess: a device gets a batch of another size, so its graph has other shapes. All devices of "
        "a collective must pass the same shape."
    ),
    fix="Pad the last batch, or drop it (`drop_last=True`).",
    omitted="The thread does not confirm the cause. Shards of a vocabulary that 4 does not divide have the same form.",
    hanging=Inputs("any arguments", [[np.ones(LAST if number == 3 else BATCH, np.float32)] for number in range(4)]),
    results=[np.array([1] * 15 + [0], np.float32)] * 4,
)
