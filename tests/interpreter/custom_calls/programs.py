"""Programs with custom calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xbuild as xb

X = [1.0, 2.0, 3.0]
Function = Callable[..., Any]


def program(function: Function | None, shape: Any = None, **attributes: Any) -> xb.Computation:
    """A call of the function on f32[3]."""
    if function is not None:
        xb.custom_call_target("ours")(function)
    shape = xb.f32[3] if shape is None else shape
    return xb.computation(xb.f32[3])(lambda x: xb.custom_call(x, "ours", shape, **attributes))


def meeting(function: Function, *, devices: int = 2, **attributes: Any) -> xb.Module:
    """Each device calls the function with a number of its own, then all meet."""
    xb.custom_call_target("ours")(function)

    @xb.computation(xb.s32[()], xb.f32[3])
    def entry(number: xb.Value, x: xb.Value) -> xb.Value:
        made = xb.custom_call((number, x), "ours", xb.f32[3], name="cb", **attributes)
        return xb.cross_replica_sum(made, name="total")

    return xb.Module("meeting", entry, num_replicas=devices)


def given(devices: int = 2) -> list[list[Any]]:
    return [[n, X] for n in range(devices)]
