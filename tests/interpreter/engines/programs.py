"""Small programs for both engines: some have equal results, some end XLA's process or never end."""

from __future__ import annotations

import numpy as np

import xbuild as xb


def everywhere() -> xb.Module:
    """Replicas and partitions meet, a scalar, a token and a nested tuple come out."""
    builder = xb.Builder("everywhere")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    pair = xb.parameter(builder, number=1, shape=xb.TupleShape((xb.bf16[2], xb.s4[3])))
    groups = [[0, 1, 2, 3]]
    total = xb.ops.all_reduce(x, to_apply=xb.ops.add, replica_groups=groups, channel_id=1, use_global_device_ids=True)
    who = xb.partition_id(builder) + xb.replica_id(builder) * 2
    root = xb.tuple_([total, [who, pair], xb.after_all(builder=builder)])
    return xb.Module("everywhere", builder.build(root), num_replicas=2, num_partitions=2)


def endless() -> xb.Computation:
    @xb.computation(xb.s32[()])
    def loop(n: xb.Value) -> xb.Value:
        return xb.while_(n, condition=lambda n: n >= 0, body=xb.abs)

    return loop


def deadly() -> xb.Computation:
    """XLA folds constants when it compiles, and a division by zero ends its process."""
    builder = xb.Builder("deadly")
    return builder.build(xb.constant(builder, np.int32([1])) / xb.constant(builder, np.int32([0])))


def random() -> xb.Computation:
    builder = xb.Builder("random")
    low, high = xb.constant(builder, np.float32(0)), xb.constant(builder, np.float32(1))
    return builder.build(xb.rng_uniform(low, high, xb.f32[8]))


def one_device(computation: xb.Computation) -> xb.Module:
    return xb.Module(computation.name, computation)
