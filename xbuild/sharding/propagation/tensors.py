"""Tensors: the sharding of each array while it propagates, seen by dimensions or by the factors of an instruction.

Sections:

    Lists of axes, compared from the outermost axis on
    Tensor: the sharding of an array while it propagates
    Stated dimensions, which take their turn by the user's priorities; and the sharding that results
    View: an array by the factors of one instruction
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field, frozen

from shape_inference.types import Dims

from ...core.graph import Instruction
from ...properties.mesh import Mesh
from ..rules import Factor, FactorMap
from ..sharding import Axis, DimSharding, Placement, Sharding, count, merge_parts

if TYPE_CHECKING:
    from .flow import FlowNode

__all__ = ["Axes", "begins", "common", "contains", "count", "is_beginning", "is_strict_beginning", "outside"]


# ----------------------------------------------------------------------------
# Lists of axes, compared from the outermost axis on

Axes: TypeAlias = tuple[Axis, ...]


def begins(one: Axis, other: Axis) -> bool:
    """Whether an axis is the outer part of another, or the same."""
    return (
        one.name == other.name
        and one.pre_size == other.pre_size
        and one.size <= other.size
        and other.size % one.size == 0
    )


def contains(one: Axis, other: Axis) -> bool:
    """Whether a part of an axis has all of another part."""
    return one.name == other.name and one.pre_size <= other.pre_size and other.end <= one.end


def outside(axis: Axis, others: Iterable[Axis]) -> Axis | None:
    """The longest outer part of an axis that overlaps none of the others.

    None if there is none, or if the axis cannot be split into parts that include both.
    """
    for other in others:
        if not axis.fits(other):
            return None
        if axis.name != other.name or not axis.overlaps(other):
            continue
        size, rest = divmod(other.pre_size, axis.pre_size)
        if size <= 1 or rest:
            return None
        axis = Axis(axis.name, size, axis.pre_size)
    return axis


def is_strict_beginning(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    """Whether a list of axes is a strict beginning of another; its last axis may be an outer part.

    >>> x, half, y = Axis("x", 4), Axis("x", 2), Axis("y", 2)
    >>> is_strict_beginning([half], [x, y]), is_strict_beginning([x, y], [x, y]), is_strict_beginning([y], [x, y])
    (True, False, False)
    """
    return tuple(one) != tuple(other) and is_beginning(one, other)


def is_beginning(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    """Whether a list of axes is a beginning of another, or equal."""
    if len(one) > len(other):
        return False
    if not one:
        return True
    return tuple(one[:-1]) == tuple(other[: len(one) - 1]) and begins(one[-1], other[len(one) - 1])


def common(old: Axes, new: Axes, may_grow: bool) -> tuple[Axes, bool]:
    """The axes that two lists share from the outermost on, and whether they may still grow.

    If one list ends, the rest of the other follows; the rest of `new` only if `may_grow`.

    >>> a, b, c = Axis("a", 2), Axis("b", 2), Axis("c", 2)
    >>> [axis.name for axis in common((a, b), (a, c), True)[0]], [axis.name for axis in common((a,), (a, b), True)[0]]
    (['a'], ['a', 'b'])

    Source: Shardy, compatible major axes of a factor.
    """
    if old == new or not new:
        return old, may_grow
    if not old:
        return (new, True) if may_grow else ((), False)
    found: list[Axis] = []
    shorter = min(len(old), len(new))
    for place in range(shorter):
        one, other = old[place], new[place]
        if one == other:
            found.append(one)
            continue
        return _common_where_differing(found, old, new, place, may_grow)
    return _append_rest(found, old[shorter:], new[shorter:], may_grow)


def _common_where_differing(found: list[Axis], old: Axes, new: Axes, place: int, may_grow: bool) -> tuple[Axes, bool]:
    """The common axes of two lists that first differ at a place: an outer part counts if it ends its list."""
    one, other = old[place], new[place]
    if begins(other, one):
        is_end = place + 1 == len(new)
        found.append(one if is_end else other)
    elif begins(one, other):
        is_end = place + 1 == len(old) and may_grow
        found.append(other if is_end else one)
    else:
        return tuple(found), False
    if not is_end:
        return tuple(found), False
    return _append_rest(found, old[place + 1 :], new[place + 1 :], may_grow)


def _append_rest(found: list[Axis], old: Axes, new: Axes, may_grow: bool) -> tuple[Axes, bool]:
    return (*found, *old, *(new if may_grow else ())), may_grow


# ----------------------------------------------------------------------------
# Tensor: the sharding of an array while it propagates


@frozen
class Turn:
    """When a step was made: the user's priority, the level of op priorities, the strategy."""

    priority: int
    level: int
    strategy: str


@define(eq=False)
class ShardingStep:
    """A dimension of an array that got more axes: from which to which, by which node, at which turn.

    `source` is the array that had these axes, and `source_dim` its dimension. Steps are numbered in order.
    """

    dim: int
    before: Axes
    after: Axes
    node: FlowNode
    source: Tensor
    source_dim: int
    turn: Turn
    number: int


