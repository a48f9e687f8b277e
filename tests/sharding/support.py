"""What the tests of shardings share: one op on the devices of a grid, and groups from first principles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute


def on_grid(
    function: Callable[[xb.Value], Any], mesh: xb.Mesh, given: Sequence[Any], *, strict: bool = True
) -> list[Any]:
    """The results of a function of one value on each device."""
    arrays = [np.asarray(each) for each in given]
    shape = xb.Shape(arrays[0].dtype, arrays[0].shape)
    module = xb.Module("on_grid", xb.computation(shape)(function), num_partitions=mesh.num_devices)
    verdict = xb.check(module)
    assert verdict.kind == "ok", verdict
    return execute(module, [[each] for each in arrays], strict=strict)


def group_of(sizes: Sequence[int], axes: Sequence[int], device: int) -> list[int]:
    """The group of a device by counting: all coordinates along the axes, the first axis outermost."""
    place = list(np.unravel_index(device, sizes))
    found = []
    for coordinates in itertools.product(*(range(sizes[axis]) for axis in axes)):
        for axis, each in zip(axes, coordinates, strict=True):
            place[axis] = each
        found.append(int(np.ravel_multi_index(place, sizes)))
    return found
