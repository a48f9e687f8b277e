"""Padding at the end of uneven parts, replaced by a neutral element before elements are combined."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape
from shape_inference.types import s32

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation
from ...axis import Axis, count
from ...planning.record import constant, dims_of, spread
from ...sharding import Sharding
from .frame import Frame

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def combiner_of(computation: Computation) -> str | None:
    """The opcode of a computation that combines its two parameters by one op; None for any other."""
    root = computation.root
    if root.opcode not in COMBINERS or len(computation.parameters) != 2:
        return None
    return root.opcode if {*root.operands} == {*computation.parameters} and len(computation.instructions) == 3 else None


def neutral(opcode: str, dtype: PrimitiveType) -> Any:
    """The number that a combiner leaves every other number as it is with; None where the type has none."""
    if opcode in ("add", "or", "xor"):
        return np.zeros((), dtype.dtype) if dtype.name != "f8e8m0fnu" else None
    if opcode == "multiply":
        return np.ones((), dtype.dtype)
    if dtype.kind == "pred":
        return np.array(opcode in ("and", "minimum"))
    if opcode == "and":
        return _bits(dtype)
    return _extreme(dtype, is_least=opcode == "maximum")


def _bits(dtype: PrimitiveType) -> Any:
    return (~np.zeros((), dtype.dtype)) if dtype.is_integer and dtype.is_native else None


def _extreme(dtype: PrimitiveType, is_least: bool) -> Any:
    if dtype.is_integer and dtype.is_native:
        about = np.iinfo(dtype.dtype)
        return np.array(about.min if is_least else about.max, dtype.dtype)
    if dtype.is_float and dtype.name in ("f16", "bf16", "f32", "f64"):
        return np.array(-np.inf if is_least else np.inf).astype(dtype.dtype)
    return None


def within(frame: Frame, sharding: Sharding, shape: Shape, dims: list[int]) -> Value:
    """pred of the part's extents: whether an element is one of the array, not padding, along these dimensions."""
    local = _local(sharding, shape)
    found: Value | None = None
    for dim in dims:
        axes = sharding.dim(dim).axes
        place = ops.iota(frame.builder, shape=s32[tuple(local)], iota_dimension=dim)
        start = spread(frame.recorder.place(axes, local[dim]), local)
        limit = spread(constant(frame.builder, np.int32(shape.dims[dim])), local)
        inside = ops.compare(ops.add(place, start), limit, direction="LT")
        found = inside if found is None else ops.and_(found, inside)
    return found if found is not None else spread(constant(frame.builder, np.array(True)), local)


def _local(sharding: Sharding, shape: Shape) -> list[int]:
    return [-(-extent // count(dim.axes)) for extent, dim in zip(shape.dims, sharding.dims, strict=True)]


def uneven_dims(sharding: Sharding, shape: Shape) -> list[int]:
    """The dimensions whose parts have padding."""
    return [number for number, dim in enumerate(sharding.dims) if shape.dims[number] % count(dim.axes)]


def masked(frame: Frame, value: Value, sharding: Sharding, shape: Shape, dims: list[int], number: Any) -> Value:
    """A part in which padding along these dimensions is a number."""
    if not dims:
        return value
    filler = spread(constant(frame.builder, number), dims_of(value))
    return ops.select(within(frame, sharding, shape, dims), value, filler)


def count_of(axes: tuple[Axis, ...]) -> int:
    """Into how many parts axes cut together."""
    return count(axes)
