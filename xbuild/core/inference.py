"""The shape of a result by the shape rule of its op, whose answers are cached by shapes and attributes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from shape_inference import AnyShape, infer

from .graph import Computation

if TYPE_CHECKING:
    from .op import Schema


def infer_shape(schema: Schema, shapes: tuple[Any, ...], segments: tuple[int, ...] | None, record: Any) -> AnyShape:
    """The shape of an op's result for these operand shapes and attributes. Raises ShapeError where the op refuses."""
    values: tuple[Any, ...] = ()
    if record is not None:
        values = tuple(vars(record).values())
        if schema.regions:
            values = tuple(map(_signature, values))
    try:
        return _inferred(schema, shapes, segments, values)
    except TypeError:  # a literal is not hashable
        return _inferred.__wrapped__(schema, shapes, segments, values)


@functools.lru_cache(maxsize=16384)
def _inferred(
    schema: Schema, shapes: tuple[Any, ...], segments: tuple[int, ...] | None, values: tuple[Any, ...]
) -> AnyShape:
    """The cached answer of the shape rule, which is a pure function; refusals are not cached."""
    attributes = dict(zip(schema.readers, values, strict=True))
    return infer[schema.opcode](*schema.unflatten(shapes, segments), **attributes)  # type: ignore[no-any-return]


def _signature(attribute: Any) -> Any:
    """An attribute as shape inference reads it: a region by its signature."""
    if type(attribute) is Computation:
        return attribute.signature
    return tuple(map(_signature, attribute)) if type(attribute) is tuple else attribute
