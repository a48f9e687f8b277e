"""Two stages are each other's next and previous rank, and one receives in another order than the other sends."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

ACTIVATION, GRADIENT = xb.f32[2], xb.f32[4]
FORWARD, BACKWARD = 1, 2  # channels from rank 0 to rank 1


def rank_0() -> xb.Module:
    def step(activation: xb.Value, gradient: xb.Value) -> xb.Value:
        token = xb.after_all(builder=activation.builder)
        sent = xb.send(activation, token, channel_id=FORWARD, name="send_next")
        token = xb.send_done(sent, channel_id=FORWARD)
        sent = xb.send(gradient, token, channel_id=BACKWARD, name="send_prev")
        return xb.send_done(sent, channel_id=BACKWARD)

    return xb.Module("rank0", xb.computation(ACTIVATION, GRADIENT)(step), is_scheduled=True)


def broken() -> xb.ModuleGroup:
    def rank_1(builder: xb.Builder) -> xb.Value:
        token = xb.after_all(builder=builder)
        second = xb.recv(token, shape=GRADIENT, channel_id=BACKWARD, name="recv_next")
        first = xb.recv(token, shape=ACTIVATION, channel_id=FORWARD, name="recv_prev")
        activation, _ = xb.recv_done(first, channel_id=FORWARD)
        gradient, _ = xb.recv_done(second, channel_id=BACKWARD)
        return xb.tuple_([activation, gradient])

    builder = xb.Builder("rank1")
    rank_1(builder)
    return xb.ModuleGroup({0: rank_0(), 1: xb.Module("rank1", builder.build(), is_scheduled=True)})


def fixed() -> xb.ModuleGroup:
    def rank_1(builder: xb.Builder) -> xb.Value:
        token = xb.after_all(builder=builder)
        first = xb.recv(token, shape=ACTIVATION, channel_id=FORWARD, name="recv_prev")
        second = xb.recv(token, shape=GRADIENT, channel_id=BACKWARD, name="recv_next")
        activation, _ = xb.recv_done(first, channel_id=FORWARD)
        gradient, _ = xb.recv_done(second, channel_id=BACKWARD)
        return xb.tuple_([activation, gradient])

    builder = xb.Builder("rank1")
    rank_1(builder)
    return xb.ModuleGroup({0: rank_0(), 1: xb.Module("rank1", builder.build(), is_scheduled=True)})


SENT = [np.full(2, 1, np.float32), np.full(4, 2, np.float32)]
STORY = Story(
    title="Interleaved pipeline with two stages hangs: the next rank is also the previous rank",
    threads=("NVIDIA/Megatron-LM#1495", "NVIDIA/Megatron-LM#1451"),
    symptom="With PP=2 and VPP=2, messages have the wrong shape, or the ranks hang.",
    cause=(
        "NCCL's sends and recvs have no tags. With two stages, both messages of a rank go to the same peer, which "
        "receives them in another order."
    ),
    fix="Receive from a peer in the order in which it sends.",
    omitted="The messages in the other direction, and the schedule. Communicators exist before the program runs.",
    hanging=Inputs("any arguments", [SENT, []]),
    results=[None, tuple(SENT)],
    runtime="interleaved_stages.toml",
)
