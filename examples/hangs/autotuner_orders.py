"""Two processes compile one function to two orders of its collectives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

WEIGHTS, BIAS = xb.f32[2, 2], xb.f32[2]


def weights_first(weights: xb.Value, bias: xb.Value) -> xb.Value:
    weights = xb.all_reduce(weights, xb.add, channel_id=1, name="weights_sum")
    bias = xb.all_reduce(bias, xb.add, channel_id=2, name="bias_sum")
    return xb.tuple_([weights, bias])


def bias_first(weights: xb.Value, bias: xb.Value) -> xb.Value:
    bias = xb.all_reduce(bias, xb.add, channel_id=2, name="bias_sum")
    weights = xb.all_reduce(weights, xb.add, channel_id=1, name="weights_sum")
    return xb.tuple_([weights, bias])


def compiled(step: Callable[[xb.Value, xb.Value], xb.Value]) -> xb.Module:
    return xb.Module("step", xb.computation(WEIGHTS, BIAS)(step), is_scheduled=True)


def broken() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: compiled(weights_first), 1: compiled(bias_first)})


def fixed() -> xb.ModuleGroup:
    return xb.ModuleGroup({0: compiled(weights_first), 1: compiled(weights_first)})


ARGUMENTS = [[np.full((2, 2), value, np.float32), np.full(2, 10 * value, np.float32)] for value in (1, 2)]
STORY = Story(
    title="A multi-process GPU job hangs on its first step, with one program in all processes",
    threads=("openxla/xla#7716",),
    symptom="Several processes compile the same module. The job hangs on the first execution.",
    cause=(
        "The autotuner measures time, so its results differ between processes. Later passes then schedule the "
        "collectives in different orders. Each process waits in the collective that the other one runs second."
    ),
    fix="Compile once and share the executable, or share the results of the autotuner.",
    omitted="The autotuner. The program starts with the two schedules that it led to.",
    hanging=Inputs("any arguments", ARGUMENTS),
    results=[(np.full((2, 2), 3, np.float32), np.full(2, 30, np.float32))] * 2,
)
