"""Meshes and shardings by chance: sub-axes, uneven extents, partial results, devices in any order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from attrs import evolve

import xbuild as xb
from xbuild.sharding.sharding import Axis, Placement, Sharding, shard_dims
from xbuild.sharding.stated_shardings import with_shardings

MESHES = ([1], [2], [3], [4], [5], [6], [7], [8], [2, 2], [2, 3], [3, 2], [4, 2], [2, 4], [2, 2, 2])


def random_mesh(chance: random.Random) -> xb.Mesh:
    sizes = chance.choice(MESHES)
    ids = list(range(int(np.prod(sizes))))
    if chance.random() < 0.2:
        chance.shuffle(ids)
    return xb.Mesh(sizes, device_ids=ids)


def random_sharding(chance: random.Random, mesh: xb.Mesh, rank: int, *, unreduced: float = 0.0) -> Sharding:
    """Each axis, or its halves, cuts some dimension, waits for its sum, or is not used."""
    axes = [part for name, size in mesh.sizes for part in _parts(chance, name, size)]
    chance.shuffle(axes)
    dims: list[list[Axis]] = [[] for _ in range(rank)]
    partial = []
    for axis in axes:
        draw = chance.random()
        if draw < 0.6 and rank:
            chance.choice(dims).append(axis)
        elif draw < 0.6 + unreduced:
            partial.append(axis)
    return shard_dims(mesh, dims, partial)


def _parts(chance: random.Random, name: str, size: int) -> list[Axis]:
    if size in (4, 6, 8) and chance.random() < 0.4:
        return [Axis(name, 2), Axis(name, size // 2, 2)]
    return [Axis(name, size)] if size > 1 else []


def sharded(
    chance: random.Random, module: xb.Module, mesh: xb.Mesh, share: float = 1.0, *, places: bool = True
) -> xb.Module:
    """The module in which a share of the arrays has a sharding by chance; with `places` a few of them a single device.

    What is placed on a device already stays there.
    """
    found: dict[Any, Any] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            if "sharding" in instruction.annotations:
                continue
            if isinstance(instruction.shape, xb.Shape) and chance.random() < share:
                partial = 0.1 if instruction.shape.dtype.is_integer else 0.0
                made = random_sharding(chance, mesh, instruction.shape.rank, unreduced=partial)
                has_zero = instruction.shape.dtype.name != "f8e8m0fnu"
                found[instruction] = made if has_zero else evolve(made, unreduced=())
                if places and chance.random() < 0.03:
                    found[instruction] = Placement("maximal", chance.randrange(mesh.num_devices))
    return with_shardings(module, found)
