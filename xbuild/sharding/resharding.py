"""Plans reshardings: the cheapest steps, slices and collectives, from one sharding of an array to another.

Sections:

    plan: the steps that send the fewest bytes
    Greedy and cheapest sequences of steps
    ReshardingState and ReshardingStep: the states of a resharding, and the steps between them
    ReshardingContext: the steps that are possible in a state
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from shape_inference import PrimitiveType, Shape, refuse
from shape_inference.types import f32

from ..costs.collectives import algorithms
from ..properties.mesh import Mesh
from .sharding import Axis, Sharding, Table, count, index_along, merge_parts, moves, shard_dims

Axes: TypeAlias = tuple[Axis, ...]
Op: TypeAlias = str
"""all_slice, collective_permute, all_to_all, all_gather, all_reduce, reduce_scatter, to_unreduced or pad."""

Cost: TypeAlias = tuple[float, int]
"""The price of a step, then 1 if it counts as a step."""

# ----------------------------------------------------------------------------
# plan: the steps that send the fewest bytes

MOST_PARTS = 5
"""Up to this number of prime-sized parts, axes are split into such parts; above it, only at boundaries in use."""


@frozen
class Costs:
    """The cost of communication along each axis of a mesh: `alpha` for a step, `beta` for a byte that a device sends.

    An axis that is not named has `default_alpha` and `default_beta`. A step over several axes has the highest cost.
    """

    alpha: Mapping[str, float] = field(factory=dict, hash=False)
    beta: Mapping[str, float] = field(factory=dict, hash=False)
    default_alpha: float = 0.0
    default_beta: float = 1.0

    def of(self, step: ReshardingStep) -> Cost:
        """The cost of a step, then 1 if it counts as a step."""
        if step.is_local or not step.bytes:
            return 0.0, int(step.op != "pad")
        names = {axis.name for axis in step.axes}
        alpha = max((self.alpha.get(name, self.default_alpha) for name in names), default=self.default_alpha)
        beta = max((self.beta.get(name, self.default_beta) for name in names), default=self.default_beta)
        return alpha + beta * step.bytes, 1


@frozen
class ReshardingPlan:
    """The steps that reshard an array, and the bytes that a device sends in them."""

    source: Sharding
    target: Sharding
    shape: Shape
    start: ReshardingState
    steps: tuple[ReshardingStep, ...]

    @property
    def bytes(self) -> int:
        """The bytes that a device sends."""
        return sum(step.bytes for step in self.steps)

    def __str__(self) -> str:
        if not self.steps:
            return "nothing to do"
        return "; ".join(map(str, self.steps))


def plan(
    source: Sharding, target: Sharding, shape: Shape | tuple[int, ...] | list[int], costs: Costs | None = None
) -> ReshardingPlan:
    """The cheapest steps that reshard an array.

    `shape` is that of the global array; a list of extents means f32. Costs are bytes that a device sends, then the
    number of steps, unless `costs` are given. If axes have few parts, the best order of slices, permutes, all-to-alls,
    gathers and reductions is searched; if they have many, Shardy's order is used.
    Raises: invalid_attribute for shardings on two meshes; rank_mismatch for more dimensions than the array has.

    >>> import xbuild as xb
    >>> from xbuild.sharding.sharding import get_axis
    >>> mesh = xb.Mesh(x=2, y=2)
    >>> x, y = get_axis(mesh, "x"), get_axis(mesh, "y")
    >>> print(plan(shard_dims(mesh, [[x], [y]]), shard_dims(mesh, [[], [x]]), (4, 4)))
    all_gather over y dimension 1: 16 bytes; all_to_all over x from dimension 0 to dimension 1: 16 bytes

    Source: Shardy, reshard to collectives.
    """
    array = shape if isinstance(shape, Shape) else f32[tuple(shape)]
    if source.mesh != target.mesh:
        refuse("invalid_attribute", f"plan: the source is on {source.mesh}, but the target is on {target.mesh}")
    for name, sharding in (("source", source), ("target", target)):
        if len(sharding.dims) > array.rank:
            refuse(
                "rank_mismatch", f"plan: the {name} has {len(sharding.dims)} dimensions, but {array} has {array.rank}"
            )
    return plan_once(source, target, array.dims, array.dtype, costs or Costs())


@functools.lru_cache(maxsize=1 << 14)
def plan_once(
    source: Sharding, target: Sharding, dims: tuple[int, ...], dtype: PrimitiveType, costs: Costs = Costs()
) -> ReshardingPlan:
    """The plan for an array of these extents, made once."""
    axes = (*source.cut_axes, *source.unreduced, *target.cut_axes, *target.unreduced)
    shape, width = dtype[dims], max(1, dtype.bits // 8)
    boundaries = find_boundaries(axes, is_prime=True)
    if boundaries is not None and sum(len(each) - 1 for each in boundaries.values()) > MOST_PARTS:
        boundaries = find_boundaries(axes, is_prime=False)
    if boundaries is None:
        return _plan_through_replicated(source, target, dims, dtype, costs)
    start = state_of(source, dims, boundaries)
    site = ReshardingContext(source.mesh, state_of(target, dims, boundaries), width)
    return ReshardingPlan(source, target, shape, start, _choose_steps(site, start, costs))


def _choose_steps(site: ReshardingContext, start: ReshardingState, costs: Costs) -> tuple[ReshardingStep, ...]:
    simple = join_steps(site, start, plan_greedily(site, start))
    price = _total_cost(costs, simple)
    is_by_bytes = costs == Costs()
    if price[0] == 0 or (is_by_bytes and _is_optimal(site, start, simple)):
        return simple
    found = find_cheapest(site, start, costs.of, price, is_by_bytes)
    return simple if found is None else join_steps(site, start, found)


def _is_optimal(site: ReshardingContext, start: ReshardingState, steps: tuple[ReshardingStep, ...]) -> bool:
    """Whether only elements that devices lack are sent, or all elements in one reduction."""
    sending = [step for step in steps if not step.is_local]
    if start.unreduced:
        return len(sending) == 1
    return sum(step.bytes for step in sending) <= site.count_lacking(start) * site.width


def _total_cost(costs: Costs, steps: tuple[ReshardingStep, ...]) -> Cost:
    prices = [costs.of(step) for step in steps]
    return sum(price for price, _ in prices), sum(number for _, number in prices)


def _plan_through_replicated(
    source: Sharding, target: Sharding, dims: tuple[int, ...], dtype: PrimitiveType, costs: Costs
) -> ReshardingPlan:
    """A plan through the replicated array, for parts of an axis that do not fit together, such as 2 and 3 of 6."""
    middle = shard_dims(source.mesh, [()] * len(dims))
    first, second = (plan_once(*pair, dims, dtype, costs) for pair in ((source, middle), (middle, target)))
    return ReshardingPlan(source, target, first.shape, first.start, (*first.steps, *second.steps))


# ----------------------------------------------------------------------------
# Greedy and cheapest sequences of steps
#
# The greedy one is Shardy's; the cheapest one is searched if there are few states.

MOST_STATES = 300
"""The number of states that are visited before Shardy's order is used instead."""


