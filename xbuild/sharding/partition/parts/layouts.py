"""Shardings as the partitioner has them: closed, with an entry for each dimension; extents of parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from shape_inference import Shape, TupleShape
from shape_inference.types import Dims

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis, count, merged
from ...placement import Placement
from ...planning.plan import Costs, planned
from ...planning.states import padded
from ...sharding import DimSharding, Sharding, cut
from ...stored import sharding_of

Axes: TypeAlias = tuple[Axis, ...]
Tree: TypeAlias = Any
"""One thing for an array, or a tuple of trees for a tuple."""


def closed(sharding: Sharding, rank: int) -> Sharding:
    """The sharding by its axes alone: no open dimensions, no priorities, no axes of size 1."""
    dims = (merged(_wide(sharding.dim(number).axes)) for number in range(rank))
    return cut(sharding.mesh, dims, sorted(_wide(sharding.unreduced)))


def _wide(axes: Iterable[Axis]) -> Iterator[Axis]:
    return (axis for axis in axes if axis.size > 1)


@functools.lru_cache(maxsize=4096)
def whole_on(mesh: Mesh, rank: int) -> Sharding:
    """Every device holds the whole array."""
    return Sharding(mesh, (DimSharding(),) * rank)


def local_dims(sharding: Sharding, dims: Dims) -> Dims:
    """The extents of a device's part, with GSPMD's padding."""
    pairs = zip(dims, sharding.dims, strict=True)
    return tuple(padded(extent, parts := count(dim.axes)) // parts for extent, dim in pairs)


def is_whole(sharding: Sharding) -> bool:
    """Whether nothing is cut, and nothing is a part of a sum."""
    return sharding.is_replicated


@functools.lru_cache(maxsize=1 << 14)
def distance(source: Sharding, target: Sharding, shape: Shape) -> int:
    """The bytes that a device sends to bring an array from one sharding to another."""
    return 0 if source == target else planned(source, target, shape.dims, shape.dtype, _QUICK).bytes


_QUICK = Costs()


def bytes_of(shape: Shape) -> int:
    return math.prod(shape.dims) * max(1, shape.dtype.bits // 8)


def stated(instruction: Instruction, mesh: Mesh) -> Tree:
    """What an instruction is annotated with, nested as its shape: a Sharding for each array, None where none is."""
    found = sharding_of(instruction, mesh)
    if not isinstance(instruction.shape, TupleShape):
        return _one(found, instruction.shape, mesh)
    leaves = iter(found if isinstance(found, tuple) else ())
    return _nested(instruction.shape, leaves, mesh)


def _nested(shape: Any, leaves: Iterator[Any], mesh: Mesh) -> Tree:
    if isinstance(shape, TupleShape):
        return tuple(_nested(each, leaves, mesh) for each in shape.elements)
    return _one(next(leaves, None), shape, mesh)


def _one(found: Any, shape: Any, mesh: Mesh) -> Sharding | None:
    if not isinstance(shape, Shape) or isinstance(found, Placement) or found is None:
        is_one = isinstance(found, Placement) and isinstance(shape, Shape)
        return whole_on(mesh, shape.rank) if is_one and found.kind != "unknown" else None
    assert isinstance(found, Sharding)
    return whole_on(mesh, shape.rank) if shape.is_dynamic else closed(found, shape.rank)


def mapped(function: Any, *trees: Tree) -> Tree:
    """`function` of the leaves of trees that are nested alike."""
    if isinstance(trees[0], tuple):
        return tuple(mapped(function, *each) for each in zip(*trees, strict=True))
    return function(*trees)


def leaves_of(tree: Tree) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if isinstance(tree, tuple):
        for each in tree:
            yield from leaves_of(each)
    else:
        yield tree


def axes_used(shardings: Sequence[Sharding]) -> Axes:
    return tuple(axis for sharding in shardings for axis in sharding.cut_axes)
