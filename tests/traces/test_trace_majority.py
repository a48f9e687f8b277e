"""The device that differs: unequal inputs, devices that a program leaves out, inputs that are meant to differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.traces.questions import odd_one

WHOLE = None
LEFT_OUT = [[0, 1, 2], [3]]


def step(groups: Any = WHOLE) -> xb.Module:
    """Weights that move by the mean of what replicas compute of their own data."""

    @xb.computation(xb.f32[2], xb.f32[2])
    def moved(x: xb.Value, w: xb.Value) -> xb.Value:
        return xb.subtract(w, xb.all_reduce(x * w, xb.add, groups or (), name="total"), name="new")

    with xb.edit(xb.Module("step", moved, num_replicas=4)) as editor:
        editor.rename("parameter.1", "x")
        editor.rename("parameter.2", "w")
    return editor.result


def run(module: xb.Module, stale: int | None = None) -> xb.Trace:
    weights = [np.array([1, 2], np.float32) + (device == stale) for device in range(4)]
    return xb.trace(module, [[np.array([device, 1], np.float32), w] for device, w in enumerate(weights)])


def test_inputs_that_are_not_said_to_differ() -> None:
    found = odd_one(run(step()))
    assert found.odd is not None
    assert found.odd.is_input
    assert found.odd.devices == (), "four devices with four values"
    assert found.inputs == ("x",)


def test_what_follows_from_inputs_that_differ_is_passed_over() -> None:
    found = odd_one(run(step()), ["x"])
    assert found.odd is None
    assert found.inputs == ()
    assert found.values > 4


@pytest.mark.parametrize("stale", range(4))
def test_a_device_with_other_weights(stale: int) -> None:
    trace = run(step(), stale)
    odd = odd_one(trace, ["x"]).odd
    assert odd is not None
    assert odd.devices == (stale,)
    assert odd.is_input
    assert odd.is_meant
    assert trace[odd.common].instruction.name == "w"
    assert (odd.index, odd.gap) == ((0,), 1.0)


def test_a_device_that_the_program_leaves_out() -> None:
    trace = run(step(LEFT_OUT))
    odd = odd_one(trace, ["x"]).odd
    assert odd is not None
    assert odd.devices == (3,)
    assert not odd.is_meant
    assert trace[odd.common].instruction.name == "total"


def test_differences_up_to_eps_count_as_equal() -> None:
    assert odd_one(run(step(), 2), ["x"], eps=10.0).odd is None


def test_a_name_that_is_no_input() -> None:
    with pytest.raises(KeyError, match="nothing"):
        odd_one(run(step()), ["nothing"])


def test_programs_of_several_devices() -> None:
    group = xb.ModuleGroup(dict.fromkeys(range(3), xb.Module("m", xb.computation(xb.f32[2])(lambda x: x + x))))
    trace = xb.trace(group, [[np.full(2, value, np.float32)] for value in (1, 1, 5)])
    odd = odd_one(trace).odd
    assert odd is not None
    assert odd.devices == (2,)