def plan_greedily(site: ReshardingContext, state: ReshardingState) -> list[ReshardingStep]:
    """Steps in Shardy's order: reduce, slice, permute, all-to-all, gather, each as far as possible.

    Source: Shardy, reshard to collectives.
    """
    found: list[ReshardingStep] = []
    while state != site.target:
        step = _choose_next(site, state)
        found.append(step)
        state = step.after
    return found


def _choose_next(site: ReshardingContext, state: ReshardingState) -> ReshardingStep:
    for choose in (_pad, _reduce, _slice, _permute, _exchange):
        step = choose(site, state)
        if step is not None:
            return step
    return _gather(site, state)


def _pad(site: ReshardingContext, state: ReshardingState) -> ReshardingStep | None:
    return next(site.pads(state), None)


def _reduce(site: ReshardingContext, state: ReshardingState) -> ReshardingStep | None:
    done = [axis for axis in state.unreduced if axis not in site.target.unreduced]
    for dim, (axes, target_axes) in enumerate(zip(state.dims, site.target.dims, strict=True)):
        more = tuple(itertools.takewhile(done.__contains__, target_axes[len(axes) :]))
        if target_axes[: len(axes)] == axes and more and state.is_divisible(dim, more):
            return site.scatter_step(state, dim, more)
    if done:
        return site.reduce_step(state, tuple(done))
    return next((step for step in site.reductions(state) if step.op == "to_unreduced"), None)


