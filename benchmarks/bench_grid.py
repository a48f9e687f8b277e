"""Running 256 replicas: the time of a ring all-reduce, and the memory of replicated and of varying values."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute

REPLICAS = 256
SIZE = 1024
LARGE = 1 << 18


def ring() -> xb.Module:
    """Each value goes around the ring once, and every replica sums what passes."""
    pairs = [(r, (r + 1) % REPLICAS) for r in range(REPLICAS)]

    @xb.computation(xb.f32[SIZE])
    def total(x: xb.Value) -> xb.Value:
        passed = sum_ = x
        for _ in range(REPLICAS - 1):
            passed = xb.collective_permute(passed, source_target_pairs=pairs)
            sum_ = xb.ops.add(sum_, passed)
        return sum_

    return xb.Module("ring", total, num_replicas=REPLICAS)


def by_hand(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    passed, total = rows, rows.copy()
    for _ in range(REPLICAS - 1):
        passed = np.roll(passed, 1, axis=0)
        total = total + passed
    return total


def test_ring_all_reduce(side_by_side: Any, rows: list[Any]) -> None:
    from benchmarks.conftest import Row

    module, values = ring(), np.random.default_rng(0).integers(0, 9, (REPLICAS, SIZE)).astype(np.float32)
    inputs = [[row] for row in values]
    np.testing.assert_array_equal(np.stack(execute(module, inputs)), by_hand(values))
    side_by_side("a step of a replica in a ring of 256, f32[1024]", lambda: execute(module, inputs),
                 lambda: by_hand(values), units=REPLICAS * (REPLICAS - 1), rounds=3)  # fmt: skip
    peak = _peak(lambda: execute(module, inputs))
    rows.append(Row("peak memory of the ring, above its inputs", peak / 2**20, unit="MiB"))


def shared_work(replicas: int) -> xb.Module:
    """Long work on a replicated value, which is the sum of a varying one."""

    @xb.computation(xb.f32[()])
    def work(x: xb.Value) -> xb.Value:
        value = xb.broadcast(xb.all_reduce(x, to_apply=xb.add), (LARGE,))
        kept = [value]
        for _ in range(8):
            kept.append(xb.ops.add(kept[-1], value))
        return xb.tuple_([xb.ops.multiply(each, kept[0]) for each in kept])

    return xb.Module("shared", work, num_replicas=replicas)


def test_values_that_are_the_same_everywhere(side_by_side: Any, rows: list[Any]) -> None:
    from benchmarks.conftest import Row

    many, one = shared_work(REPLICAS), shared_work(1)
    side_by_side("8 ops on f32[262144], the same on 256 replicas; on 1", lambda: _drop(many, REPLICAS),
                 lambda: _drop(one, 1), units=8, rounds=3)  # fmt: skip
    peaks = [_peak(lambda: _drop(many, REPLICAS)) / 2**20, _peak(lambda: _drop(one, 1)) / 2**20]
    rows.append(Row("peak memory of the same", *peaks, unit="MiB"))


def _drop(module: xb.Module, replicas: int) -> None:
    """Run the program and drop the results, which are never shared."""
    execute(module, [[np.float32(r)] for r in range(replicas)])


def _peak(call: Any) -> float:
    """The peak memory in bytes, beyond what was allocated before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
