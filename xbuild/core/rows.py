"""Declarations of elementwise ops, each by a row: opcode, source, sentence and example."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shape_inference.ops.elementwise import BINARY, UNARY, Types
from shape_inference.rules import MissingRule

from .builder import Value
from .op import op
from .properties import Denormals, Order, Properties, Work


def unary(
    opcode: str, source: str, sentence: str, example: str, *, denormals: Denormals = "flushed", work: Work = "each"
) -> Callable[[Value], Value]:
    """Declare an elementwise op of one operand."""

    def declaration(operand: Value) -> Value: ...  # type: ignore[empty-body]

    properties = Properties("same_place", denormals=denormals, work=work)
    return _declared(declaration, properties, (opcode, source, sentence, example), UNARY)


def binary(
    opcode: str, source: str, sentence: str, example: str, *, order: Order = "fixed", work: Work = "each"
) -> Callable[[Value, Value], Value]:
    """Declare an elementwise op of two operands of one shape."""

    def declaration(lhs: Value, rhs: Value) -> Value: ...  # type: ignore[empty-body]

    properties = Properties("same_place", order=order, denormals="flushed", mixes_precisions=True, work=work)
    return _declared(declaration, properties, (opcode, source, sentence, example), BINARY)


def _declared(
    declaration: Callable[..., Value], properties: Properties, row: tuple[str, ...], allowed: Mapping[str, Types]
) -> Callable[..., Value]:
    """Declare the op of a row; its example is `shapes: arguments -> printed result`."""
    opcode, source, sentence, example = row
    if opcode.strip("_") not in allowed:
        raise MissingRule(f"{opcode} has no row for its element types in shape_inference/ops/elementwise.py")
    _, types = allowed[opcode.strip("_")]
    call, result = example.split(" -> ")
    shapes, arguments = call.split(": ")
    declaration.__name__ = declaration.__qualname__ = opcode
    declaration.__module__ = "xbuild.ops.elementwise"
    declaration.__doc__ = f"""{sentence}

    Shapes: one shape for all operands and the result; element types: {types}. Floats of two precisions give the wider.
    Raises: not_array; rank_mismatch; dimension_mismatch; element_type_mismatch; element_type_unsupported.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> evaluate(xb.computation({shapes})(xb.ops.{opcode}), {arguments})
    {result}

    Source: {source}.
    """
    return op(properties)(declaration)
