"""Promises of annotations: parameters and infeeds equal on several devices, loops with equal trip counts.

A run does not enforce them, and the check for deadlock does not rely on them; a strict run verifies those of
parameters.

Source: XLA's hlo_replication_analysis.cc and hlo_sharding.h.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from shape_inference import AnyShape, TupleShape

from ...core.graph import Instruction
from ...properties.mesh import Mesh
from ...properties.trip_counts import noted_trips
from ...properties.variances import Type, Variance, flat, type_of
from .agreement import Agreement, Labels
from .analysis import Reading
from .replication import Replication

_TILES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")
_LAST = re.compile(r"last_tile_dims=\{([\w, ]*)\}")


def has_known_trips(loop: Instruction) -> bool:
    """Whether XLA has annotated the trip count of a loop."""
    return noted_trips(loop) is not None


def promised(of: Replication, instruction: Instruction, mesh: Mesh | None = None) -> Reading | None:
    """The reading of a parameter or an infeed that annotations promise; None where there is no promise.

    `sharding` says which partitions of one replica hold equal leaves, `parameter_replication` which leaves are equal on
    all replicas, and a type on a mesh along which axes a leaf is equal.
    """
    stated = None if mesh is None else type_of(instruction)
    if mesh is not None and stated is not None and fits(stated, instruction.shape):
        labels = [_along(of, mesh, leaf) for leaf in flat(stated)]
        return _shaped(instruction.shape, iter(map(Agreement, labels)).__next__)
    notes = instruction.annotations
    count = _leaves(instruction.shape)
    shardings = _listed(str(notes["sharding"]), count) if "sharding" in notes else None
    flags = str(notes.get("parameter_replication", "")).strip("{} ").split(",")
    if shardings is None and len(flags) != count:
        return None
    labels = [
        _labels(of, shardings[n] if shardings else "", len(flags) == count and flags[n].strip() == "true")
        for n in range(count)
    ]
    return _shaped(instruction.shape, iter(map(Agreement, labels)).__next__)


def fits(stated: Type, shape: AnyShape) -> bool:
    """Whether a type is nested as a shape is."""
    if not isinstance(shape, TupleShape):
        return not isinstance(stated, tuple)
    return isinstance(stated, tuple) and len(stated) == len(shape.elements) and all(map(fits, stated, shape.elements))


def _along(of: Replication, mesh: Mesh, stated: Variance) -> Labels:
    """The labels of a type on a mesh: devices agree that differ only along axes where the value is equal."""
    kept = [axis for axis in mesh.axes if axis in stated.varying | stated.unreduced]
    places = [mesh.coordinates(device) if device < mesh.num_devices else {} for device in of.devices]
    return of.partitions.by(tuple(place.get(axis, -1 - n) for axis in kept) for n, place in enumerate(places))


def _leaves(shape: AnyShape) -> int:
    return sum(map(_leaves, shape.elements)) if isinstance(shape, TupleShape) else 1


def _shaped(shape: AnyShape, leaf: object) -> Reading:
    if isinstance(shape, TupleShape):
        return tuple(_shaped(each, leaf) for each in shape.elements)
    return leaf()  # type: ignore[operator]


def _listed(text: str, count: int) -> list[str] | None:
    """The sharding of each leaf; None where their number differs."""
    inner = text.strip()[1:-1].strip()
    if not inner.startswith("{"):
        return [inner] * count
    found, depth, begin = list[str](), 0, 0
    for place, letter in enumerate(inner):
        if letter == "{" and not depth:
            begin = place + 1
        depth += (letter == "{") - (letter == "}")
        if letter == "}" and not depth:
            found.append(inner[begin:place])
    return found if len(found) == count else None


def _labels(of: Replication, sharding: str, is_replicated: bool) -> Labels:
    parts = tiles_of(sharding, of.num_partitions)
    return of.partitions.by((0 if is_replicated else replica, parts[partition]) for replica, partition in of.ids.ids)


def tiles_of(sharding: str, count: int) -> Sequence[int]:
    """The number of the tile that each partition holds; a tile for each where the sharding is not understood."""
    if sharding.startswith("replicated"):
        return [0] * count
    tiles = _TILES.search(sharding)
    if tiles is None or "mesh" in sharding:
        return range(count)
    dims, order = _numbers(tiles[1]), _order(tiles)
    if len(order) != count or int(np.prod(dims)) != count:
        return range(count)
    held = np.empty(dims, int)
    held[...] = np.arange(count).reshape(dims)
    for axis, kind in enumerate(_last(sharding), len(dims) - len(_last(sharding))):
        if kind == "replicated":
            held = np.broadcast_to(held.take([0], axis), dims)
    numbers = dict(zip(order, held.ravel().tolist(), strict=True))
    return [numbers.get(each, count + each) for each in range(count)]


def _last(sharding: str) -> list[str]:
    """The kinds of the last tile dimensions, which are no dimensions of the array."""
    found = _LAST.search(sharding)
    if found is not None:
        return [each.strip() for each in found[1].split(",")]
    return ["replicated"] if "last_tile_dim_replicate" in sharding else []


def _order(tiles: re.Match[str]) -> list[int]:
    """The devices in the order of the tiles."""
    if tiles[4] is not None:
        return [*_numbers(tiles[4])]
    sizes = _numbers(tiles[2])
    numbers = np.arange(int(np.prod(sizes))).reshape(sizes)
    return [int(each) for each in (numbers.transpose(_numbers(tiles[3])) if tiles[3] else numbers).ravel()]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))
