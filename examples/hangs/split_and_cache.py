"""Two ranks reuse a cached communicator; the other two call a split that needs all four."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE, CACHED = xb.f32[2], xb.pred[()]
PAIRS = [[0, 1], [2, 3]]


def split(value: xb.Value) -> xb.Value:
    """ncclCommSplit of the parent; it returns when all four ranks have called it."""
    called = xb.all_reduce(xb.constant(value.builder, 1.0), xb.add, name="comm_split")
    return value * xb.select(called > 0.0, 1.0, called)


def broken() -> xb.Module:
    def run(value: xb.Value, cached: xb.Value) -> xb.Value:
        value = xb.conditional(cached, value, lambda x: x, value, split, name="is_cached")
        return xb.all_reduce(value, xb.add, replica_groups=PAIRS, name="pair_sum")

    return xb.Module("run", xb.computation(VALUE, CACHED)(run), num_replicas=4)


def fixed() -> xb.Module:
    def run(value: xb.Value, cached: xb.Value) -> xb.Value:
        cached = xb.all_reduce(cached, xb.and_, name="all_cached")
        value = xb.conditional(cached, value, lambda x: x, value, split, name="is_cached")
        return xb.all_reduce(value, xb.add, replica_groups=PAIRS, name="pair_sum")

    return xb.Module("run", xb.computation(VALUE, CACHED)(run), num_replicas=4)


def ranks(*cached: bool) -> list[list[object]]:
    return [[np.full(2, rank, np.float32), np.bool_(each)] for rank, each in enumerate(cached)]


STORY = Story(
    title="XLA on GPUs hangs when meshes of several sizes alternate: ncclCommSplit and a stale cache",
    threads=("openxla/xla#38105", "openxla/xla#36981", "ROCm/xla#589"),
    symptom="JAX's own tests hang on eight GPUs if computations on two, four and eight devices alternate.",
    cause=(
        "ncclCommSplit is a collective of all ranks of the parent communicator. Ranks whose part is in the cache "
        "skip it, and the others wait in it."
    ),
    fix="Keep the cache the same on all ranks: if one part is evicted, evict all of them. Here the ranks agree first.",
    omitted=(
        "xbuild does not know that XLA creates communicators: the program writes the split as an all-reduce, and "
        "the state of the cache as an argument. It has 4 ranks, not 8."
    ),
    hanging=Inputs("cached on ranks 0 and 1 only", ranks(True, True, False, False)),
    harmless=Inputs("cached on no rank", ranks(False, False, False, False)),
    results=[np.full(2, 1, np.float32)] * 2 + [np.full(2, 5, np.float32)] * 2,
    written_out=True,
)