def _slice(site: ReshardingContext, state: ReshardingState) -> ReshardingStep | None:
    for dim, (axes, target_axes) in enumerate(zip(state.dims, site.target.dims, strict=True)):
        more = tuple(itertools.takewhile(lambda axis: axis not in state.used, target_axes[len(axes) :]))
        is_padded_alike = state.extents[dim] == site.target.extents[dim]
        if target_axes[: len(axes)] == axes and more and is_padded_alike and state.is_divisible(dim, more):
            return site.slice_step(state, dim, more, axes)
    return None


def _permute(site: ReshardingContext, state: ReshardingState) -> ReshardingStep | None:
    after = site.move_towards_target(state)
    return site.permute_step(state, after) if after is not None else None


def _exchange(site: ReshardingContext, state: ReshardingState) -> ReshardingStep | None:
    for source, axes in enumerate(state.dims):
        for start in range(_count_right_axes(axes, site.target.dims[source]), len(axes)):
            for dim, target_axes in enumerate(site.target.dims):
                joined = state.dims[dim] + axes[start:]
                if dim != source and target_axes[: len(joined)] == joined and state.is_divisible(dim, axes[start:]):
                    return site.exchange_step(state, source, start, dim)
    return None


def _count_right_axes(axes: Axes, target_axes: Axes) -> int:
    """The number of outermost axes that are those of the target."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(axes, target_axes, strict=False)))


def _gather(site: ReshardingContext, state: ReshardingState) -> ReshardingStep:
    """Gather the axes that are not the target's; all axes of a dimension whose padding must change."""
    for dim, axes in enumerate(state.dims):
        is_padded_alike = state.extents[dim] == site.target.extents[dim]
        start = _count_right_axes(axes, site.target.dims[dim]) if is_padded_alike else 0
        if start < len(axes):
            return site.gather_step(state, dim, start)
    raise AssertionError(f"no resharding step leads from {state} to {site.target}")


def find_cheapest(
    site: ReshardingContext,
    start: ReshardingState,
    cost: Callable[[ReshardingStep], Cost],
    bound: Cost,
    is_by_bytes: bool = False,
) -> list[ReshardingStep] | None:
    """The cheapest steps, by Dijkstra's algorithm; None if none is below the bound, or if there are too many states."""
    best: dict[ReshardingState, Cost] = {start: (0.0, 0)}
    came: dict[ReshardingState, tuple[ReshardingState, ReshardingStep]] = {}
    queue: list[tuple[Cost, int, ReshardingState]] = [((0.0, 0), 0, start)]
    numbers, done = itertools.count(1), set[ReshardingState]()
    while queue and len(done) < MOST_STATES:
        spent, _, state = heapq.heappop(queue)
        if state in done:
            continue
        if state == site.target:
            return _trace_steps(came, state)
        done.add(state)
        for step in site.all(state, bound[0] - spent[0] if is_by_bytes else math.inf):
            price = cost(step)
            total = (spent[0] + price[0], spent[1] + price[1])
            if total < bound and total < best.get(step.after, bound):
                best[step.after], came[step.after] = total, (state, step)
                heapq.heappush(queue, (total, next(numbers), step.after))
    return None


def _trace_steps(
    came: dict[ReshardingState, tuple[ReshardingState, ReshardingStep]], state: ReshardingState
) -> list[ReshardingStep]:
    found: list[ReshardingStep] = []
    while state in came:
        state, step = came[state]
        found.append(step)
    return found[::-1]


def join_steps(
    site: ReshardingContext, start: ReshardingState, steps: Sequence[ReshardingStep]
) -> tuple[ReshardingStep, ...]:
    """The steps with successive slices or gathers of one dimension merged."""
    found: list[ReshardingStep] = []
    states = [start]
    for step in steps:
        last = found[-1] if found else None
        if last is not None and step.op == last.op and _can_join(step) and step.dimensions == last.dimensions:
            axes = step.axes + last.axes if step.op == "all_gather" else last.axes + step.axes
            found[-1] = site.step(step.op, axes, step.dimensions, states[-2], step.after)
            states[-1] = step.after
        else:
            found.append(step)
            states.append(step.after)
    return tuple(found)


def _can_join(step: ReshardingStep) -> bool:
    """Whether two such steps on one dimension are equal to one step over the axes of both."""
    return step.op in ("all_slice", "all_gather", "reduce_scatter")


# ----------------------------------------------------------------------------
# ReshardingState and ReshardingStep: the states of a resharding, and the steps between them
#
# A state has the parts of axes that split each dimension.


