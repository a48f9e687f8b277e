"""The op that fills the infeed is queued behind the program that reads it."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

ITEM = xb.f32[2]
FILL, READ = 1, 2


def queue() -> xb.Module:
    """The infeed of the device: pass an item on."""
    builder = xb.Builder("infeed")
    posted = xb.recv(xb.after_all(builder=builder), shape=ITEM, channel_id=FILL)
    item, token = xb.recv_done(posted, channel_id=FILL, name="wait_for_item")
    xb.send_done(xb.send(item, token, channel_id=READ, name="pass_on"), channel_id=READ)
    return xb.Module("infeed", builder.build(item))


def read(token: xb.Value) -> xb.Value:
    posted = xb.recv(token, shape=ITEM, channel_id=READ)
    return xb.recv_done(posted, channel_id=READ, name="read_infeed")


def fill(item: xb.Value, token: xb.Value) -> xb.Value:
    sent = xb.send(item, token, channel_id=FILL, name="enqueue")
    return xb.send_done(sent, channel_id=FILL)


def broken() -> xb.ModuleGroup:
    def device(item: xb.Value) -> xb.Value:
        batch, token = read(xb.after_all(builder=item.builder))
        fill(item, token)
        return batch * 2.0

    device_ops = xb.Module("device", xb.computation(ITEM)(device))
    return xb.ModuleGroup({0: device_ops, 1: queue()})


def fixed() -> xb.ModuleGroup:
    def device(item: xb.Value) -> xb.Value:
        batch, _ = read(xb.after_all(builder=item.builder))
        return batch * 2.0

    def host(item: xb.Value) -> xb.Value:
        return fill(item, xb.after_all(builder=item.builder))

    device_ops = xb.Module("device", xb.computation(ITEM)(device))
    host_ops = xb.Module("host", xb.computation(ITEM)(host))
    return xb.ModuleGroup({0: device_ops, 1: queue(), 2: host_ops})


ITEM_VALUE = np.ones(2, np.float32)
STORY = Story(
    title="InfeedEnqueue placed on the TPU never returns",
    threads=("tensorflow/tensorflow#24155",),
    symptom="InfeedEnqueueTuple on the CPU works. On the TPU it blocks if a program is running there.",
    cause="The enqueue waits until the running program ends, and that program waits for the item.",
    fix="Place the enqueue on the host.",
    omitted=(
        "The runtime's queue of ops on a device: the program states its order. Device 1 represents the infeed, and "
        "device 2 the host."
    ),
    hanging=Inputs("any arguments", [[ITEM_VALUE], []]),
    fixed_inputs=Inputs("any arguments", [[ITEM_VALUE], [], [ITEM_VALUE]]),
    results=[np.full(2, 2, np.float32), np.ones(2, np.float32), None],
    written_out=True,
)
