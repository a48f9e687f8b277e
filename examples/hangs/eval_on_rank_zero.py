"""Only rank 0 evaluates, and the forward pass contains an all-to-all."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

TOKENS = xb.f32[4]


def forward(tokens: xb.Value) -> xb.Value:
    sent = xb.all_to_all(tokens, 0, 0, split_count=2, name="dispatch")
    return xb.tanh(sent)


def broken() -> xb.Module:
    def evaluate(tokens: xb.Value) -> xb.Value:
        is_main = xb.eq(xb.replica_id(tokens.builder), 0)
        return xb.conditional(is_main, tokens, forward, tokens, lambda x: x, name="is_main")

    return xb.Module("evaluate", xb.computation(TOKENS)(evaluate), num_replicas=2)


def fixed() -> xb.Module:
    def evaluate(tokens: xb.Value) -> xb.Value:
        is_main = xb.eq(xb.replica_id(tokens.builder), 0)
        return xb.select(is_main, forward(tokens), tokens)

    return xb.Module("evaluate", xb.computation(TOKENS)(evaluate), num_replicas=2)


STORY = Story(
    title="Training succeeds and evaluation hangs: the other ranks have returned",
    threads=("yiqiao-yin/deepspeed-course#28",),
    symptom="With expert parallelism, training completes; then the job hangs for 11 minutes and exits with -6.",
    cause=(
        "The other ranks return before the evaluation. Without expert parallelism the forward pass has no "
        "collective, so this is harmless. With it, the forward pass contains an all-to-all, which needs every rank."
    ),
    fix="Run the forward pass on every rank, and let rank 0 use the result. Guard the output, not the collective.",
    omitted="The training loop and the processes: a rank that returns is a device that takes the other branch.",
    hanging=Inputs("any arguments", [[np.zeros(4, np.float32)], [np.ones(4, np.float32)]]),
    results=[np.tanh(np.array([0, 0, 1, 1], np.float32)), np.ones(4, np.float32)],
)