@frozen
class ReshardingState:
    """The parts of axes that split each dimension, the extents with padding, and the axes of partial sums."""

    dims: tuple[Axes, ...]
    extents: tuple[int, ...]
    unreduced: Axes = ()
    used: frozenset[Axis] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "used", frozenset(axis for axes in self.dims for axis in axes) | {*self.unreduced})

    @property
    def tiles(self) -> tuple[Axes, ...]:
        """The axes along which devices hold different parts of the array, or different partial sums."""
        return *self.dims, self.unreduced

    @property
    def local_dims(self) -> tuple[int, ...]:
        """The extents of a device's part."""
        return tuple(extent // count(axes) for extent, axes in zip(self.extents, self.dims, strict=True))

    @property
    def elements(self) -> int:
        """The elements of a device's part."""
        return math.prod(self.local_dims)

    def is_divisible(self, dim: int, axes: Iterable[Axis]) -> bool:
        """Whether more axes split a dimension into equal parts."""
        return self.local_dims[dim] % count(axes) == 0

    def with_axes(self, *changes: tuple[int, Axes]) -> ReshardingState:
        """The state with different axes on some dimensions."""
        dims = list(self.dims)
        for dim, axes in changes:
            dims[dim] = axes
        return evolve(self, dims=tuple(dims))


@frozen
class ReshardingStep:
    """A step of a plan: the op, the axes that it runs over, its dimensions, and the state after it.

    `dimensions` has the dimension that is sliced or gathered; for an all_to_all, the one that is split, then the one
    that is concatenated. `bytes` are those that a device sends.
    """

    op: Op
    axes: Axes
    dimensions: tuple[int, ...]
    after: ReshardingState
    bytes: int = 0

    @property
    def is_local(self) -> bool:
        """Whether nothing is sent."""
        return self.op in ("all_slice", "to_unreduced", "pad")

    def __str__(self) -> str:
        names = ", ".join(_spell(axis) for axis in merge_parts(self.axes))
        if self.op == "pad":
            (dim,) = self.dimensions
            return f"pad dimension {dim} to {self.after.extents[dim]}"
        where = {1: "dimension {}", 2: "from dimension {1} to dimension {0}"}.get(len(self.dimensions), "")
        words = [self.op, f"over {names}" if names else "", where.format(*self.dimensions)]
        return " ".join(filter(None, words)) + (f": {self.bytes} bytes" if self.bytes else "")


def _spell(axis: Axis) -> str:
    return axis.name if axis.pre_size == 1 else f"{axis.name}:({axis.pre_size}){axis.size}"


def pad_extent(extent: int, parts: int) -> int:
    """An extent with the padding at its end that makes all parts equal.

    Source: XLA, spmd_partitioner_util.cc (GetPaddedShapeForUnevenPartitioning).
    """
    return -(-extent // parts) * parts


def find_boundaries(axes: Iterable[Axis], is_prime: bool) -> dict[str, list[int]] | None:
    """For each axis, the boundaries at which its parts begin or end; None if these do not divide each other."""
    found: dict[str, set[int]] = {}
    for axis in axes:
        found.setdefault(axis.name, set()).update((axis.pre_size, axis.end))
    boundaries = {name: sorted(each) for name, each in found.items()}
    for each in boundaries.values():
        if any(high % low for low, high in pairwise(each)):
            return None
    return {name: _add_prime_boundaries(each) for name, each in boundaries.items()} if is_prime else boundaries


def _add_prime_boundaries(boundaries: list[int]) -> list[int]:
    found = [boundaries[0]]
    for divisor in boundaries[1:]:
        rest = divisor // found[-1]
        while rest > 1:
            prime = next((each for each in range(2, math.isqrt(rest) + 1) if rest % each == 0), rest)
            found.append(found[-1] * prime)
            rest //= prime
    return found


def split_axes(axes: Iterable[Axis], boundaries: dict[str, list[int]]) -> Axes:
    """Axes, split at the boundaries into parts of more than one element."""
    return tuple(_split_each(axes, boundaries))


def _split_each(axes: Iterable[Axis], boundaries: dict[str, list[int]]) -> Iterator[Axis]:
    for axis in axes:
        inside = [cut for cut in boundaries[axis.name] if axis.pre_size <= cut <= axis.end]
        for low, high in pairwise(inside):
            yield Axis(axis.name, high // low, low)


def state_of(sharding: Sharding, shape: tuple[int, ...], boundaries: dict[str, list[int]]) -> ReshardingState:
    """The state of an array of this shape with GSPMD's padding."""
    dims = tuple(split_axes(sharding.dim(number).axes, boundaries) for number in range(len(shape)))
    extents = tuple(pad_extent(extent, count(axes)) for extent, axes in zip(shape, dims, strict=True))
    return ReshardingState(dims, extents, tuple(sorted(split_axes(sharding.unreduced, boundaries))))


# ----------------------------------------------------------------------------
# ReshardingContext: the steps that are possible in a state


@frozen
class ReshardingContext:
    """What all states of a resharding share: the mesh, the target, and the bytes of an element."""

    mesh: Mesh
    target: ReshardingState
    width: int

    def step(
        self, op: Op, axes: Axes, dimensions: tuple[int, ...], before: ReshardingState, after: ReshardingState
    ) -> ReshardingStep:
        """A step, with the bytes that a device sends."""
        return ReshardingStep(op, axes, dimensions, after, self._count_bytes(op, axes, before, after))

    def _count_bytes(self, op: Op, axes: Axes, before: ReshardingState, after: ReshardingState) -> int:
        if op in ("all_slice", "to_unreduced", "pad"):
            return 0
        whole = (after if op == "all_gather" else before).elements * self.width
        if op == "collective_permute":
            is_moved = any(source != target for source, target in moves(self.mesh, before.tiles, after.tiles))
            return whole if is_moved else 0
        return algorithms(op, count(axes), whole)[0].link_bytes

    def count_lacking(self, start: ReshardingState) -> float:
        """The average number of elements of its target part that a device lacks; 0 if paddings differ."""
        shared = np.ones(self.mesh.num_devices)
        for dim, extent in enumerate(start.extents):
            if extent != self.target.extents[dim]:
                return 0.0
            ranges = [(_starts(self.mesh, state, dim), state.local_dims[dim]) for state in (start, self.target)]
            (one, size), (other, target_axes) = ranges
            shared *= np.maximum(np.minimum(one + size, other + target_axes) - np.maximum(one, other), 0)
        return float(self.target.elements - shared.mean())

    # Each method below yields one kind of step.

    def slices(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Split a dimension by an unused axis of the target."""
        free = [axis for axes in self.target.dims for axis in axes if axis not in state.used]
        for axis in free:
            for dim, axes in enumerate(state.dims):
                if state.is_divisible(dim, (axis,)):
                    yield self.slice_step(state, dim, (axis,), axes)

    def slice_step(self, state: ReshardingState, dim: int, more: Axes, axes: Axes) -> ReshardingStep:
        return self.step("all_slice", more, (dim,), state, state.with_axes((dim, axes + more)))

    def gathers(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Gather the innermost axes of a dimension."""
        for dim, axes in enumerate(state.dims):
            for start in range(len(axes)):
                yield self.gather_step(state, dim, start)

    def gather_step(self, state: ReshardingState, dim: int, start: int) -> ReshardingStep:
        axes = state.dims[dim]
        return self.step("all_gather", axes[start:], (dim,), state, state.with_axes((dim, axes[:start])))

    def exchanges(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Move the innermost axes of one dimension to another."""
        for source, axes in enumerate(state.dims):
            for start in range(len(axes)):
                for dim in range(len(state.dims)):
                    if dim != source and state.is_divisible(dim, axes[start:]):
                        yield self.exchange_step(state, source, start, dim)

    def exchange_step(self, state: ReshardingState, source: int, start: int, dim: int) -> ReshardingStep:
        axes = state.dims[source]
        after = state.with_axes((source, axes[:start]), (dim, state.dims[dim] + axes[start:]))
        return self.step("all_to_all", axes[start:], (dim, source), state, after)

    def permutes(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Split every dimension equally often by different axes: those of the target, or with two axes swapped."""
        if towards := self.move_towards_target(state):
            yield self.permute_step(state, towards)
        placed = [(dim, place) for dim, axes in enumerate(state.dims) for place in range(len(axes))]
        for number, (dim, place) in enumerate(placed):
            axis = state.dims[dim][place]
            for other in placed[number + 1 :]:
                if state.dims[other[0]][other[1]].size == axis.size:
                    yield self.permute_step(state, _swap_axes(state, (dim, place), other))
            for axes in self.target.dims:
                for free in axes:
                    if free not in state.used and free.size == axis.size:
                        yield self.permute_step(state, _replace_axes(state, dim, place, (free,)))

    def permute_step(self, state: ReshardingState, after: ReshardingState) -> ReshardingStep:
        changed = [axis for old, new in zip(state.dims, after.dims, strict=True) if old != new for axis in (*old, *new)]
        return self.step("collective_permute", tuple(dict.fromkeys(changed)), (), state, after)

    def move_towards_target(self, state: ReshardingState) -> ReshardingState | None:
        """The state with the target's outermost axes for the same number of parts; None if that changes nothing."""
        found: list[Axes] = []
        for axes, target_axes in zip(state.dims, self.target.dims, strict=True):
            heads = (target_axes[:size] for size in range(len(target_axes) + 1))
            found.append(next((head for head in heads if count(head) == count(axes)), axes))
        flat = [axis for axes in found for axis in axes]
        after = evolve(state, dims=tuple(found))
        is_clear = len(set(flat)) == len(flat) and not {*flat} & {*state.unreduced}
        return after if is_clear and after != state else None

    def reductions(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Reduce partial sums, or reduce and scatter them; or make partial sums of equal values."""
        done = tuple(axis for axis in state.unreduced if axis not in self.target.unreduced)
        if done:
            yield self.reduce_step(state, done)
        for axis in done:
            for dim in range(len(state.dims)):
                if state.is_divisible(dim, (axis,)):
                    yield self.scatter_step(state, dim, (axis,))
        for dim in range(len(state.dims)):
            several = self._scatterable_axes(state, dim)
            if len(several) > 1:
                yield self.scatter_step(state, dim, several)
        missing = tuple(axis for axis in self.target.unreduced if axis not in state.used)
        if missing:
            after = evolve(state, unreduced=tuple(sorted((*state.unreduced, *missing))))
            yield self.step("to_unreduced", missing, (), state, after)

    def _scatterable_axes(self, state: ReshardingState, dim: int) -> Axes:
        """The axes of partial sums that the target has next on a dimension."""
        axes, target_axes = state.dims[dim], self.target.dims[dim]
        found: Axes = ()
        if target_axes[: len(axes)] == axes:
            for axis in target_axes[len(axes) :]:
                if axis not in state.unreduced or not state.is_divisible(dim, (*found, axis)):
                    break
                found += (axis,)
        return found

    def reduce_step(self, state: ReshardingState, axes: Axes) -> ReshardingStep:
        rest = tuple(axis for axis in state.unreduced if axis not in axes)
        return self.step("all_reduce", axes, (), state, evolve(state, unreduced=rest))

    def scatter_step(self, state: ReshardingState, dim: int, axes: Axes) -> ReshardingStep:
        rest = tuple(axis for axis in state.unreduced if axis not in axes)
        after = evolve(state.with_axes((dim, state.dims[dim] + axes)), unreduced=rest)
        return self.step("reduce_scatter", axes, (dim,), state, after)

    def pads(self, state: ReshardingState) -> Iterator[ReshardingStep]:
        """Change the padding of a dimension that is not split."""
        for dim, extent in enumerate(self.target.extents):
            if not state.dims[dim] and state.extents[dim] != extent:
                extents = (*state.extents[:dim], extent, *state.extents[dim + 1 :])
                yield self.step("pad", (), (dim,), state, evolve(state, extents=extents))

    def all(self, state: ReshardingState, room: float) -> Iterator[ReshardingStep]:
        """All steps from a state, without permutes of parts that are larger than `room`."""
        for kind in (self.pads, self.slices, self.reductions, self.exchanges, self.gathers):
            yield from kind(state)
        if state.elements * self.width <= room:
            yield from self.permutes(state)


def _starts(mesh: Mesh, state: ReshardingState, dim: int) -> Table:
    """The first element of each device's part along a dimension."""
    return index_along(mesh, state.dims[dim]) * state.local_dims[dim]


def _replace_axes(state: ReshardingState, dim: int, place: int, axes: Axes) -> ReshardingState:
    old = state.dims[dim]
    return state.with_axes((dim, (*old[:place], *axes, *old[place + 1 :])))


def _swap_axes(state: ReshardingState, one: tuple[int, int], other: tuple[int, int]) -> ReshardingState:
    first, second = state.dims[one[0]][one[1]], state.dims[other[0]][other[1]]
    return _replace_axes(_replace_axes(state, *one, (second,)), *other, (first,))
