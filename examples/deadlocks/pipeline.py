"""A pipeline whose second stage receives the micro-batches in the opposite order; tokens fix both orders."""

from __future__ import annotations

import xbuild as xb

WIRE = xb.f32[2, 4]


def first_stage() -> xb.Module:
    builder = xb.Builder("first_stage")
    batches = xb.parameter(builder, number=0, shape=xb.f32[2, 2, 4], name="batches")
    token = xb.after_all(builder=builder)
    for number in (0, 1):
        sent = xb.send(xb.tanh(batches[number]), token, channel_id=1 + number)
        token = xb.send_done(sent, channel_id=1 + number)
    return xb.Module("first_stage", builder.build(token))


def second_stage() -> xb.Module:
    builder = xb.Builder("second_stage")
    token = xb.after_all(builder=builder)
    arrived = []
    for number in (1, 0):
        posted = xb.recv(token, shape=WIRE, channel_id=1 + number)
        activation, token = xb.recv_done(posted, channel_id=1 + number)
        arrived.append(activation)
    return xb.Module("second_stage", builder.build(arrived[0] + arrived[1]))


def program() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: first_stage(), 1: second_stage()})


if __name__ == "__main__":
    print(xb.check(program()))
