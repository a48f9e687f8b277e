"""Each rank of a ring receives from its previous rank first, which creates a communicator of the two."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

FLAG = xb.s32[()]
RANKS = 4


def broken() -> xb.ModuleGroup:
    def rank(number: int) -> xb.Module:
        def step(flag: xb.Value) -> xb.Value:
            token = xb.after_all(builder=flag.builder)
            posted = xb.recv(token, shape=FLAG, channel_id=1 + (number - 1) % RANKS, name="recv_prev")
            sent = xb.send(flag, token, channel_id=1 + number, name="send_next")
            with xb.control(after=[xb.send_done(sent, channel_id=1 + number)]):
                return xb.recv_done(posted, channel_id=1 + (number - 1) % RANKS)[0]

        return xb.Module("step", xb.computation(FLAG)(step), is_scheduled=True)

    return xb.ModuleGroup({number: rank(number) for number in range(RANKS)})


def fixed() -> xb.ModuleGroup:
    def rank() -> xb.Module:
        def step(flag: xb.Value) -> xb.Value:
            return xb.collective_permute(flag, [(0, 1), (1, 2), (2, 3), (3, 0)], name="batched_p2p")

        return xb.Module("step", xb.computation(FLAG)(step), num_replicas=RANKS, is_scheduled=True)

    each = rank()
    return xb.ModuleGroup(dict.fromkeys(range(RANKS), each))


STORY = Story(
    title="Interleaved pipeline hangs in a RECV: two-rank communicators are created on first use",
    threads=("NVIDIA/Megatron-LM#5240",),
    symptom="A test with four stages and two virtual stages hangs in a RECV, at another rank each time.",
    cause=(
        "Unbatched P2P creates a communicator for each pair of ranks on first use. The creation waits for both "
        "ranks, and each rank of the ring begins with its previous one."
    ),
    fix="Use batched P2P on the communicator of the whole group.",
    omitted="The schedule, and all messages but the first of each rank.",
    hanging=Inputs("any arguments", [[np.int32(rank)] for rank in range(RANKS)]),
    results=[np.int32(value) for value in (3, 0, 1, 2)],
    runtime="nccl",
)
