"""The data loader of one host stalls, and the other host waits for it inside the step."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

WEIGHTS, BATCH = xb.f32[2], xb.f32[2]


def broken() -> xb.Module:
    def train(weights: xb.Value) -> xb.Value:
        token = xb.after_all(builder=weights.builder)
        first, token = xb.infeed(token, shape=BATCH, name="first_batch")
        weights = weights - xb.all_reduce(first, xb.add, name="first_gradient")
        second, token = xb.infeed(token, shape=BATCH, name="second_batch")
        return weights - xb.all_reduce(second, xb.add, name="second_gradient")

    return xb.Module("train", xb.computation(WEIGHTS)(train), num_replicas=2)


def fixed() -> xb.Module:
    def train(weights: xb.Value, first: xb.Value, second: xb.Value) -> xb.Value:
        weights = weights - xb.all_reduce(first, xb.add, name="first_gradient")
        return weights - xb.all_reduce(second, xb.add, name="second_gradient")

    return xb.Module("train", xb.computation(WEIGHTS, BATCH, BATCH)(train), num_replicas=2)


ZEROS, ONES = np.zeros(2, np.float32), np.ones(2, np.float32)
STORY = Story(
    title="All hosts but one are stuck in the train step: a data loader has stalled",
    threads=("marin-community/marin#7039",),
    symptom="One of 256 processes reads slowly. The others enter the step, wait on the device, and die at a timeout.",
    cause=(
        "A step is a collective of all hosts. A host without a batch never enters it, and the others wait where "
        "nothing can name the missing host."
    ),
    fix="Load the batch before the step starts, so that the wait is on the host, where a timeout can name the rank.",
    omitted="Time: the slow loader is an infeed that has no more items. The barrier between hosts is not in the fix.",
    hanging=Inputs("2 batches for host 0, 1 for host 1", [[ZEROS], [ZEROS]], infeed=[[ONES, ONES], [ONES]]),
    harmless=Inputs("2 batches for each host", [[ZEROS], [ZEROS]], infeed=[[ONES, ONES], [ONES, ONES]]),
    fixed_inputs=Inputs("2 batches for each host, as arguments", [[ZEROS, ONES, ONES]] * 2),
    results=[np.full(2, -4, np.float32)] * 2,
)
