"""Programs of several devices, and an all-reduce that is started, finished, or made at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb

F = xb.f32[4]
ONES = np.ones(4, np.float32)


def module(function: Callable[..., Any], *shapes: Any, replicas: int = 2, partitions: int = 1) -> xb.Module:
    traced = xb.computation(*(shapes or (F,)))(function)
    return xb.Module("m", traced, num_replicas=replicas, num_partitions=partitions)


def group(*functions: Callable[[xb.Value], Any], scheduled: bool = True) -> xb.ModuleGroup:
    """A program for each device; the recorded order binds."""
    return xb.ModuleGroup(
        {
            device: xb.Module(f"d{device}", xb.computation(F)(function), is_scheduled=scheduled)
            for device, function in enumerate(functions)
        }
    )


def started(x: xb.Value, channel: int) -> xb.Value:
    return xb.all_reduce_start(x, xb.add, channel_id=channel, name=f"start{channel}")


def finished(start: xb.Value) -> xb.Value:
    return xb.all_reduce_done(start, name=f"done{start.name[-1]}")


def summed(x: xb.Value, channel: int) -> xb.Value:
    return xb.all_reduce(x, xb.add, channel_id=channel, name=f"sum{channel}")
