"""Runs of programs whose results may be undefined on some devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.graph import Module
from ...properties.undefined import Devices, undefined_on


def run(module: Module, arguments: Sequence[Sequence[Any]], **options: Any) -> list[Any]:
    """The results of a program on each device, None in place of what is undefined there.

    Takes what `xb.execute` takes. A result that an op computes from an undefined value is given as it came: with
    `strict=True` the run tells that use.

    >>> import numpy as np, xbuild as xb
    >>> grid = xb.shard.grid([2])
    >>> def moved(x):
    ...     return xb.shard.shift(x, mesh=grid, grid_axes=[0], shift_axis=0, offset=1)
    >>> module = xb.Module("moved", xb.computation(xb.f32[1])(moved), num_partitions=2)
    >>> xb.shard.run(module, [[np.float32([3])], [np.float32([4])]])
    [None, array([3.], dtype=float32)]
    """
    from ...running import execute

    leaves = undefined_on(module.entry.root)
    results = execute(module, [list(each) for each in arguments], **options)
    return [_masked(value, leaves, device) for device, value in enumerate(results)]


def _masked(value: Any, leaves: tuple[Devices, ...], device: int) -> Any:
    if isinstance(value, tuple) and len(value) == len(leaves):
        return tuple(None if device in each else one for one, each in zip(value, leaves, strict=True))
    return None if device in leaves[0] else value
