"""The steps that are possible in a state of a resharding, towards a target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from ...costs.algorithms import algorithms
from ...properties.mesh import Mesh
from ..axis import count
from .places import Table, index_along, moves
from .states import Axes, Op, State, Step


@frozen
class Site:
    """What all states of a resharding share: the mesh, the target, and the bytes of an element."""

    mesh: Mesh
    target: State
    width: int

    def step(self, op: Op, axes: Axes, dimensions: tuple[int, ...], before: State, after: State) -> Step:
        """The step with the bytes that a device sends."""
        return Step(op, axes, dimensions, after, self._bytes(op, axes, before, after))

    def _bytes(self, op: Op, axes: Axes, before: State, after: State) -> int:
        if op in ("all_slice", "to_unreduced", "pad"):
            return 0
        whole = (after if op == "all_gather" else before).elements * self.width
        if op == "collective_permute":
            is_moved = any(source != target for source, target in moves(self.mesh, before.tiles, after.tiles))
            return whole if is_moved else 0
        return algorithms(op, count(axes), whole)[0].link_bytes

    def lacking(self, start: State) -> float:
        """How many elements of its part of the target a device lacks, on the average; 0 where paddings differ."""
        shared = np.ones(self.mesh.num_devices)
        for dim, extent in enumerate(start.extents):
            if extent != self.target.extents[dim]:
                return 0.0
            ranges = [(_starts(self.mesh, state, dim), state.local_dims[dim]) for state in (start, self.target)]
            (one, size), (other, wanted) = ranges
            shared *= np.maximum(np.minimum(one + size, other + wanted) - np.maximum(one, other), 0)
        return float(self.target.elements - shared.mean())

    # Each function below gives one kind of step.

    def slices(self, state: State) -> Iterator[Step]:
        """Cut a dimension by an axis of the target that is free."""
        free = [axis for axes in self.target.dims for axis in axes if axis not in state.used]
        for axis in free:
            for dim, axes in enumerate(state.dims):
                if state.holds(dim, (axis,)):
                    yield self.sliced(state, dim, (axis,), axes)

    def sliced(self, state: State, dim: int, more: Axes, axes: Axes) -> Step:
        return self.step("all_slice", more, (dim,), state, state.having((dim, axes + more)))

    def gathers(self, state: State) -> Iterator[Step]:
        """Gather the innermost axes of a dimension."""
        for dim, axes in enumerate(state.dims):
            for start in range(len(axes)):
                yield self.gathered(state, dim, start)

    def gathered(self, state: State, dim: int, start: int) -> Step:
        axes = state.dims[dim]
        return self.step("all_gather", axes[start:], (dim,), state, state.having((dim, axes[:start])))

    def exchanges(self, state: State) -> Iterator[Step]:
        """Move the innermost axes of one dimension to another."""
        for source, axes in enumerate(state.dims):
            for start in range(len(axes)):
                for dim in range(len(state.dims)):
                    if dim != source and state.holds(dim, axes[start:]):
                        yield self.exchanged(state, source, start, dim)

    def exchanged(self, state: State, source: int, start: int, dim: int) -> Step:
        axes = state.dims[source]
        after = state.having((source, axes[:start]), (dim, state.dims[dim] + axes[start:]))
        return self.step("all_to_all", axes[start:], (dim, source), state, after)

    def permutes(self, state: State) -> Iterator[Step]:
        """Cut every dimension into as many parts by other axes: those of the target, or with two axes swapped."""
        if towards := self.towards(state):
            yield self.permuted(state, towards)
        placed = [(dim, place) for dim, axes in enumerate(state.dims) for place in range(len(axes))]
        for number, (dim, place) in enumerate(placed):
            axis = state.dims[dim][place]
            for other in placed[number + 1 :]:
                if state.dims[other[0]][other[1]].size == axis.size:
                    yield self.permuted(state, _swapped(state, (dim, place), other))
            for axes in self.target.dims:
                for free in axes:
                    if free not in state.used and free.size == axis.size:
                        yield self.permuted(state, _replaced(state, dim, place, (free,)))

    def permuted(self, state: State, after: State) -> Step:
        changed = [axis for old, new in zip(state.dims, after.dims, strict=True) if old != new for axis in (*old, *new)]
        return self.step("collective_permute", tuple(dict.fromkeys(changed)), (), state, after)

    def towards(self, state: State) -> State | None:
        """Every dimension by the target's outermost axes that cut it into as many parts; None where it is so."""
        found: list[Axes] = []
        for axes, wanted in zip(state.dims, self.target.dims, strict=True):
            heads = (wanted[:size] for size in range(len(wanted) + 1))
            found.append(next((head for head in heads if count(head) == count(axes)), axes))
        flat = [axis for axes in found for axis in axes]
        after = evolve(state, dims=tuple(found))
        is_clear = len(set(flat)) == len(flat) and not {*flat} & {*state.unreduced}
        return after if is_clear and after != state else None

    def reductions(self, state: State) -> Iterator[Step]:
        """Reduce partial sums, whole or into a dimension; or make partial sums of equal values."""
        done = tuple(axis for axis in state.unreduced if axis not in self.target.unreduced)
        if done:
            yield self.reduced(state, done)
        for axis in done:
            for dim in range(len(state.dims)):
                if state.holds(dim, (axis,)):
                    yield self.scattered(state, dim, (axis,))
        for dim in range(len(state.dims)):
            several = self._several(state, dim)
            if len(several) > 1:
                yield self.scattered(state, dim, several)
        missing = tuple(axis for axis in self.target.unreduced if axis not in state.used)
        if missing:
            after = evolve(state, unreduced=tuple(sorted((*state.unreduced, *missing))))
            yield self.step("to_unreduced", missing, (), state, after)

    def _several(self, state: State, dim: int) -> Axes:
        """The axes of partial sums that the target wants next on a dimension."""
        axes, wanted = state.dims[dim], self.target.dims[dim]
        found: Axes = ()
        if wanted[: len(axes)] == axes:
            for axis in wanted[len(axes) :]:
                if axis not in state.unreduced or not state.holds(dim, (*found, axis)):
                    break
                found += (axis,)
        return found

    def reduced(self, state: State, axes: Axes) -> Step:
        rest = tuple(axis for axis in state.unreduced if axis not in axes)
        return self.step("all_reduce", axes, (), state, evolve(state, unreduced=rest))

    def scattered(self, state: State, dim: int, axes: Axes) -> Step:
        rest = tuple(axis for axis in state.unreduced if axis not in axes)
        after = evolve(state.having((dim, state.dims[dim] + axes)), unreduced=rest)
        return self.step("reduce_scatter", axes, (dim,), state, after)

    def pads(self, state: State) -> Iterator[Step]:
        """Change the padding of a dimension that is not cut."""
        for dim, extent in enumerate(self.target.extents):
            if not state.dims[dim] and state.extents[dim] != extent:
                extents = (*state.extents[:dim], extent, *state.extents[dim + 1 :])
                yield self.step("pad", (), (dim,), state, evolve(state, extents=extents))

    def all(self, state: State, room: float) -> Iterator[Step]:
        """All steps from a state; no permutations of parts that are larger than there is room for."""
        for kind in (self.pads, self.slices, self.reductions, self.exchanges, self.gathers):
            yield from kind(state)
        if state.elements * self.width <= room:
            yield from self.permutes(state)


def _starts(mesh: Mesh, state: State, dim: int) -> Table:
    """Where the part of each device begins along a dimension."""
    return index_along(mesh, state.dims[dim]) * state.local_dims[dim]


def _replaced(state: State, dim: int, place: int, axes: Axes) -> State:
    old = state.dims[dim]
    return state.having((dim, (*old[:place], *axes, *old[place + 1 :])))


def _swapped(state: State, one: tuple[int, int], other: tuple[int, int]) -> State:
    first, second = state.dims[one[0]][one[1]], state.dims[other[0]][other[1]]
    return _replaced(_replaced(state, *one, (second,)), *other, (first,))
