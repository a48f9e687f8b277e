"""A parameter server that sends new weights to one worker before it receives the other worker's gradient."""

from __future__ import annotations

import xbuild as xb

WEIGHTS = xb.f32[3]


def server() -> xb.Module:
    """Device 0: receive a gradient from each worker and send new weights to it, worker 2 first."""
    builder = xb.Builder("server")
    weights = xb.parameter(builder, number=0, shape=WEIGHTS, name="weights")
    token = xb.after_all(builder=builder)
    for worker in (2, 1):
        gradient, token = xb.recv_done(xb.recv(token, shape=WEIGHTS, channel_id=worker), channel_id=worker)
        weights = weights - 0.1 * gradient
        token = xb.send_done(xb.send(weights, token, channel_id=2 + worker), channel_id=2 + worker)
    return xb.Module("server", builder.build(weights))


def worker(number: int) -> xb.Module:
    """Device `number`: worker 2 waits for a message that worker 1 sends after it has the new weights."""
    builder = xb.Builder(f"worker_{number}")
    weights = xb.parameter(builder, number=0, shape=WEIGHTS, name="weights")
    token = xb.after_all(builder=builder)
    if number == 2:
        _, token = xb.recv_done(xb.recv(token, shape=WEIGHTS, channel_id=5), channel_id=5)
    token = xb.send_done(xb.send(weights, token, channel_id=number), channel_id=number)
    updated, token = xb.recv_done(xb.recv(token, shape=WEIGHTS, channel_id=2 + number), channel_id=2 + number)
    if number == 1:
        xb.send_done(xb.send(updated, token, channel_id=5), channel_id=5)
    return xb.Module(f"worker_{number}", builder.build(updated))


def program() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: server(), 1: worker(1), 2: worker(2)})


if __name__ == "__main__":
    print(xb.check(program()))
