"""How axes go along the factors of one instruction: the basic strategy and the aggressive one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..axis import Axis
from .nodes import Direction, Node
from .prefixes import Axes, begins, common, contains, count, is_beginning, is_strict_beginning, outside
from .tensors import FactorState, Tensor, View

Directions: TypeAlias = Sequence[Direction]
Strategy: TypeAlias = Callable[[Node, list[View], Directions], None]
"""Changes the views of an instruction's arrays; directions say for each factor where its axes may go."""


def compatible(node: Node, views: Sequence[View], factor: int, direction: Direction) -> Axes:
    """The axes of a factor that all arrays agree on; those that give them are the operands, the results, or both."""
    if direction == "none":
        return ()
    given, taking = list(views[: node.num_operands]), list(views[node.num_operands :])
    if direction == "backward":
        given, taking = taking, given
    axes: Axes = ()
    may_grow = True
    for each in given:
        if factor in each:
            axes, may_grow = common(axes, each[factor].axes, may_grow)
    may_grow = may_grow and direction == "both"
    for each in taking:
        if factor in each:
            axes, may_grow = common(axes, each[factor].axes, may_grow)
    return axes


def _truncated(axes: Axes, keep: Callable[[Axis, int], Axis | None]) -> Axes:
    """Axes up to the first that may not stay as it is; `keep` says what stays of an axis, given the parts before it."""
    parts = 1
    for place, axis in enumerate(axes):
        kept = keep(axis, parts)
        if kept is None:
            return axes[:place]
        if kept != axis:
            return (*axes[:place], kept)
        parts *= axis.size
    return axes


def _within(axis: Axis, tensor: Tensor, state: FactorState, parts: int, size: int) -> Axis | None:
    """What an array can take of an axis along a factor of this size that is cut in `parts` already."""
    kept = outside(axis, tensor.banned)
    if kept is None or any(contains(each, kept) for each in state.axes):
        return kept
    if not state.is_closed and not state.overflow:
        fitting = kept if state.is_innermost else _dividing(kept, parts, size)
        if fitting is not None:
            return fitting
    return state.axes[-1] if state.axes and begins(state.axes[-1], kept) else None


def _dividing(axis: Axis, parts: int, size: int) -> Axis | None:
    """The outer part of an axis by which what is left of a factor can be divided."""
    if size % parts:
        return None
    shared = math.gcd(size // parts, axis.size)
    return axis if shared == axis.size else Axis(axis.name, shared, axis.pre_size) if shared > 1 else None


def _across(axis: Axis, own: View, factor: int) -> Axis | None:
    """What of an axis no other factor of the array uses."""
    kept: Axis | None = axis
    for other, state in own.items():
        if other != factor and kept is not None and (state.axes or state.overflow):
            kept = outside(kept, state.axes + state.overflow)
    return kept


def basic(node: Node, views: list[View], directions: Directions) -> None:
    """Along each factor the axes that fit all arrays, or none.

    Source: Shardy, basic propagation.
    """
    for factor, record in enumerate(node.rule.factors):
        axes = compatible(node, views, factor, directions[factor])
        if not axes:
            continue
        for tensor, own in zip(node.tensors, views, strict=True):
            axes = _truncated(axes, lambda axis, parts, own=own, factor=factor: _across(axis, own, factor))  # type: ignore[misc]
            if factor in own:
                axes = _fitting(axes, tensor, own[factor], record.size)
        for own in views:
            if factor in own and is_strict_beginning(own[factor].axes, axes):
                own[factor].axes = axes


def _fitting(axes: Axes, tensor: Tensor, state: FactorState, size: int) -> Axes:
    return _truncated(axes, lambda axis, parts: _within(axis, tensor, state, parts, size))


def aggressive(node: Node, views: list[View], directions: Directions) -> None:
    """Along each factor, in each array, as many axes as fit it; of two factors that want one axis the one whose source
    is the larger array has it, then (elementwise) that of more parts, the earlier array, the earlier factor.

    Source: Shardy, aggressive propagation.
    """
    wanted = [compatible(node, views, factor, directions[factor]) for factor in range(len(node.rule.factors))]
    if not any(wanted):
        return
    order = _by_preference(node, views, wanted)
    places = [*range(node.num_operands, len(views)), *range(node.num_operands)]
    for place in places:
        for factor in order:
            axes = _expanded(node, place, views, factor, wanted[factor])
            if axes:
                views[place][factor].axes = axes


def _expanded(node: Node, place: int, views: Sequence[View], factor: int, wanted: Axes) -> Axes:
    """The axes that an array comes to have along a factor; none where it has no more than before."""
    own = views[place]
    if factor not in own:
        return ()
    before = own[factor].axes
    axes = _fitting(wanted, node.tensors[place], own[factor], node.rule.factors[factor].size)
    if not is_strict_beginning(before, axes):
        return ()
    axes = _truncated(axes, lambda axis, parts: _across(axis, own, factor))
    if node.is_elementwise and place < node.num_operands:
        axes = _as_results(axes, factor, views[node.num_operands :])
    return axes if is_strict_beginning(before, axes) else ()


def _as_results(axes: Axes, factor: int, results: Iterable[View]) -> Axes:
    """Axes of an operand of an elementwise instruction, no more than those of each result: not from one to another."""
    for own in results:
        if factor in own and is_strict_beginning(own[factor].axes, axes):
            axes = own[factor].axes
    return axes


def _by_preference(node: Node, views: Sequence[View], wanted: Sequence[Axes]) -> list[int]:
    """The factors, the one that wins conflicts first."""
    sizes = [math.prod(node.rule.factors[factor].size for factor in own) for own in views]
    keys = {}
    for factor, axes in enumerate(wanted):
        sources = [n for n, own in enumerate(views) if axes and factor in own and is_beginning(axes, own[factor].axes)]
        best = max(sources, key=lambda n: (sizes[n], -n), default=-1)
        parts = count(axes) if node.is_elementwise else 0
        keys[factor] = (-sizes[best] if sources else 1, -parts, best, factor)
    return sorted((f for f in keys if wanted[f]), key=keys.__getitem__)
