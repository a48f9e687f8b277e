"""Two pipeline stages both send before they receive."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

ACTIVATION = xb.f32[2]


def broken() -> xb.ModuleGroup:
    def rank(number: int, mine: int, theirs: int) -> xb.Module:
        def step(activation: xb.Value) -> xb.Value:
            token = xb.after_all(builder=activation.builder)
            sent = xb.send(activation, token, channel_id=mine, name="SendF")
            token = xb.send_done(sent, channel_id=mine)
            posted = xb.recv(token, shape=ACTIVATION, channel_id=theirs, name="RecvF")
            received, token = xb.recv_done(posted, channel_id=theirs)
            return activation + received

        return xb.Module(f"rank{number}", xb.computation(ACTIVATION)(step))

    return xb.ModuleGroup({0: rank(0, mine=1, theirs=2), 1: rank(1, mine=2, theirs=1)})


def fixed() -> xb.ModuleGroup:
    def rank(number: int, mine: int, theirs: int) -> xb.Module:
        def step(activation: xb.Value) -> xb.Value:
            token = xb.after_all(builder=activation.builder)
            posted = xb.recv(token, shape=ACTIVATION, channel_id=theirs, name="RecvF")
            sent = xb.send(activation, token, channel_id=mine, name="SendF")
            token = xb.send_done(sent, channel_id=mine)
            received, token = xb.recv_done(posted, channel_id=theirs)
            return activation + received

        return xb.Module(f"rank{number}", xb.computation(ACTIVATION)(step))

    return xb.ModuleGroup({0: rank(0, mine=1, theirs=2), 1: rank(1, mine=2, theirs=1)})


STORY = Story(
    title="Pipeline parallelism hangs on two nodes: both ranks send first",
    threads=("pytorch/pytorch#172668",),
    symptom="Two ranks with four stages run on one node. On two nodes both are stuck at a `SendF`, before a `RecvF`.",
    cause=(
        "A send completes only when the other side has posted its receive. Both ranks send first. On one node, "
        "buffers hide this."
    ),
    fix=(
        "Post the receive before the send. The reporter let odd ranks receive first, and a later pair of transfers "
        "crossed again."
    ),
    omitted="All other actions of the two schedules; the program has the pair at which they stop.",
    hanging=Inputs("any arguments", [[np.full(2, 1, np.float32)], [np.full(2, 2, np.float32)]]),
    results=[np.full(2, 3, np.float32)] * 2,
)
