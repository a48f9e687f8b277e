"""The communicator of a pair is split from that of all devices, and the devices outside the pair take no part."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


def move(value: xb.Value, groups: list[list[int]], name: str) -> xb.Value:
    return xb.collective_broadcast(value, replica_groups=groups, name=name)


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        value = move(value, [[0, 1], [2], [3]], "permute_0_1")
        value = move(value, [[2, 3], [0], [1]], "permute_2_3")
        return move(value, [[1, 2], [0], [3]], "permute_1_2")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=4)


def fixed() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        first = xb.collective_permute(value, [(0, 1)], name="permute_0_1")
        second = xb.collective_permute(first, [(2, 3)], name="permute_2_3")
        return first + xb.collective_permute(second, [(1, 2)], name="permute_1_2")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=4)


STORY = Story(
    title="Collective permutes on ROCm hang in AcquireGpuClique: a device is a clique of its own",
    threads=("openxla/xla#44530",),
    symptom="Three permutes between different pairs of devices hang with connected components as cliques.",
    cause=(
        "A device outside a pair is a clique of its own, requested with other device groups each time, which XLA "
        "refuses. That device leaves, and the others wait for it in the split."
    ),
    fix="Use one clique of all devices, or skip the check of the groups for single devices, as XLA's fix does.",
    omitted=(
        "The refusal: here a device with a group of its own takes no part in the split. Broadcasts of pairs stand for "
        "the permutes."
    ),
    hanging=Inputs("any arguments", [[np.full(2, rank + 1, np.float32)] for rank in range(4)]),
    results=[np.full(2, value, np.float32) for value in (0, 1, 0, 0)],
    runtime="singleton_cliques.toml",
)
