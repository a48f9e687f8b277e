"""Two ranks have their communicator in the cache; the other two need a split, which waits for all four."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]
PAIR, PAIRS = [[0, 1]], [[0, 1], [2, 3]]


def copy(value: xb.Value) -> xb.Value:
    return xb.collective_broadcast(value, replica_groups=PAIR, name="mesh_of_two")


def reduce(value: xb.Value) -> xb.Value:
    return xb.all_reduce(value, xb.add, replica_groups=PAIRS, name="mesh_of_four")


def broken() -> xb.Module:
    def run(value: xb.Value) -> xb.Value:
        copied = copy(value)
        with xb.control(after=[copied]):
            return copied + reduce(value)

    return xb.Module("run", xb.computation(VALUE)(run), num_replicas=4, is_scheduled=True)


def fixed() -> xb.Module:
    def run(value: xb.Value) -> xb.Value:
        reduced = reduce(value)
        with xb.control(after=[reduced]):
            return copy(value) + reduced

    return xb.Module("run", xb.computation(VALUE)(run), num_replicas=4, is_scheduled=True)


STORY = Story(
    title="XLA on GPUs hangs when meshes of several sizes alternate: ncclCommSplit and a stale cache",
    threads=("openxla/xla#38105", "openxla/xla#36981", "ROCm/xla#589"),
    symptom="JAX's own tests hang on eight GPUs if computations on two, four and eight devices alternate.",
    cause=(
        "ncclCommSplit is a collective of all ranks of the parent communicator. Ranks whose part is in the cache "
        "skip it, and the others wait in it."
    ),
    fix=(
        "Keep the cache the same on all ranks: if one part is evicted, evict all of them. Here all ranks use their "
        "pairs before one pair is used alone."
    ),
    omitted="The cache of a process: here two uses in one program. It has 4 ranks, not 8.",
    hanging=Inputs("any arguments", [[np.full(2, rank + 1, np.float32)] for rank in range(4)]),
    results=[np.full(2, value, np.float32) for value in (4, 4, 7, 7)],
    runtime="split_and_cache.toml",
)
