"""Local shapes: the extents and positions of the shard that each device holds, by each rule for uneven extents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from shape_inference import Shape, refuse

from ..properties.mesh import Mesh
from .grids import halos_of, offsets_of
from .sharding import Axis, Sharding

Uneven: TypeAlias = Literal["last_larger", "padded"]
"""The shard dialect makes the last parts one element larger; GSPMD gives all parts ceil(extent / n) elements."""


def part_sizes(extent: int, parts: int, uneven: Uneven = "last_larger") -> tuple[int, ...]:
    """The extents of the parts of a dimension.

    `last_larger` is the shard dialect's rule. With `padded`, GSPMD's, parts have ceil(extent / parts) elements until
    none are left; the last parts are padded.

    >>> part_sizes(14, 4), part_sizes(14, 4, "padded")
    ((3, 3, 4, 4), (4, 4, 4, 2))

    Source: MLIR, shard dialect, shard.shard_shape; GSPMD, section 4.
    """
    if uneven == "padded":
        size = -(-extent // parts)
        return tuple(max(0, min(size, extent - number * size)) for number in range(parts))
    rest = extent % parts
    return tuple(extent // parts + (number >= parts - rest) for number in range(parts))


def shard_shape(sharding: Sharding, dims: Sequence[int], device: int) -> tuple[int, ...]:
    """The extents of the part that a device holds, with halos and offsets, by the rules of the shard dialect.

    Raises: rank_mismatch if the sharding splits a dimension that the array does not have; dimension_mismatch if offsets
    do not end at the extent.

    >>> import xbuild as xb
    >>> found = xb.shard.sharding(xb.shard.grid([4]), [[0]], halo_sizes=[2, 1])
    >>> shard_shape(found, [8, 16], 0)
    (5, 16)

    Source: MLIR, shard dialect, shard.shard_shape.
    """
    _check_rank(sharding, len(dims))
    offsets, halos = offsets_of(sharding), halos_of(sharding)
    found = []
    for number, extent in enumerate(dims):
        sizes = _sizes(extent, sharding.dim(number).parts, offsets.get(number), number)
        place = place_along(sharding.mesh, sharding.dim(number).axes, device)
        found.append(sizes[place] + sum(halos.get(number, (0, 0))))
    return tuple(found)


def _sizes(extent: int, parts: int, offsets: tuple[int, ...] | None, dim: int) -> tuple[int, ...]:
    if offsets is None:
        return part_sizes(extent, parts)
    if offsets[-1] != extent:
        message = (
            f"offsets {[*offsets]} of dimension {dim} end at {offsets[-1]}; expected the extent of the dimension, "
            f"{extent}"
        )
        refuse("dimension_mismatch", message)
    return tuple(high - low for low, high in pairwise(offsets))


def _check_rank(sharding: Sharding, rank: int) -> None:
    cut = max((number for number, dim in enumerate(sharding.dims) if dim.axes), default=-1)
    if cut >= rank:
        refuse("rank_mismatch", f"the sharding splits dimension {cut}, but the array has {rank} dimensions")


def place_along(mesh: Mesh, axes: Sequence[Axis], device: int) -> int:
    """The number of the part that a device holds of a dimension that these axes split."""
    places, found = mesh.coordinates(device), 0
    for axis in axes:
        inside = places[axis.name] // (mesh.size(axis.name) // axis.end) % axis.size
        found = found * axis.size + inside
    return found


def local_shape(sharding: Sharding, shape: Shape) -> Shape:
    """The shape of the part on each device; uneven parts are padded to one size, as in GSPMD.

    >>> import xbuild as xb
    >>> from xbuild.sharding.hlo_text import shardings
    >>> local_shape(shardings("{devices=[4,1]<=[4]}"), xb.f32[14, 3])
    f32[4,3]

    Source: GSPMD, section 4.
    """
    _check_rank(sharding, shape.rank)
    return Shape(shape.dtype, tuple(-(-extent // sharding.dim(k).parts) for k, extent in enumerate(shape.dims)))


def local_index(sharding: Sharding, dims: Sequence[int], device: int) -> tuple[slice, ...]:
    """The range of a device's part in the array, without halos: by offsets, else by equal or padded parts."""
    _check_rank(sharding, len(dims))
    offsets = offsets_of(sharding)
    found = []
    for number, extent in enumerate(dims):
        parts = sharding.dim(number).parts
        if number in offsets:
            bounds: Sequence[int] = offsets[number]
        else:
            bounds = np.minimum(np.arange(parts + 1) * -(-extent // parts), extent).tolist()
        place = place_along(sharding.mesh, sharding.dim(number).axes, device)
        found.append(slice(bounds[place], bounds[place + 1]))
    return tuple(found)
