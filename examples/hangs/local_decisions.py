"""Each tensor-parallel rank decides by itself whether to run the draft model."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

HIDDEN, FITS = xb.f32[2], xb.pred[()]


def draft(hidden: xb.Value) -> xb.Value:
    return xb.all_reduce(hidden, xb.add, name="draft_model")


def broken() -> xb.Module:
    def step(hidden: xb.Value, fits: xb.Value) -> xb.Value:
        hidden = xb.all_reduce(hidden, xb.add, name="target_model")
        hidden = xb.conditional(fits, hidden, draft, hidden, lambda x: x, name="drafts")
        return xb.all_gather(hidden, 0, shard_count=2, name="logits")

    return xb.Module("step", xb.computation(HIDDEN, FITS)(step), num_replicas=2)


def fixed() -> xb.Module:
    def step(hidden: xb.Value, fits: xb.Value) -> xb.Value:
        fits = xb.all_reduce(fits, xb.and_, name="consensus")
        hidden = xb.all_reduce(hidden, xb.add, name="target_model")
        hidden = xb.conditional(fits, hidden, draft, hidden, lambda x: x, name="drafts")
        return xb.all_gather(hidden, 0, shard_count=2, name="logits")

    return xb.Module("step", xb.computation(HIDDEN, FITS)(step), num_replicas=2)


def ranks(*fits: bool) -> list[list[object]]:
    return [[np.ones(2, np.float32), np.bool_(each)] for each in fits]


STORY = Story(
    title="vLLM with tensor parallelism hangs: ranks disagree whether to run the drafter",
    threads=("vllm-project/vllm#48720",),
    symptom="vLLM with tensor parallelism over four machines deadlocks under load. The thread has two live captures.",
    cause=(
        "Each rank decides from its own state which collectives to run: CUDA graph or not, drafter or not, drain or "
        "not. As soon as two ranks decide differently, they wait in different collectives."
    ),
    fix="Reach a consensus first: reduce the decision over the group, and use the reduced value.",
    omitted="The server. The program has one of the decisions, as an argument.",
    hanging=Inputs("rank 0 drafts, rank 1 does not", ranks(True, False)),
    harmless=Inputs("both ranks draft", ranks(True, True)),
    results=[np.full(4, 2, np.float32)] * 2,
)
