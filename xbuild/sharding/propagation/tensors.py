"""`Tensor`, the sharding of an array while it propagates, and its view by factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from shape_inference.types import Dims

from ...core.graph import Instruction
from ..axis import Axis, merged
from ..factors import Factor, FactorMap
from ..placement import Placement
from ..sharding import Sharding
from .prefixes import Axes, count

if TYPE_CHECKING:
    from .nodes import Node


@frozen
class Turn:
    """When a step was made: the priority of the user, the level of op priorities, the strategy."""

    priority: int
    level: int
    strategy: str


@define(eq=False)
class Step:
    """A dimension of an array that came to be cut more: from which axes to which, by which node and its factor, at
    which turn; `source` is the array that had these axes, and `source_dim` its dimension. Steps are numbered in order.
    """

    dim: int
    before: Axes
    after: Axes
    node: Node
    source: Tensor
    source_dim: int
    turn: Turn
    number: int


@define(eq=False)
class Tensor:
    """An array of the program: how it is cut so far, which dimensions are closed, which axes it must not use.

    `names` are the instructions that it is the value of, with the numbers of their leaves, the one that makes it first.
    A fixed one takes nothing: its sharding is not in axes of the mesh. `stated` is the sharding that a program gives.
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
    steps: list[Step] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.axes = self.axes or [()] * len(self.dims)
        self.closed = self.closed or [False] * len(self.dims)

    @property
    def banned(self) -> Axes:
        """Axes by which the array must not be cut further."""
        return self.replicated + self.unreduced + self.manual

    @property
    def is_cut(self) -> bool:
        return any(self.axes)


@define
class FactorState:
    """How an array is cut along one of its factors: the axes, those that did not fit, and whether it takes more."""

    axes: Axes = ()
    overflow: Axes = ()
    is_closed: bool = False
    is_innermost: bool = True


View = dict[int, FactorState]


def view(tensor: Tensor, dims: FactorMap, factors: Sequence[Factor]) -> View:
    """An array by its factors: the axes of each dimension go to its factors, the outermost first.

    A factor takes axes, or outer parts of them, while these divide what is left of it; the innermost takes all others.
    Axes that an outer factor cannot take are its overflow, and what stands inside it is closed.

    Source: Shardy, sharding projection.
    """
    found: View = {}
    closed = tensor.is_fixed
    for axes, is_closed, numbers in zip(tensor.axes, tensor.closed, dims, strict=True):
        if len(numbers) == 1:
            found[numbers[0]] = FactorState(axes, (), is_closed or closed)
        else:
            _share(found, axes, is_closed or closed, numbers, factors)
    return found


def _share(found: View, axes: Axes, is_closed: bool, numbers: tuple[int, ...], factors: Sequence[Factor]) -> None:
    rest = list(axes)
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers):
            found[number] = FactorState(tuple(rest), (), is_closed, True)
            return
        taken, rest, is_filled = _taken(rest, factors[number].size)
        overflow = () if is_filled else tuple(rest)
        found[number] = FactorState(tuple(taken), overflow, is_closed, False)
        if overflow:
            for inner in numbers[place + 1 :]:
                found[inner] = FactorState((), (), True, inner == numbers[-1])
            return


def _taken(axes: Sequence[Axis], size: int) -> tuple[list[Axis], list[Axis], bool]:
    """The axes that a factor takes, what is left, and whether that may go to the next factor."""
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
    """The axes of each dimension by those of its factors, up to the first factor that is not filled."""
    made = []
    for numbers in dims:
        axes: list[Axis] = []
        for number in numbers:
            state = found[number]
            axes += state.axes + state.overflow
            if state.overflow or count(state.axes) < factors[number].size:
                break
        made.append(merged(axes) if len(numbers) > 1 else tuple(axes))
    return made
