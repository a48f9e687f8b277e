"""Collectives in two halves give what real XLA gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from tests.checking.asynchronous.programs import module
from tests.support.compare import assert_same


def reduced(x: xb.Value, **groups: Any) -> xb.Value:
    to_apply = xb.add if x.shape.dtype is xb.c64 else xb.maximum  # type: ignore[union-attr]
    return xb.all_reduce_done(xb.all_reduce_start(x, to_apply, **groups))


def gathered(x: xb.Value, **groups: Any) -> xb.Value:
    return xb.all_gather_done(xb.all_gather_start(x, 0, 2, **groups))


def scattered(x: xb.Value, **groups: Any) -> xb.Value:
    to_apply = xb.add if x.shape.dtype is xb.c64 else xb.minimum  # type: ignore[union-attr]
    return xb.async_done(xb.async_start(x, lambda y: xb.reduce_scatter(y, to_apply, 0, 2, **groups)))


def exchanged(x: xb.Value, **groups: Any) -> xb.Value:
    return xb.async_done(xb.async_start(x, lambda y: xb.all_to_all(y, 0, 0, 2, **groups), context_shapes=[xb.u32]))


def permuted(x: xb.Value, **pairs: Any) -> xb.Value:
    return xb.collective_permute_done(xb.collective_permute_start(x, **pairs, context_shapes=[xb.u32, xb.u32]))


ROWS: list[tuple[int, int]] = [(0, 3), (2, 1)]
ON_XLA = [
    *((f, 4, 1, {"replica_groups": ROWS}) for f in (reduced, gathered, scattered, exchanged)),
    *(
        (f, 2, 2, {"replica_groups": ROWS, "channel_id": 1, "use_global_device_ids": True})
        for f in (reduced, gathered, scattered)
    ),
    (reduced, 2, 2, {"replica_groups": [(0, 1)], "channel_id": 1}),
    (exchanged, 2, 2, {"replica_groups": [(1, 0)], "channel_id": 2}),
    (permuted, 4, 1, {"source_target_pairs": [(0, 2), (2, 3)]}),
    (permuted, 2, 2, {"source_target_pairs": [(0, 1)], "channel_id": 2}),
]


@pytest.mark.slow
@pytest.mark.oracle
def test_real_xla_gives_the_same() -> None:
    from tests.oracle import Job, run

    rng = np.random.default_rng(0)
    jobs, ours = [], []
    for dtype in (xb.f32, xb.bf16, xb.f8e5m2, xb.s8, xb.u64, xb.pred, xb.c64):
        for function, replicas, partitions, attributes in ON_XLA if dtype is xb.f32 else ON_XLA[:4] + ON_XLA[-2:-1]:
            program = module(partial(function, **attributes), dtype[4, 3], replicas=replicas, partitions=partitions)
            rows = [[rng.integers(0, 2, (4, 3)).astype(dtype.dtype)] for _ in range(replicas * partitions)]
            jobs.append(Job(program.to_hlo(), rows, replicas, partitions))
            ours.append(execute(program, rows))
    for given_back, results in zip(run(jobs), ours, strict=True):
        assert isinstance(given_back, list), given_back
        assert_same([np.asarray(leaf) for (leaf,) in given_back], results)
