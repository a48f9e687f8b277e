"""Two collectives that share two devices overlap, and the devices launch them in different orders."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]
ALL, PAIR = [[0, 1, 2]], [[0, 1], [2]]


def start(value: xb.Value, groups: list[list[int]], channel: int, name: str) -> xb.Value:
    return xb.all_reduce_start(value, xb.add, replica_groups=groups, channel_id=channel, name=name)


def program(value: xb.Value, is_all_first: bool, overlap: bool) -> xb.Value:
    def of_all() -> xb.Value:
        return start(value, ALL, 1, "all")

    def of_pair() -> xb.Value:
        return start(value, PAIR, 2, "pair")

    first, second = (of_all, of_pair) if is_all_first else (of_pair, of_all)
    one = first()
    if not overlap:
        one = xb.all_reduce_done(one)
        with xb.control(after=[one]):
            return one + xb.all_reduce_done(second())
    with xb.control(after=[one]):
        other = second()
    return xb.all_reduce_done(one) + xb.all_reduce_done(other)


def broken() -> xb.ModuleGroup:
    def device(is_all_first: bool) -> xb.Module:
        step = xb.computation(VALUE)(lambda value: program(value, is_all_first, overlap=True))
        return xb.Module("step", step, is_scheduled=True)

    return xb.ModuleGroup({0: device(True), 1: device(False), 2: device(True)})


def fixed() -> xb.ModuleGroup:
    def device() -> xb.Module:
        step = xb.computation(VALUE)(lambda value: program(value, True, overlap=False))
        return xb.Module("step", step, is_scheduled=True)

    return xb.ModuleGroup({0: device(), 1: device(), 2: device()})


STORY = Story(
    title="Overlapping collectives on GPUs hang: two of them share two devices",
    threads=("openxla/xla#19026", "openxla/xla#40656", "openxla/xla#47467"),
    symptom="With overlapping collectives on several streams, a step hangs at some iteration.",
    cause=(
        "A collective keeps its place on a device until all its members run it. Two that share two devices wait for "
        "each other if the devices begin them in different orders."
    ),
    fix=(
        "Do not overlap collectives that share more than one device. XLA's latency-hiding scheduler now keeps them "
        "apart."
    ),
    omitted="Computation between start and done. A device has room for one collective here; GPUs have room for some.",
    hanging=Inputs("any arguments", [[np.full(2, rank, np.float32)] for rank in range(3)]),
    results=[np.full(2, value, np.float32) for value in (4, 4, 5)],
    runtime="shared_devices.toml",
)
