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
from ..reasons import Wish
from .contraction import spatial

Fetched: TypeAlias = "dict[tuple[int, int], Exchange | None]"
"""By operand and dimension what devices want; nothing for a dimension that is not moved, None for too much."""


@halos
def reduce_window(cut: Cut) -> Fetched:
    window = cut.instruction.attributes.window or ()
    moved = [dim for dim in range(len(window)) if kind_of(cut, dim) == "permutation"]
    return {(0, dim): _under(cut, window[dim], dim, dim) for dim in moved}


@halos
def convolution(cut: Cut) -> Fetched:
    """For windows the elements under them; for a part of each window the elements under that part."""
    found: Fetched = {}
    for dim, kernel, out, window in spatial(cut.instruction):
        if kind_of(cut, dim) == "permutation":
            found[0, dim] = _under(cut, window, dim, out)
        elif kind_of(cut, dim) == "reduction":
            found[0, dim] = _under_part(cut, window, dim, kernel)
    return found


def kind_of(cut: Cut, dim: int) -> str:
    """The kind of the factor that a dimension of the first operand is cut along; empty where it is not cut."""
    rule = cut.site.rule
    return next((rule.factors[f].kind for f in rule.operands[0][dim] if cut.assignment[f]), "")


def _under_part(cut: Cut, window: WindowDimension, dim: int, kernel: int) -> Exchange | None:
    """The elements under a device's part of the kernel, for all windows."""
    extent, counts = _extent(cut, 0, dim), held(cut, 1, kernel)
    others = (window.places(extent) - 1) * window.stride
    used = tuple((number - 1) * window.window_dilation + 1 + others if number else 0 for number in counts)
    step = counts[0] * window.window_dilation
    return of_windows(_dilated(cut, window, dim), extent, -window.padding_low, step, used[0], used)


def held(cut: Cut, operand: int, dim: int) -> tuple[int, ...]:
    """How many elements of a dimension each place along its axes holds, without padding."""
    extent, local = _extent(cut, operand, dim), cut.operand_dims(operand)[dim]
    return tuple(min(local, max(0, extent - place * local)) for place in range(_parts(cut, operand, dim)))


def _extent(cut: Cut, operand: int, dim: int) -> int:
    shape = cut.instruction.operands[operand].shape
    assert isinstance(shape, Shape)
    return shape.dims[dim]


def _parts(cut: Cut, operand: int, dim: int) -> int:
    """Into how many parts a dimension of an operand is cut."""
    sharding = cut.operands[operand]
    assert sharding is not None
    return count(sharding.dim(dim).axes)


def _dilated(cut: Cut, window: WindowDimension, dim: int) -> Line:
    return whole_line(_extent(cut, 0, dim)).padded(0, 0, window.base_dilation - 1)


def _under(cut: Cut, window: WindowDimension, dim: int, out: int) -> Exchange | None:
    """The elements under the windows of a device: with the gaps of a dilated base where these differ by device."""
    extent, local = _extent(cut, 0, dim), cut.result_dims()[out]
    total, low = window.places(extent), -window.padding_low
    many = [min(local, max(0, total - place * local)) for place in range(_parts(cut, 0, dim))]
    used = [(number - 1) * window.stride + window.span if number else 0 for number in many]
    size, step = (local - 1) * window.stride + window.span, local * window.stride
    around = _gaps(window, local)
    if around is None:
        return of_windows(_dilated(cut, window, dim), extent, low, step, size, used)
    wide = window.base_dilation
    used = [max(0, -((around[0] - each) // wide)) for each in used]
    size = (size - around[0] - around[1] - 1) // wide + 1
    return of_windows(whole_line(extent), extent, (low + around[0]) // wide, step // wide, size, used)


def _gaps(window: WindowDimension, local: int) -> tuple[int, int] | None:
    """Before the first and after the last element under the windows of a device the number of gaps, one on all devices.

    None where it is another one on each, or no element is under the windows.
    """
    wide, size = window.base_dilation, (local - 1) * window.stride + window.span
    low = window.padding_low % wide
    is_alike = (local * window.stride) % wide == 0 and low < size
    return (low, (size - low - 1) % wide) if is_alike else None


def _nothing(cut: Cut) -> Any:
    """The number that stands where nothing is: it leaves every other number of a window, or of a sum, as it is."""
    attributes, shape = cut.instruction.attributes, cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    if cut.instruction.opcode == "convolution":
        return np.zeros((), shape.dtype.dtype)
    by = attributes.to_apply if cut.instruction.opcode == "reduce_window" else attributes.scatter
    combiner = combiner_of(by)
    assert combiner is not None
    return neutral(combiner, shape.dtype)


def _fetched(earlier: Callable[[Frame, Cut, Operands], Operands] | None) -> Callable[[Frame, Cut, Operands], Operands]:
    """Operands of which the first has the elements that the device wants."""

    def fetched(frame: Frame, cut: Cut, operands: Operands) -> Operands:
        found = [*operands] if earlier is None else [*earlier(frame, cut, operands)]
        for (number, dim), wanted in halos[cut.instruction.opcode](cut).items():
            sharding, filler = cut.operands[number], constant(frame.builder, _nothing(cut))
            assert sharding is not None
            wish = Wish(cut.instruction, (cut.instruction.operands[number],), wanted)
            along = Along(frame, sharding.dim(dim).axes, dim)
            found[number] = exchanged(along, [found[number]], wanted, wish, filler)
        return found

    return fetched


for _opcode in ("reduce_window", "convolution", "select_and_scatter"):
    _earlier = preparing.pop(_opcode, None)
    preparing.enter(_opcode, _fetched(_earlier))


def _still(window: WindowDimension, local: int) -> WindowDimension:
    """The window over elements that are all at hand, with padding, and with gaps but for those that are one on all."""
    around = _gaps(window, local)
    if around is None:
        return evolve(window, padding_low=0, padding_high=0, base_dilation=1)
    return evolve(window, padding_low=around[0], padding_high=around[1])


@local_attributes
def reduce_window_(cut: Cut) -> dict[str, Any]:
    moved, window = halos["reduce_window"](cut), cut.instruction.attributes.window
    pairs = enumerate(zip(window or (), cut.result_dims(), strict=bool(window)))
    return {"window": tuple(_still(*each) if (0, dim) in moved else each[0] for dim, each in pairs)}


_grouped = local_attributes.pop("convolution")


def _convolved(cut: Cut) -> dict[str, Any]:
    found: dict[str, Any] = _grouped(cut)
    several = list(found["window"])
    dims = [each for each, *_ in spatial(cut.instruction)]
    numbers = cut.instruction.attributes.dimension_numbers
    for place, dim in enumerate(numbers.input_spatial_dimensions):
        kind = kind_of(cut, dim) if dim in dims else ""
        if kind == "permutation":
            several[place] = _still(several[place], cut.result_dims()[numbers.output_spatial_dimensions[place]])
        elif kind == "reduction":
            several[place] = evolve(several[place], padding_low=0, padding_high=0, base_dilation=1)
    return found | {"window": tuple(several)}


local_attributes.enter("convolution", _convolved)
