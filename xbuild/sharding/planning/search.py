"""The way through the states of a resharding: Shardy's order of steps, and the cheapest way where there are few."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .states import Axes, State, Step
from .steps import Site

Cost: TypeAlias = tuple[float, int]
MOST_STATES = 300
"""States that are visited before Shardy's order is taken instead."""


def greedy(site: Site, state: State) -> list[Step]:
    """Steps in Shardy's order: reduce, slice, permute, all-to-all, gather, each as far as it goes.

    Source: Shardy, reshard to collectives.
    """
    found: list[Step] = []
    while state != site.target:
        step = _next(site, state)
        found.append(step)
        state = step.after
    return found


def _next(site: Site, state: State) -> Step:
    for choose in (_pad, _reduce, _slice, _permute, _exchange):
        step = choose(site, state)
        if step is not None:
            return step
    return _gather(site, state)


def _pad(site: Site, state: State) -> Step | None:
    return next(site.pads(state), None)


def _reduce(site: Site, state: State) -> Step | None:
    done = [axis for axis in state.unreduced if axis not in site.target.unreduced]
    for dim, (axes, wanted) in enumerate(zip(state.dims, site.target.dims, strict=True)):
        more = tuple(itertools.takewhile(done.__contains__, wanted[len(axes) :]))
        if wanted[: len(axes)] == axes and more and state.holds(dim, more):
            return site.scattered(state, dim, more)
    if done:
        return site.reduced(state, tuple(done))
    return next((step for step in site.reductions(state) if step.op == "to_unreduced"), None)


def _slice(site: Site, state: State) -> Step | None:
    for dim, (axes, wanted) in enumerate(zip(state.dims, site.target.dims, strict=True)):
        more = tuple(itertools.takewhile(lambda axis: axis not in state.used, wanted[len(axes) :]))
        is_padded_alike = state.extents[dim] == site.target.extents[dim]
        if wanted[: len(axes)] == axes and more and is_padded_alike and state.holds(dim, more):
            return site.sliced(state, dim, more, axes)
    return None


def _permute(site: Site, state: State) -> Step | None:
    after = site.towards(state)
    return site.permuted(state, after) if after is not None else None


def _exchange(site: Site, state: State) -> Step | None:
    for source, axes in enumerate(state.dims):
        for start in range(_right(axes, site.target.dims[source]), len(axes)):
            for dim, wanted in enumerate(site.target.dims):
                joined = state.dims[dim] + axes[start:]
                if dim != source and wanted[: len(joined)] == joined and state.holds(dim, axes[start:]):
                    return site.exchanged(state, source, start, dim)
    return None


def _right(axes: Axes, wanted: Axes) -> int:
    """How many of the outermost axes are those that are wanted."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(axes, wanted, strict=False)))


def _gather(site: Site, state: State) -> Step:
    """Gather what is wrong; a dimension whose padding has to change, whole."""
    for dim, axes in enumerate(state.dims):
        is_padded_alike = state.extents[dim] == site.target.extents[dim]
        start = _right(axes, site.target.dims[dim]) if is_padded_alike else 0
        if start < len(axes):
            return site.gathered(state, dim, start)
    raise AssertionError(f"no step leads from {state} to {site.target}")


def cheapest(
    site: Site, start: State, cost: Callable[[Step], Cost], bound: Cost, is_by_bytes: bool = False
) -> list[Step] | None:
    """The steps of least cost by Dijkstra's algorithm; None where none costs less than a bound, or states are many."""
    best: dict[State, Cost] = {start: (0.0, 0)}
    came: dict[State, tuple[State, Step]] = {}
    queue: list[tuple[Cost, int, State]] = [((0.0, 0), 0, start)]
    numbers, done = itertools.count(1), set[State]()
    while queue and len(done) < MOST_STATES:
        spent, _, state = heapq.heappop(queue)
        if state in done:
            continue
        if state == site.target:
            return _way(came, state)
        done.add(state)
        for step in site.all(state, bound[0] - spent[0] if is_by_bytes else math.inf):
            price = cost(step)
            total = (spent[0] + price[0], spent[1] + price[1])
            if total < bound and total < best.get(step.after, bound):
                best[step.after], came[step.after] = total, (state, step)
                heapq.heappush(queue, (total, next(numbers), step.after))
    return None


def _way(came: dict[State, tuple[State, Step]], state: State) -> list[Step]:
    found: list[Step] = []
    while state in came:
        state, step = came[state]
        found.append(step)
    return found[::-1]


def joined(site: Site, start: State, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, in which slices and gathers of one dimension that follow each other are one."""
    found: list[Step] = []
    states = [start]
    for step in steps:
        last = found[-1] if found else None
        if last is not None and step.op == last.op and _joins(step) and step.dimensions == last.dimensions:
            axes = step.axes + last.axes if step.op == "all_gather" else last.axes + step.axes
            found[-1] = site.step(step.op, axes, step.dimensions, states[-2], step.after)
            states[-1] = step.after
        else:
            found.append(step)
            states.append(step.after)
    return tuple(found)


def _joins(step: Step) -> bool:
    """Whether two such steps on one dimension are one over the axes of both."""
    return step.op in ("all_slice", "all_gather", "reduce_scatter")
