"""A pipeline of two stages: the first stage sends each micro-batch as soon as its result is ready."""

from __future__ import annotations

import numpy as np

import xbuild as xb

MICRO_BATCHES = 3
WIRE = xb.f32[2, 4]


def first_stage() -> xb.Module:
    """Compute x w for each micro-batch, and send the products on channels 1, 2, ..."""
    builder = xb.Builder("first_stage")
    weights = xb.parameter(builder, number=0, shape=xb.f32[3, 4], name="weights")
    batches = xb.parameter(builder, number=1, shape=xb.f32[MICRO_BATCHES, 2, 3], name="batches")
    token = xb.after_all(builder=builder)
    for number in range(MICRO_BATCHES):
        activation = xb.tanh(xb.dot(batches[number], weights))
        sent = xb.send(activation, token, channel_id=1 + number)
        token = xb.send_done(sent, channel_id=1 + number)
    return xb.Module("first_stage", builder.build(token))


def second_stage() -> xb.Module:
    """Receive each micro-batch, and compute its mean."""
    builder = xb.Builder("second_stage")
    weights = xb.parameter(builder, number=0, shape=xb.f32[4, 1], name="weights")
    token = xb.after_all(builder=builder)
    means = []
    for number in range(MICRO_BATCHES):
        posted = xb.recv(token, shape=WIRE, channel_id=1 + number)
        activation, token = xb.recv_done(posted, channel_id=1 + number)
        means.append(xb.reduce(xb.dot(activation, weights), 0.0, xb.add) / 2.0)
    return xb.Module("second_stage", builder.build(xb.concatenate([xb.reshape(mean, [1]) for mean in means], 0)))


def program() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: first_stage(), 1: second_stage()})


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    first = rng.standard_normal((3, 4), np.float32), rng.standard_normal((MICRO_BATCHES, 2, 3), np.float32)
    group = program()
    print(xb.check(group))
    print(xb.execute(group, {0: first, 1: [np.ones((4, 1), np.float32)]})[1])
