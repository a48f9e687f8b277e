"""The replicated programs shown on the page about TPU scripts."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from xbuild import tpu

SHARDS = 4


def step(x: xb.Value, y: xb.Value) -> tuple[xb.Value, tpu.Operation]:
    """Fit a line with momentum, and send the loss to the host."""
    w = tpu.get_variable("w", [3, 1], initializer=tpu.zeros_initializer)
    error = xb.dot(x, w) - y
    loss = xb.reduce(error * error, 0.0, xb.add) / 2.0
    train = tpu.CrossShardOptimizer(tpu.MomentumOptimizer(0.5, 0.5)).minimize(loss, var_list=[w])
    tpu.outside_compilation(lambda value: None, loss)
    return loss, train


def program() -> tpu.TpuProgram:
    """The step on four replicas with two rows each."""
    tpu.reset_variables()
    return tpu.batch_parallel.program(step, [xb.f32[2 * SHARDS, 3], xb.f32[2 * SHARDS, 1]], num_shards=SHARDS)


def uneven(x: xb.Value) -> xb.Value:
    """A sum that only the even replicas reach."""
    is_even = xb.replica_id(x.builder) % np.uint32(2) == np.uint32(0)
    return xb.conditional(is_even, x, tpu.cross_replica_sum, x, lambda value: value)


def refused() -> xb.Verdict:
    """The verdict on the uneven sum."""
    return tpu.replicate.program(uneven, [[1.0]] * SHARDS).verdict
