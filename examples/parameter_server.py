"""A parameter server: one program holds the weights; the others send gradients and receive the new weights."""

from __future__ import annotations

import numpy as np

import xbuild as xb

WORKERS = 2
WEIGHTS = xb.f32[3]


def server() -> xb.Module:
    """Device 0: receive a gradient from each worker, update the weights, and send them to each worker."""
    builder = xb.Builder("server")
    weights = xb.parameter(builder, number=0, shape=WEIGHTS, name="weights")
    token = xb.after_all(builder=builder)
    posted = [xb.recv(token, shape=WEIGHTS, channel_id=worker) for worker in range(1, WORKERS + 1)]
    for worker, buffer in enumerate(posted, 1):
        gradient, token = xb.recv_done(buffer, channel_id=worker)
        weights = weights - 0.1 * gradient
    for worker in range(1, WORKERS + 1):
        sent = xb.send(weights, token, channel_id=WORKERS + worker)
        token = xb.send_done(sent, channel_id=WORKERS + worker)
    return xb.Module("server", builder.build(weights))


def worker(number: int) -> xb.Module:
    """Device `number`: send the gradient of |weights - target|^2 / 2, and receive the new weights."""
    builder = xb.Builder(f"worker_{number}")
    weights = xb.parameter(builder, number=0, shape=WEIGHTS, name="weights")
    target = xb.parameter(builder, number=1, shape=WEIGHTS, name="target")
    token = xb.after_all(builder=builder)
    sent = xb.send(weights - target, token, channel_id=number)
    token = xb.send_done(sent, channel_id=number)
    posted = xb.recv(token, shape=WEIGHTS, channel_id=WORKERS + number)
    return xb.Module(f"worker_{number}", builder.build(xb.recv_done(posted, channel_id=WORKERS + number)[0]))


def program() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: server(), **{number: worker(number) for number in range(1, WORKERS + 1)}})


if __name__ == "__main__":
    group = program()
    print(xb.check(group))
    weights = np.zeros(3, np.float32)
    print(
        xb.execute(group, {0: [weights], 1: [weights, np.ones(3, np.float32)], 2: [weights, np.full(3, 5, np.float32)]})
    )
