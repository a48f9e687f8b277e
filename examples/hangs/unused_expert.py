"""An expert without a token has no gradient hook, so its rank skips the reduce-scatter."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

GRADIENT, TOKENS = xb.f32[4], xb.s32[()]


def scatter(gradient: xb.Value) -> xb.Value:
    return xb.reduce_scatter(gradient, xb.add, 0, shard_count=2, name="expert_gradient")


def broken() -> xb.Module:
    def backward(gradient: xb.Value, tokens: xb.Value) -> xb.Value:
        nothing = xb.slice(gradient * 0.0, [0], [2])
        return xb.conditional(tokens > 0, gradient, scatter, nothing, lambda x: x, name="hook")

    return xb.Module("backward", xb.computation(GRADIENT, TOKENS)(backward), num_replicas=2)


def fixed() -> xb.Module:
    def backward(gradient: xb.Value, tokens: xb.Value) -> xb.Value:
        return scatter(xb.select(tokens > 0, gradient, gradient * 0.0))

    return xb.Module("backward", xb.computation(GRADIENT, TOKENS)(backward), num_replicas=2)


def ranks(*tokens: int) -> list[list[object]]:
    return [[np.arange(4, dtype=np.float32), np.int32(count)] for count in tokens]


STORY = Story(
    title="MoE with ZeRO-3 hangs in the backward pass: an expert got no tokens",
    threads=("deepspeedai/DeepSpeed#5008",),
    symptom="MoE models with ZeRO-3 hang in the backward pass, until the NCCL timeout.",
    cause=(
        "A hook on each parameter runs the reduce-scatter of its gradient. The hook runs only if the expert got a "
        "token, and each rank routes its own tokens."
    ),
    fix="Run the reduce-scatter on all ranks; an expert without a token contributes zeros.",
    omitted="The router and all other experts. The number of tokens is an argument.",
    hanging=Inputs("5 tokens on rank 0, none on rank 1", ranks(5, 0)),
    harmless=Inputs("5 tokens on rank 0, 1 on rank 1", ranks(5, 1)),
    results=[np.array([0, 1], np.float32), np.array([2, 3], np.float32)],
)
