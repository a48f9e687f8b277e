"""States of a resharding: which parts of axes cut each dimension, and the steps that lead from one to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from attrs import evolve, field, frozen

from ..axis import Axis, count, merged
from ..sharding import Sharding

Axes: TypeAlias = tuple[Axis, ...]
Op: TypeAlias = str
"""all_slice, collective_permute, all_to_all, all_gather, all_reduce, reduce_scatter, to_unreduced or pad."""


@frozen
class State:
    """The parts of axes that cut each dimension, the extents with their padding, and the axes of partial sums."""

    dims: tuple[Axes, ...]
    extents: tuple[int, ...]
    unreduced: Axes = ()
    used: frozenset[Axis] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "used", frozenset(axis for axes in self.dims for axis in axes) | {*self.unreduced})

    @property
    def tiles(self) -> tuple[Axes, ...]:
        """The axes along which devices hold different parts, whether of the array or of a sum."""
        return *self.dims, self.unreduced

    @property
    def local_dims(self) -> tuple[int, ...]:
        """The extents of a device's part."""
        return tuple(extent // count(axes) for extent, axes in zip(self.extents, self.dims, strict=True))

    @property
    def elements(self) -> int:
        """The elements of a device's part."""
        return math.prod(self.local_dims)

    def holds(self, dim: int, axes: Iterable[Axis]) -> bool:
        """Whether a dimension can be cut by more axes into equal parts."""
        return self.local_dims[dim] % count(axes) == 0

    def having(self, *changes: tuple[int, Axes]) -> State:
        """The state with other axes on some dimensions."""
        dims = list(self.dims)
        for dim, axes in changes:
            dims[dim] = axes
        return evolve(self, dims=tuple(dims))


@frozen
class Step:
    """A step of a plan: the op, the axes it goes over, its dimensions, and the state after it.

    `dimensions` are that which is cut or gathered; of an all_to_all that which is split, then that which is joined.
    `bytes` are those that a device sends.
    """

    op: Op
    axes: Axes
    dimensions: tuple[int, ...]
    after: State
    bytes: int = 0

    @property
    def is_local(self) -> bool:
        """Whether no device sends anything."""
        return self.op in ("all_slice", "to_unreduced", "pad")

    def __str__(self) -> str:
        names = ", ".join(_spelled(axis) for axis in merged(self.axes))
        if self.op == "pad":
            (dim,) = self.dimensions
            return f"pad dimension {dim} to {self.after.extents[dim]}"
        where = {1: "dimension {}", 2: "from dimension {1} to dimension {0}"}.get(len(self.dimensions), "")
        words = [self.op, f"over {names}" if names else "", where.format(*self.dimensions)]
        return " ".join(filter(None, words)) + (f": {self.bytes} bytes" if self.bytes else "")


def _spelled(axis: Axis) -> str:
    return axis.name if axis.pre_size == 1 else f"{axis.name}:({axis.pre_size}){axis.size}"


def padded(extent: int, parts: int) -> int:
    """An extent with the padding at its end that makes all parts of one size.

    Source: XLA, spmd_partitioner_util.cc (GetPaddedShapeForUnevenPartitioning).
    """
    return -(-extent // parts) * parts


def cuts_of(axes: Iterable[Axis], is_prime: bool) -> dict[str, list[int]] | None:
    """For each axis the boundaries at which its parts begin or end; None where they do not divide each other."""
    found: dict[str, set[int]] = {}
    for axis in axes:
        found.setdefault(axis.name, set()).update((axis.pre_size, axis.end))
    cuts = {name: sorted(each) for name, each in found.items()}
    for each in cuts.values():
        if any(high % low for low, high in pairwise(each)):
            return None
    return {name: _with_primes(each) for name, each in cuts.items()} if is_prime else cuts


def _with_primes(cuts: list[int]) -> list[int]:
    found = [cuts[0]]
    for cut in cuts[1:]:
        rest = cut // found[-1]
        while rest > 1:
            prime = next((each for each in range(2, math.isqrt(rest) + 1) if rest % each == 0), rest)
            found.append(found[-1] * prime)
            rest //= prime
    return found


def pieces(axes: Iterable[Axis], cuts: dict[str, list[int]]) -> Axes:
    """Axes in the parts that the boundaries make of them; parts of size 1 are left out."""
    return tuple(_pieces(axes, cuts))


def _pieces(axes: Iterable[Axis], cuts: dict[str, list[int]]) -> Iterator[Axis]:
    for axis in axes:
        inside = [cut for cut in cuts[axis.name] if axis.pre_size <= cut <= axis.end]
        for low, high in pairwise(inside):
            yield Axis(axis.name, high // low, low)


def state_of(sharding: Sharding, shape: tuple[int, ...], cuts: dict[str, list[int]]) -> State:
    """The state of an array of this shape with GSPMD's padding."""
    dims = tuple(pieces(sharding.dim(number).axes, cuts) for number in range(len(shape)))
    extents = tuple(padded(extent, count(axes)) for extent, axes in zip(shape, dims, strict=True))
    return State(dims, extents, tuple(sorted(pieces(sharding.unreduced, cuts))))
