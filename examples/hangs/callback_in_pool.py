"""A callback that calls JAX needs a second thread of the pool, in which another device waits."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


@xb.custom_call_target("examples_hangs_normalize")
def normalize(value: Any) -> Any:
    """What the callback computes; the one of the threads calls JAX for it."""
    return value / value.max()


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        value = xb.custom_call(value, "examples_hangs_normalize", VALUE, has_side_effect=True, name="pure_callback")
        return xb.all_reduce(value, xb.add, name="psum")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=2)


def fixed() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        value = value / xb.reduce(value, -np.inf, xb.maximum)
        return xb.all_reduce(value, xb.add, name="psum")

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=2)


STORY = Story(
    title="jax.pure_callback hangs on CPU if the function calls JAX",
    threads=("jax-ml/jax#24255", "jax-ml/jax#25861", "jax-ml/jax#5934", "PyAutoLabs/PyAutoFit#1530"),
    symptom="A program with a callback that uses jax.numpy hangs, more often on machines with few cores.",
    cause=(
        "The callback holds a thread of the runtime and waits for an operation that needs another one. If the other "
        "threads wait, too, no thread is left."
    ),
    fix="Use NumPy in the callback, or compute in the program itself.",
    omitted=(
        "What else the pool runs. In a run of xbuild, the function does not call JAX: the record says that it needs a "
        "second thread."
    ),
    hanging=Inputs("any arguments", [[np.array([1, 2], np.float32)], [np.array([3, 4], np.float32)]]),
    results=[np.array([1.25, 2], np.float32)] * 2,
    runtime="callback_in_pool.toml",
)
