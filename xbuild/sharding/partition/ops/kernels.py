"""Convolutions whose kernel is cut along its window: where its parts are not equal, each step leaves padding out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from attrs import evolve

from shape_inference.windows import WindowDimension

from .... import ops
from ....core.builder import Value
from ...planning.record import dims_of, spread, zero
from ..exchanges.recorded import Along
from ..parts.frame import Frame
from ..parts.tables import Cut, Operands, local_attributes, recording
from .contraction import spatial
from .windows import held, kind_of

Step: TypeAlias = "tuple[int, int]"
"""Places inside of a window, from the first to the one after the last."""


@recording
def convolution(frame: Frame, cut: Cut, operands: Operands) -> Value | None:
    """A sum of convolutions by steps of the window that a device holds whole or not at all; zeros where it does not.

    Zeros for the numbers of both operands are right where one of them is infinite, too.
    """
    uneven = [each for each in _summed(cut) if len({*held(cut, 1, each[1])}) > 1]
    if not uneven:
        return None
    found: Value | None = None
    for steps in itertools.product(*([*_steps(held(cut, 1, each[1]))] for each in uneven)):
        value = _step(frame, cut, operands, list(zip(uneven, steps, strict=True)))
        found = value if found is None else ops.add(found, value)
    return found


Summed: TypeAlias = "tuple[int, int, int, WindowDimension]"


def _summed(cut: Cut) -> list[Summed]:
    return [each for each in spatial(cut.instruction) if kind_of(cut, each[0]) == "reduction"]


def _steps(counts: Sequence[int]) -> Iterator[Step]:
    """The places between one number of places that a device holds and the next."""
    return itertools.pairwise(sorted({0, *counts}))


def _step(frame: Frame, cut: Cut, operands: Operands, steps: Sequence[tuple[Summed, Step]]) -> Value:
    lhs, rhs = operands
    attributes = {**cut.instruction.attribute_values(), **local_attributes["convolution"](cut)}
    window = list(attributes["window"])
    for (dim, kernel, _, given), (low, high) in steps:
        counts, wide = held(cut, 1, kernel), given.window_dilation
        others = (given.places(_extent(cut, dim)) - 1) * given.stride
        along, inside = (Along(frame, _axes(cut, n, each), each) for n, each in ((0, dim), (1, kernel)))
        has = {place for place, count in enumerate(counts) if count >= high}
        lhs = _where(along, has, along.slice(lhs, low * wide, (high - low - 1) * wide + 1 + others))
        rhs = _where(inside, has, inside.slice(rhs, low, high - low))
        place = cut.instruction.attributes.dimension_numbers.input_spatial_dimensions.index(dim)
        window[place] = evolve(window[place], size=high - low)
    attributes["window"] = tuple(window)
    return frame.record("convolution", [lhs, rhs], cut.instruction.segments, attributes, cut.instruction.name)


def _axes(cut: Cut, operand: int, dim: int) -> tuple:  # type: ignore[type-arg]
    sharding = cut.operands[operand]
    assert sharding is not None
    return sharding.dim(dim).axes


def _extent(cut: Cut, dim: int) -> int:
    return cut.instruction.operands[0].shape.dims[dim]  # type: ignore[union-attr]


def _where(along: Along, places: set[int], value: Value) -> Value:
    """The value at these places, zeros elsewhere."""
    if len(places) == along.count:
        return value
    dims = dims_of(value)
    return ops.select(spread(along.is_one_of(places), dims), value, spread(zero(value), dims))
