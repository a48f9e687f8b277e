"""The prompts do not divide evenly, so two ranks of one group gather arrays of different sizes."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

PROMPTS, PAIRS = (3, 3, 3, 2), ((0, 1), (2, 3))


def broken() -> xb.ModuleGroup:
    def rank(prompts: int) -> xb.Module:
        def rollout(data: xb.Value) -> xb.Value:
            return xb.all_gather(data, 0, replica_groups=PAIRS, shard_count=2, name="all_prompts")

        return xb.Module("rollout", xb.computation(xb.s32[prompts])(rollout), num_replicas=4)

    return xb.ModuleGroup({number: rank(prompts) for number, prompts in enumerate(PROMPTS)})


def fixed() -> xb.ModuleGroup:
    def rank(prompts: int) -> xb.Module:
        def rollout(data: xb.Value) -> xb.Value:
            data = xb.pad(data, -1, padding=[(0, max(PROMPTS) - prompts, 0)])
            return xb.all_gather(data, 0, replica_groups=PAIRS, shard_count=2, name="all_prompts")

        return xb.Module("rollout", xb.computation(xb.s32[prompts])(rollout), num_replicas=4)

    return xb.ModuleGroup({number: rank(prompts) for number, prompts in enumerate(PROMPTS)})


STORY = Story(
    title="Rollout hangs without an error: the data set is not divisible by the number of ranks",
    threads=("verl-project/verl#12",),
    symptom="The validation rollout hangs and prints no error.",
    cause=(
        "The data are split over all ranks, and some ranks get fewer prompts. The ranks of a tensor-parallel group "
        "then gather arrays of different sizes."
    ),
    fix="Pad the data until the number of ranks divides it.",
    omitted="The thread's other cause: a micro batch of size 0 makes a loop in Python endless.",
    hanging=Inputs("any arguments", [[np.full(count, rank, np.int32)] for rank, count in enumerate(PROMPTS)]),
    results=[np.array(pair, np.int32) for pair in [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, -1]] * 2],
)
