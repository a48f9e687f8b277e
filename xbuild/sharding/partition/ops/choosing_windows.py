"""Select-and-scatter along a cut dimension: each device goes through all windows that touch its part of the result."""

from __future__ import annotations

from typing import Any

from shape_inference.windows import WindowDimension

from ....core.builder import Value
from ....core.graph import Instruction
from ...factors import Factor, ShardingRule
from ..exchanges.exchange import of_windows
from ..exchanges.lines import whole_line
from ..exchanges.recorded import Along
from ..parts.frame import Frame
from ..parts.tables import Cut, Operands, adapted, finishing, halos
from .windows import Fetched, kind_of


@adapted
def select_and_scatter(instruction: Instruction, rule: ShardingRule) -> ShardingRule:
    """Operand, source and result are cut alike along dimensions in which windows are plain, without padding."""
    maps = [[*each] for each in (*rule.operands[:2], *rule.results)]
    factors = [*rule.factors]
    for dim, window in enumerate(instruction.attributes.window or ()):
        if rule.factors[maps[0][dim][0]].kind == "permutation":
            is_free = window == WindowDimension(window.size, stride=window.stride)
            for each in maps:
                each[dim] = (len(factors),)
            factors.append(Factor(_extent(instruction, 0, dim), "permutation" if is_free else "need_replication"))
    operands = (tuple(maps[0]), tuple(maps[1]), *rule.operands[2:])
    return ShardingRule(tuple(factors), operands, (tuple(maps[2]),))


def _extent(instruction: Instruction, operand: int, dim: int) -> int:
    return instruction.operands[operand].shape.dims[dim]  # type: ignore[union-attr]


def _first(window: WindowDimension) -> int:
    """The first window that touches element 0, counted from the one that begins there."""
    return -((window.size - 1) // window.stride)


@halos
def select_and_scatter_(cut: Cut) -> Fetched:
    """The windows that touch a device's part, and the elements under them; None where parts begin inside of windows."""
    found: Fetched = {}
    for dim, window in enumerate(cut.instruction.attributes.window or ()):
        if kind_of(cut, dim) == "permutation":
            found |= _under(cut, dim, window)
    return found


def _under(cut: Cut, dim: int, window: WindowDimension) -> Fetched:
    local, (extent, total) = cut.result_dims()[dim], (_extent(cut.instruction, n, dim) for n in (0, 1))
    parts = len(_used(cut, dim))
    if local % window.stride:
        return {(0, dim): None}
    first, step = _first(window), local // window.stride
    many = step - first
    size = (many - 1) * window.stride + window.size
    operand = of_windows(whole_line(extent), extent, first * window.stride, local, size, (size,) * parts)
    source = of_windows(whole_line(total), total, first, step, many, (many,) * parts)
    return {(0, dim): operand, (1, dim): source}


def _used(cut: Cut, dim: int) -> range:
    sharding, count = cut.operands[0], 1
    assert sharding is not None
    for axis in sharding.dim(dim).axes:
        count *= axis.size
    return range(count)


@finishing
def select_and_scatter__(frame: Frame, cut: Cut, operands: Operands, value: Value) -> Value:
    """The device's part of what its windows give; elements that none of them reaches are the initial value."""
    for dim, window in enumerate(cut.instruction.attributes.window or ()):
        if kind_of(cut, dim) == "permutation":
            value = _own(frame, cut, dim, -_first(window) * window.stride, value, operands[2])
    return value


def _own(frame: Frame, cut: Cut, dim: int, start: int, value: Value, filler: Any) -> Value:
    along, local = Along(frame, (), dim), cut.result_dims()[dim]
    missing = start + local - value.shape.dims[dim]  # type: ignore[union-attr]
    return along.slice(along.pad(value, filler, 0, max(0, missing)), start, local)
