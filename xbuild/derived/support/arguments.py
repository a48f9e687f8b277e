"""Arguments of comfortable forms: the values among them, their builder, and the element type of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shape_inference import AnyShape, PrimitiveType, Shape

from ... import ops
from ...core.builder import Builder, Value, stands_for
from ...core.diagnostics import BuildError
from .operands import as_value


def shape_of(operand: Any) -> AnyShape:
    """The shape of a value; anything else is refused."""
    return known(operand).shape


def known(operand: Any) -> Value:
    operand = operand if isinstance(operand, Value) else stands_for(operand)
    if not isinstance(operand, Value):
        raise BuildError(
            "invalid_operand",
            f"operand {operand!r} is no value of a builder",
            "xb.constant(builder, literal=...) makes one",
        )
    return operand


def dtype_of(operand: Any) -> PrimitiveType | None:
    """The element type of an array value; None for anything else."""
    shape = getattr(operand, "shape", None)
    return shape.dtype if isinstance(shape, Shape) else None


def builder_among(operands: Iterable[Any], builder: Builder | None = None) -> Builder:
    """The builder of the first value, at any depth of lists, or else the given builder."""
    for operand in map(stands_for, operands):
        if isinstance(operand, Value):
            return operand.builder
        if isinstance(operand, tuple | list):
            try:
                return builder_among(operand)
            except BuildError:
                continue
    if builder is None:
        raise BuildError("no_builder", "no operand tells the builder; pass it as builder=")
    return builder


def as_list(operands: Any) -> Sequence[Any]:
    return operands if isinstance(operands, tuple | list) else (operands,)


def as_values(
    operands: Sequence[Any], dtypes: Sequence[PrimitiveType | None] | None = None, builder: Builder | None = None
) -> list[Value]:
    """Values as they are; numbers and arrays as constants, of these types or, a Python number, of the first value's."""
    if all(type(operand) is Value for operand in operands):
        return list(operands)
    operands = [stands_for(operand) for operand in operands]
    found = builder_among(operands, builder)
    types = [next(filter(None, map(dtype_of, operands)), None)] * len(operands) if dtypes is None else dtypes
    return [as_value(found, operand, dtype) for operand, dtype in zip(operands, types, strict=True)]


def packed(operand: Any, builder: Builder | None = None, *, name: str | None = None) -> Value:
    """A value as it is, a tuple or list as one tuple value, a number or array as a constant of its own type."""
    operand = stands_for(operand)
    if isinstance(operand, Value):
        return operand
    found = builder_among((operand,), builder)
    if not isinstance(operand, tuple | list):
        return as_values((operand,), (None,), found)[0]
    return ops.tuple_([packed(each, found) for each in operand], builder=found, name=name)


def operand_precisions(precision: str | Sequence[str] | None) -> tuple[str, ...]:
    """The precision of each operand, in lower case as HLO text has it."""
    if precision is None:
        return ()
    words = (precision, precision) if isinstance(precision, str) else precision
    return tuple(str(word).lower() for word in words)
