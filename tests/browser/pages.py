"""The programs of the browser tests, each run once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import xbuild as xb
from examples import ring
from examples.gallery.deadlocks import exchange
from interpreter import trace
from xbuild.page import write_page
from xbuild.trace import Trace


def of_ring() -> Trace:
    inputs = np.arange(64, dtype=np.float32).reshape(4, -1)
    return trace(ring.ring_all_reduce(4), [[row] for row in inputs], origins=True)


def scattered() -> Trace:
    """An all-gather, an all-reduce and an all-to-all of two groups."""

    @xb.computation(xb.f32[4])
    def program(x: xb.Value) -> xb.Value:
        groups = [[0, 2], [1, 3]]
        turned = xb.transpose(xb.reshape(x, (2, 2)), (1, 0))
        gathered = xb.all_gather(turned, 0, 2, replica_groups=groups)
        swapped = xb.all_to_all(turned, 0, 0, 2, replica_groups=groups)
        return xb.all_reduce(xb.log(xb.concatenate([gathered, swapped], 0)), xb.add)

    return trace(
        xb.Module("scattered", program, num_replicas=4),
        [[np.arange(4, dtype=np.float32) + 4 * n] for n in range(4)],
        origins=True,
    )


def loop() -> Trace:
    @xb.computation(xb.f32[2])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        return xb.while_(
            start,
            condition=lambda s: xb.lt(s[0], 3),
            body=lambda s: xb.tuple_((s[0] + 1, xb.all_reduce(s[1] * 2.0, xb.add))),
        )[1]

    return trace(xb.Module("loop", program, num_replicas=2), [[np.ones(2, np.float32)]] * 2, origins=True)


def deadlock() -> Trace:
    return trace(exchange(3, "send recv done"), [[np.zeros(4, np.float32)]] * 3, check=False)


def large(length: int = 2_000, devices: int = 8) -> Trace:
    """Elementwise work on small arrays, and a meeting now and then."""

    @xb.computation(xb.f32[4, 4])
    def program(x: xb.Value) -> xb.Value:
        for number in range(length // 3):
            x = xb.tanh(x + xb.negate(x))
            if number % 50 == 49:
                x = xb.all_reduce(x, xb.add)
        return x

    inputs = np.random.default_rng(0).standard_normal((devices, 1, 4, 4)).astype(np.float32)
    return trace(xb.Module("large", program, num_replicas=devices), list(inputs), origins=True)


def many() -> Trace:
    """256 devices."""

    @xb.computation(xb.f32[2])
    def program(x: xb.Value) -> xb.Value:
        for _ in range(6):
            x = xb.all_reduce(xb.tanh(x) + x, xb.add)
        return x

    inputs = [[np.full(2, number, np.float32)] for number in range(256)]
    return trace(xb.Module("many", program, num_replicas=256), inputs, origins=True)


PAGES = {"ring": of_ring, "scattered": scattered, "loop": loop, "deadlock": deadlock, "large": large, "many": many}


def write(name: str, path: Path) -> None:
    write_page(PAGES[name](), path)
