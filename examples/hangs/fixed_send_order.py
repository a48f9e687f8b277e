"""All stages of a pipeline send to the previous stage first, so no stage receives."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

SHAPE = xb.s32[3]
FIXED = ("send_prev", "recv_prev", "send_next", "recv_next")
EVEN = ("send_next", "recv_prev", "send_prev", "recv_next")
ODD = ("recv_prev", "send_next", "recv_next", "send_prev")


def stage(rank: int, order: tuple[str, ...]) -> xb.Module:
    """Exchange shapes with both neighbours; channel 10 a + b leads from stage a to stage b."""

    def step(shape: xb.Value) -> xb.Value:
        token, received = xb.after_all(builder=shape.builder), [shape]
        for name in order:
            peer = rank - 1 if name.endswith("prev") else rank + 1
            to, back = 10 * rank + peer, 10 * peer + rank
            if not 0 <= peer < 4:
                continue
            if name.startswith("send"):
                sent = xb.send(shape, token, channel_id=to, name=name)
                token = xb.send_done(sent, channel_id=to)
            else:
                posted = xb.recv(token, shape=SHAPE, channel_id=back, name=name)
                theirs, token = xb.recv_done(posted, channel_id=back, name=f"{name}_done")
                received.append(theirs)
        return sum(received[1:], received[0])

    return xb.Module(f"stage{rank}", xb.computation(SHAPE)(step), is_scheduled=True)


def broken() -> xb.ModuleGroup:
    return xb.ModuleGroup({rank: stage(rank, FIXED) for rank in range(4)})


def fixed() -> xb.ModuleGroup:
    return xb.ModuleGroup({rank: stage(rank, ODD if rank % 2 else EVEN) for rank in range(4)})


STORY = Story(
    title="Megatron hangs in _communicate_shapes with four or more pipeline stages",
    threads=("NVIDIA/Megatron-LM#5100",),
    symptom="With variable sequence lengths and batched P2P, all ranks of a pipeline of four hang in the first step.",
    cause=(
        "Each stage runs its transfers in one order: send to the previous stage, receive from it, send to the next, "
        "receive from it. Every stage waits in a send to a stage that is in a send itself."
    ),
    fix="Alternate: even stages send first, odd stages receive first.",
    omitted=(
        "NCCL groups, which could run the four transfers together. Sends are not buffered, as in the reporter's "
        "analysis."
    ),
    hanging=Inputs("any arguments", [[np.full(3, 10**rank, np.int32)] for rank in range(4)]),
    results=[np.full(3, total, np.int32) for total in (11, 111, 1110, 1100)],
)
