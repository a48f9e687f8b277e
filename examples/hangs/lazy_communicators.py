"""Each rank of a ring creates the communicator with its next rank first, then the one with its previous rank."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

FLAG = xb.s32[()]
Pairs = list[tuple[int, int]]
EVEN, ODD = [(0, 1), (2, 3)], [(1, 2), (3, 0)]  # the pairs of neighbours in a ring of four


def create(flag: xb.Value, pairs: Pairs) -> xb.Value:
    """The creation of the communicator of two ranks; it returns when both have called it."""
    name = "create_" + "_".join(f"{one}{other}" for one, other in pairs)
    return xb.all_reduce(flag, xb.add, replica_groups=pairs, name=name)


def broken() -> xb.ModuleGroup:
    def rank(to_next: Pairs, to_previous: Pairs) -> xb.Module:
        def step(flag: xb.Value) -> xb.Value:
            return create(create(flag, to_next), to_previous)

        return xb.Module("step", xb.computation(FLAG)(step), num_replicas=4, is_scheduled=True)

    even, odd = rank(EVEN, ODD), rank(ODD, EVEN)
    return xb.ModuleGroup({0: even, 1: odd, 2: even, 3: odd})


def fixed() -> xb.ModuleGroup:
    def rank() -> xb.Module:
        def step(flag: xb.Value) -> xb.Value:
            return xb.collective_permute(flag, EVEN + ODD, name="batched_p2p")

        return xb.Module("step", xb.computation(FLAG)(step), num_replicas=4, is_scheduled=True)

    each = rank()
    return xb.ModuleGroup({0: each, 1: each, 2: each, 3: each})


STORY = Story(
    title="Interleaved pipeline hangs in a RECV: two-rank communicators are created on first use",
    threads=("NVIDIA/Megatron-LM#5240",),
    symptom="A test with four stages and two virtual stages hangs in a RECV, at another rank each time.",
    cause=(
        "Unbatched P2P creates a communicator for each pair of ranks on first use. The creation waits for both "
        "ranks, and the ranks create their communicators in inconsistent orders."
    ),
    fix="Use batched P2P on the communicator of the whole group, which exists already.",
    omitted=(
        "xbuild does not know that a first use creates a communicator: the program writes each creation as an "
        "all-reduce of the pair."
    ),
    hanging=Inputs("any arguments", [[np.int32(rank)] for rank in range(4)]),
    results=[np.int32(value) for value in (3, 0, 1, 2)],
    written_out=True,
)
