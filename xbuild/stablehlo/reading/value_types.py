"""Shapes of types; which types no value of a module has, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, s64

from ..spelling.element_types import TYPES_BY_NAME
from ..syntax.trees import Operation
from ..syntax.types import FutureType, OpaqueType, QuantizedType, ScalarType, TensorType

if TYPE_CHECKING:
    from .reader import Reader

_SHAPES = (Shape, TupleShape, TokenShape)
_SHARDINGS = ("!shard.sharding", "!mesh.sharding")  # values that a program has only while it is read


def shape_of(reader: Reader, type_: Any, operation: Operation) -> AnyShape:
    """The shape of a type. Raises Fault where the project has no values of the type."""
    if isinstance(type_, _SHAPES):
        return type_
    if isinstance(type_, ScalarType) and (type_.text == "index" or type_.text in TYPES_BY_NAME):
        return Shape(TYPES_BY_NAME.get(type_.text, s64))
    if isinstance(type_, OpaqueType) and type_.text in _SHARDINGS:
        return TupleShape(())
    if isinstance(type_, TensorType) and isinstance(type_.element, QuantizedType) and None not in type_.dims:
        return Shape(type_.element.storage, type_.dims)  # type: ignore[arg-type]
    if isinstance(type_, TensorType) and isinstance(type_.element, QuantizedType):
        reader.fail(
            "element_type_unsupported", f"xbuild does not read quantized types yet: {type_}", place=operation.place
        )
    if isinstance(type_, TensorType):
        reader.fail(
            "missing_shape",
            f"{type_} has extents that are not known, and xbuild reads tensors with all extents or bounds",
            "export the program for given sizes",
            place=operation.place,
        )
    what = "a future" if isinstance(type_, FutureType) else "this type"
    return reader.fail(
        "element_type_unsupported", f"xbuild has no values of {what}: {str(type_)[:80]}", place=operation.place
    )
