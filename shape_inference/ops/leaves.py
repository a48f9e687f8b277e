"""Shapes of ops without operands."""

from __future__ import annotations

from typing import Any

from ..dims import dimension, sizes
from ..rules import infer, refuse
from ..types import AnyShape, Shape, array_shape, pred, primitive_type, u32


@infer
def parameter(*, number: int, shape: AnyShape) -> AnyShape:
    if number < 0:
        refuse("invalid_attribute", f"number must be 0 or more, got {number}")
    return shape


@infer
def constant(*, literal: Any) -> Shape:
    return array_shape(primitive_type(literal.dtype), literal.shape)


@infer
def iota(*, shape: Shape, iota_dimension: int) -> Shape:
    sizes("shape", shape.dims)
    dimension("iota_dimension", iota_dimension, "the shape", shape)
    if shape.dtype is pred:
        refuse("element_type_unsupported", f"expected a shape with a numeric element type, got {shape}")
    return shape


@infer
def replica_id() -> Shape:
    return array_shape(u32, ())


@infer
def partition_id() -> Shape:
    return array_shape(u32, ())
