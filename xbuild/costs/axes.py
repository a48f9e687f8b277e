"""Axes of a mesh, inferred from device groups: how groups lie among the devices, and what to call that."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from attrs import frozen

from ..properties.device_groups import Groups
from ..properties.mesh import Mesh

Digits: TypeAlias = tuple[tuple[int, int], ...]
"""(size, stride) of each run of devices that a group takes, the smallest stride first."""


@functools.lru_cache(maxsize=1024)
def digits_of(groups: Groups) -> Digits | None:
    """How the groups lie among the devices, where all lie alike in a grid; None where they do not.

    >>> digits_of(((0, 2), (1, 3)))
    ((2, 2),)
    """
    if len({len(group) for group in groups}) != 1:
        return None
    table = np.sort(np.array(groups, dtype=np.int64), axis=1)
    apart = table - table[:, :1]
    if (apart != apart[0]).any():
        return None
    digits = _digits(apart[0])
    is_aligned = digits is not None and all(
        (table[:, 0] // stride % size == 0).all() for size, stride in digits if size > 1
    )
    return digits if is_aligned else None


def _digits(ids: np.ndarray) -> Digits | None:
    """The runs of ascending ids that begin with 0; None where they are no grid."""
    found: list[tuple[int, int]] = []
    while len(ids) > 1:
        stride = int(ids[1])
        size = int(np.argmin(np.append(ids == np.arange(len(ids)) * stride, False)))
        if len(ids) % size or (ids.reshape(-1, size) != ids[::size, None] + np.arange(size) * stride).any():
            return None
        found.append((size, stride))
        ids = ids[::size]
    return tuple(found)


@frozen
class Axes:
    """A mesh and its axes as (name, size, stride); without a mesh groups are told by their size alone."""

    mesh: Mesh | None
    places: tuple[tuple[str, int, int], ...]

    def named(self, digits: Digits | None, size: int) -> str:
        """`axis b`, `axes a, b`, or what is known where no axes fit."""
        if size == 1:
            return "no axis"
        names = self._covered(digits) if digits is not None else None
        if names is None:
            return f"{size} devices"
        return f"{'axis' if len(names) == 1 else 'axes'} {', '.join(names)}"

    def _covered(self, digits: Digits) -> list[str] | None:
        """The axes that lie in the runs, outermost first; None where a run covers part of an axis."""
        ranges = [(stride, stride * size) for size, stride in digits]
        inside = [
            (name, size)
            for name, size, stride in self.places
            if size > 1 and any(low <= stride and stride * size <= high for low, high in ranges)
        ]
        whole = math.prod(size for size, _ in digits)
        return [name for name, _ in inside] if math.prod(size for _, size in inside) == whole else None


def axes_of_mesh(mesh: Mesh) -> Axes:
    """The axes of a mesh that is given."""
    strides = [math.prod(mesh.shape[place + 1 :]) for place in range(len(mesh.shape))]
    return Axes(mesh, tuple((name, size, stride) for (name, size), stride in zip(mesh.sizes, strides, strict=True)))


def inferred_axes(all_digits: Iterable[Digits], num_devices: int) -> Axes:
    """The coarsest mesh whose axes the groups lie along, named a, b, c from the outermost; none where groups cross.

    >>> print(inferred_axes([((8, 1),), ((64, 8),)], 512).mesh)
    Mesh(a=64, b=8)
    """
    cuts = {1, num_devices} | {
        edge for digits in all_digits for size, stride in digits for edge in (stride, stride * size)
    }
    ends = sorted(cuts, reverse=True)
    if len(ends) - 1 > 26 or any(high % low for high, low in pairwise(ends)):
        return Axes(None, ())
    sizes = [high // low for high, low in pairwise(ends)] or [1]
    return axes_of_mesh(Mesh(dict(zip("abcdefghijklmnopqrstuvwxyz", sizes, strict=False))))
