"""Gradients of pooling: windows that lie side by side stay on the device that has their elements."""

from __future__ import annotations

from shape_inference.windows import WindowDimension

from ....core.graph import Instruction
from ...factors import ShardingRule
from ...rules.builder import FactorBuilder


def side_by_side(instruction: Instruction) -> ShardingRule | None:
    """The rule of windows that lie side by side, which are not cut: the source has an element for each; else None."""
    builder = FactorBuilder(instruction)
    base, source = builder.operands[:2]
    windows = instruction.attributes.window or ()
    if not all(map(_lie_side_by_side, windows, base, source)):
        return None
    for dim, window in enumerate(windows):
        builder.add(source[dim], (dim, dim), (dim,), "pass_through" if source[dim] > 1 else "need_replication")
        builder.add(window.size, (dim, None), (dim,), "need_replication")
    return builder.rule()


def _lie_side_by_side(window: WindowDimension, extent: int, count: int) -> bool:
    return window == WindowDimension(window.size, stride=window.size) and extent == count * window.size
