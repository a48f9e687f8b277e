"""Ops whose elements come from other places along a dimension: slices, padding, reversal and sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve

from shape_inference import Shape
from shape_inference.windows import WindowDimension

from ....core.attributes import PaddingDimension
from ....core.builder import Value
from ..parts.frame import Frame
from ..parts.masks import combiner_of, neutral
from ..parts.tables import Cut, Operands, halos, local_attributes, preparing
from ..parts.windows import Reach, reach, windowed

Along: TypeAlias = "dict[int, Reach]"
"""By dimension of the operand the windows that devices want; nothing for a dimension that is not moved."""


def _moved(cut: Cut) -> list[int]:
    """The dimensions of the first operand that are cut and whose elements come from other places."""
    rule, assignment = cut.site.rule, cut.assignment
    return [
        dim
        for dim, factors in enumerate(rule.operands[0])
        if any(rule.factors[f].kind == "permutation" and assignment[f] for f in factors)
    ]


def _extent(cut: Cut, dim: int) -> int:
    shape = cut.instruction.operands[0].shape
    assert isinstance(shape, Shape)
    return shape.dims[dim]


def _reach(cut: Cut, dim: int, first: int, step: int, size: int) -> Reach:
    sharding = cut.operands[0]
    assert sharding is not None
    return reach(sharding.mesh, sharding.dim(dim).axes, _extent(cut, dim), first, step, size)


@halos
def slice(cut: Cut) -> Along:
    attributes, found = cut.instruction.attributes, {}
    for dim in _moved(cut):
        stride, local = attributes.strides[dim] if attributes.strides else 1, cut.result_dims()[dim]
        found[dim] = _reach(cut, dim, attributes.start_indices[dim], local * stride, (local - 1) * stride + 1)
    return found


@halos
def pad(cut: Cut) -> Along:
    found = {}
    for dim in _moved(cut):
        local = cut.result_dims()[dim]
        found[dim] = _reach(cut, dim, -cut.instruction.attributes.padding[dim].low, local, local)
    return found


@halos
def reverse(cut: Cut) -> Along:
    found = {}
    for dim in _moved(cut):
        local, extent = cut.result_dims()[dim], _extent(cut, dim)
        found[dim] = _reach(cut, dim, extent - local, -local, local)
    return found


@halos
def reduce_window(cut: Cut) -> Along:
    window = cut.instruction.attributes.window
    return {dim: _under(cut, window[dim], dim, dim) for dim in _moved(cut)}


@halos
def convolution(cut: Cut) -> Along:
    numbers, window = cut.instruction.attributes.dimension_numbers, cut.instruction.attributes.window
    places = zip(numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, window, strict=True)
    moved = _moved(cut)
    return {dim: _under(cut, each, dim, out) for dim, out, each in places if dim in moved}


def _under(cut: Cut, window: WindowDimension, dim: int, out: int) -> Reach:
    """The elements under the windows of a device."""
    local = cut.result_dims()[out]
    step = local * window.stride
    return _reach(cut, dim, -window.padding_low, step, step - window.stride + window.span)


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
    "slice": _zeros,
    "pad": lambda cut, operands: operands[1],
    "reverse": _zeros,
    "reduce_window": lambda cut, operands: _nothing(cut),
    "convolution": _zeros,
}


def _fetched(earlier: Callable[[Frame, Cut, Operands], Operands] | None) -> Callable[[Frame, Cut, Operands], Operands]:
    """Operands of which the first has the elements that the device wants."""

    def fetched(frame: Frame, cut: Cut, operands: Operands) -> Operands:
        opcode = cut.instruction.opcode
        found = operands if earlier is None else earlier(frame, cut, operands)
        for dim, wanted in halos[opcode](cut).items():
            filler = FILLERS[opcode](cut, found)
            value: Value = windowed(frame, found[0], dim, wanted, cut.instruction, filler)
            found = [value, *found[1:]]
        return found

    return fetched


for _opcode in FILLERS:
    _earlier = preparing.pop(_opcode, None)
    preparing.enter(_opcode, _fetched(_earlier))


def _extended(earlier: Callable[[Cut], dict[str, Any]] | None, change: Callable[[Cut, dict[str, Any]], Any]) -> Any:
    """Local attributes of an op, with what moved dimensions make of them."""

    def attributes(cut: Cut) -> dict[str, Any]:
        found = {} if earlier is None else earlier(cut)
        return found | change(cut, found) if _moved(cut) else found

    return attributes


def _sliced(cut: Cut, found: dict[str, Any]) -> dict[str, Any]:
    moved, attributes = halos["slice"](cut), cut.instruction.attributes
    starts = tuple(0 if dim in moved else start for dim, start in enumerate(attributes.start_indices))
    limits = tuple(moved[d].size if d in moved else limit for d, limit in enumerate(found["limit_indices"]))
    return {"start_indices": starts, "limit_indices": limits}


def _unpadded(cut: Cut, found: dict[str, Any]) -> dict[str, Any]:
    still = PaddingDimension(0, 0, 0)
    moved = _moved(cut)
    return {"padding": tuple(still if d in moved else p for d, p in enumerate(cut.instruction.attributes.padding))}


def _still(window: WindowDimension) -> WindowDimension:
    return evolve(window, padding_low=0, padding_high=0)


def _slid(cut: Cut, found: dict[str, Any]) -> dict[str, Any]:
    moved, window = _moved(cut), cut.instruction.attributes.window
    return {"window": tuple(_still(each) if dim in moved else each for dim, each in enumerate(window))}


def _convolved(cut: Cut, found: dict[str, Any]) -> dict[str, Any]:
    numbers, moved = cut.instruction.attributes.dimension_numbers, _moved(cut)
    pairs = zip(numbers.input_spatial_dimensions, found["window"], strict=True)
    return {"window": tuple(_still(each) if dim in moved else each for dim, each in pairs)}


for _opcode, _change in (("slice", _sliced), ("pad", _unpadded), ("reduce_window", _slid), ("convolution", _convolved)):
    local_attributes[_opcode] = _extended(local_attributes.pop(_opcode, None), _change)
