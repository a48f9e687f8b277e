"""Windows that slide over a cut dimension: each device fetches the elements under its windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve

from shape_inference import Shape
from shape_inference.windows import WindowDimension

from ...axis import count
from ...planning.record import constant
from ..exchanges.exchange import Exchange, of_windows
from ..exchanges.lines import Line, whole_line
from ..exchanges.recorded import Along, exchanged
from ..parts.frame import Frame
from ..parts.masks import combiner_of, neutral
from ..parts.tables import Cut, Operands, halos, local_attributes, preparing
from .contraction import spatial

Fetched: TypeAlias = "dict[int, Exchange | None]"
"""By dimension of the operand what devices want; nothing for a dimension that is not moved."""


@halos
def reduce_window(cut: Cut) -> Fetched:
    window = cut.instruction.attributes.window or ()
    moved = [dim for dim in range(len(window)) if _kind(cut, dim) == "permutation"]
    return {dim: _under(cut, window[dim], dim, dim) for dim in moved}


@halos
def convolution(cut: Cut) -> Fetched:
    """For windows the elements under them; for a part of each window the elements under that part."""
    found: Fetched = {}
    for dim, kernel, out, window in spatial(cut.instruction):
        if _kind(cut, dim) == "permutation":
            found[dim] = _under(cut, window, dim, out)
        elif _kind(cut, dim) == "reduction":
            found[dim] = _under_part(cut, window, dim, kernel)
    return found


def _kind(cut: Cut, dim: int) -> str:
    """The kind of the factor that a dimension of the first operand is cut along; empty where it is not cut."""
    rule = cut.site.rule
    return next((rule.factors[f].kind for f in rule.operands[0][dim] if cut.assignment[f]), "")


def _under_part(cut: Cut, window: WindowDimension, dim: int, kernel: int) -> Exchange | None:
    """The elements under a device's part of the kernel, for all windows; None where the parts are not equal."""
    extent, shape = _extent(cut, dim), cut.instruction.operands[1].shape
    parts, size = _parts(cut, dim), cut.operand_dims(1)[kernel]
    assert isinstance(shape, Shape)
    if shape.dims[kernel] % parts:
        return None
    span = (size - 1) * window.window_dilation + 1 + (window.places(extent) - 1) * window.stride
    step = size * window.window_dilation
    return of_windows(_dilated(cut, window, dim), extent, -window.padding_low, step, span, (span,) * parts)


def _extent(cut: Cut, dim: int) -> int:
    shape = cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    return shape.dims[dim]


def _parts(cut: Cut, dim: int) -> int:
    """Into how many parts a dimension of the first operand is cut."""
    sharding = cut.operands[0]
    assert sharding is not None
    return count(sharding.dim(dim).axes)


def _dilated(cut: Cut, window: WindowDimension, dim: int) -> Line:
    return whole_line(_extent(cut, dim)).padded(0, 0, window.base_dilation - 1)


def _under(cut: Cut, window: WindowDimension, dim: int, out: int) -> Exchange | None:
    """The elements under the windows of a device, with the gaps of a dilated base."""
    local, total = cut.result_dims()[out], window.places(_extent(cut, dim))
    many = [min(local, max(0, total - place * local)) for place in range(_parts(cut, dim))]
    used = [(number - 1) * window.stride + window.span if number else 0 for number in many]
    size = (local - 1) * window.stride + window.span
    line = _dilated(cut, window, dim)
    return of_windows(line, _extent(cut, dim), -window.padding_low, local * window.stride, size, used)


Filler: TypeAlias = Callable[[Cut, Operands], Any]


def _zeros(cut: Cut, operands: Operands) -> Any:
    shape = cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    return np.zeros((), shape.dtype.dtype)


def _nothing(cut: Cut) -> Any:
    """The number that a window leaves every other number as it is with, as it does with padding."""
    shape, combiner = cut.instruction.operands[0].shape, combiner_of(cut.instruction.attributes.to_apply)
    assert isinstance(shape, Shape)
    assert combiner is not None
    return neutral(combiner, shape.dtype)


FILLERS: dict[str, Filler] = {
    "reduce_window": lambda cut, operands: _nothing(cut),
    "convolution": _zeros,
}


def _fetched(earlier: Callable[[Frame, Cut, Operands], Operands] | None) -> Callable[[Frame, Cut, Operands], Operands]:
    """Operands of which the first has the elements that the device wants."""

    def fetched(frame: Frame, cut: Cut, operands: Operands) -> Operands:
        opcode = cut.instruction.opcode
        found = operands if earlier is None else earlier(frame, cut, operands)
        for dim, wanted in halos[opcode](cut).items():
            filler = constant(frame.builder, FILLERS[opcode](cut, found))
            along = Along(frame, cut.operands[0].dim(dim).axes, dim)  # type: ignore[union-attr]
            found = [exchanged(along, found[:1], wanted, cut.instruction, filler), *found[1:]]
        return found

    return fetched


for _opcode in FILLERS:
    _earlier = preparing.pop(_opcode, None)
    preparing.enter(_opcode, _fetched(_earlier))


def _still(window: WindowDimension) -> WindowDimension:
    """The window over elements that are all at hand, with gaps and padding."""
    return evolve(window, padding_low=0, padding_high=0, base_dilation=1)


@local_attributes
def reduce_window_(cut: Cut) -> dict[str, Any]:
    moved, window = halos["reduce_window"](cut), cut.instruction.attributes.window
    return {"window": tuple(_still(each) if dim in moved else each for dim, each in enumerate(window or ()))}


_grouped = local_attributes.pop("convolution")


def _convolved(cut: Cut) -> dict[str, Any]:
    found, moved = _grouped(cut), halos["convolution"](cut)
    dims = cut.instruction.attributes.dimension_numbers.input_spatial_dimensions
    pairs = zip(dims, found["window"], strict=True)
    return found | {"window": tuple(_still(each) if dim in moved else each for dim, each in pairs)}


local_attributes.enter("convolution", _convolved)