@define(eq=False)
class Tensor:
    """An array of the program: its axes so far, which dimensions are closed, and which axes it must not use.

    `names` are the instructions whose value it is, with the numbers of their leaves, the producer first. A fixed tensor
    takes no axes: its sharding is not one by axes of the mesh. `stated` is the sharding that the program states.
    """

    dims: Dims
    axes: list[Axes] = field(factory=list)
    closed: list[bool] = field(factory=list)
    replicated: Axes = ()
    unreduced: Axes = ()
    manual: Axes = ()
    is_fixed: bool = False
    stated: Sharding | None = None
    names: list[tuple[Instruction, int]] = field(factory=list)
    version: int = 0
    merged_into: Tensor | None = None
    placement: Placement | None = None
    steps: list[ShardingStep] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.axes = self.axes or [()] * len(self.dims)
        self.closed = self.closed or [False] * len(self.dims)

    @property
    def banned(self) -> Axes:
        """Axes that the array must not take."""
        return self.replicated + self.unreduced + self.manual

    @property
    def is_cut(self) -> bool:
        return any(self.axes)


# ----------------------------------------------------------------------------
# Stated dimensions, which take their turn by the user's priorities; and the sharding that results


def priorities(tensors: list[Tensor]) -> list[int]:
    """The user's priorities in order; 0 is always the first."""
    found = {dim.priority for tensor in tensors if tensor.stated is not None for dim in tensor.stated.dims}
    return sorted(found | {0})


def start_priority(tensor: Tensor, priority: int) -> bool:
    """Give a tensor the dimensions of its stated sharding that have this priority; whether there are any.

    Dimensions of later priorities are closed until their turn, and their axes are reserved for them.

    Source: Shardy, user priority propagation.
    """
    sharding = tensor.stated
    if sharding is None or (priority and all(dim.priority != priority for dim in sharding.dims)):
        return False
    for number, dim in enumerate(sharding.dims):
        if dim.priority == priority:
            tensor.axes[number], tensor.closed[number] = dim.axes, not dim.is_open
        elif dim.priority > priority:
            tensor.axes[number], tensor.closed[number] = (), True
    waiting = tuple(axis for dim in sharding.dims if dim.priority > priority for axis in dim.axes)
    tensor.replicated, tensor.manual = sharding.replicated + waiting, sharding.manual
    tensor.unreduced = sharding.unreduced
    tensor.version += 1
    return True


def close_dimensions(tensor: Tensor, mesh: Mesh) -> Sharding | Placement:
    """The propagated sharding of a tensor, with all dimensions closed."""
    if tensor.placement is not None:
        return tensor.placement
    stated = tensor.stated
    dims = tuple(map(DimSharding, tensor.axes))
    if stated is None:
        return Sharding(mesh, dims)
    return Sharding(mesh, dims, stated.replicated, stated.unreduced, stated.manual, stated.halo_sizes, stated.offsets)


# ----------------------------------------------------------------------------
# View: an array by the factors of one instruction


@define
class FactorState:
    """An array's axes along one of its factors, those that did not fit, and whether it takes more."""

    axes: Axes = ()
    overflow: Axes = ()
    is_closed: bool = False
    is_innermost: bool = True


View = dict[int, FactorState]


def view(tensor: Tensor, dims: FactorMap, factors: Sequence[Factor]) -> View:
    """An array by its factors: the axes of each dimension are distributed over its factors, the outermost first.

    A factor takes axes, or outer parts of them, while these divide the rest of it; the innermost takes all others. Axes
    that an outer factor cannot take are its overflow, and the factors inside it are closed.

    Source: Shardy, sharding projection.
    """
    found: View = {}
    closed = tensor.is_fixed
    for axes, is_closed, numbers in zip(tensor.axes, tensor.closed, dims, strict=True):
        if len(numbers) == 1:
            found[numbers[0]] = FactorState(axes, (), is_closed or closed)
        else:
            _distribute(found, axes, is_closed or closed, numbers, factors)
    return found


def _distribute(found: View, axes: Axes, is_closed: bool, numbers: tuple[int, ...], factors: Sequence[Factor]) -> None:
    rest = list(axes)
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers):
            found[number] = FactorState(tuple(rest), (), is_closed, True)
            return
        taken, rest, is_filled = _take_axes(rest, factors[number].size)
        overflow = () if is_filled else tuple(rest)
        found[number] = FactorState(tuple(taken), overflow, is_closed, False)
        if overflow:
            for inner in numbers[place + 1 :]:
                found[inner] = FactorState((), (), True, inner == numbers[-1])
            return


def _take_axes(axes: Sequence[Axis], size: int) -> tuple[list[Axis], list[Axis], bool]:
    """The axes that a factor takes, the other axes, and whether these may go to the next factor."""
    taken: list[Axis] = []
    rest = list(axes)
    while rest and size > 1 and (shared := math.gcd(size, rest[0].size)) > 1:
        axis = rest.pop(0)
        if axis.size > shared:
            rest.insert(0, Axis(axis.name, axis.size // shared, axis.pre_size * shared))
        taken.append(Axis(axis.name, shared, axis.pre_size))
        size //= shared
    return taken, rest, size == 1 or not rest


def dims_of(found: View, dims: FactorMap, factors: Sequence[Factor]) -> list[Axes]:
    """The axes of each dimension, from those of its factors up to the first that is not full."""
    lists = []
    for numbers in dims:
        axes: list[Axis] = []
        for number in numbers:
            state = found[number]
            axes += state.axes + state.overflow
            if state.overflow or count(state.axes) < factors[number].size:
                break
        lists.append(merge_parts(axes) if len(numbers) > 1 else tuple(axes))
    return lists
