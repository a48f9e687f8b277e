"""Element types that HLO text mixes without a convert: of the operands of products, and of what a reducer gives."""

from __future__ import annotations

from shape_inference import AnyShape, PrimitiveType, Shape

from .parsed import ParsedInstruction


def float_of(opcode: str, parsed: ParsedInstruction) -> PrimitiveType | None:
    """The floating point type to which integer operands of a product are converted; None where none are."""
    if opcode not in ("dot", "convolution"):
        return None
    dtypes = [each.shape.dtype for each in parsed.operands if isinstance(each.shape, Shape)]
    floats = [each for each in dtypes if each.is_float]
    is_mixed = len(dtypes) == 2 and len(floats) == 1 and any(each.is_integer for each in dtypes)
    return floats[0] if is_mixed else None


def is_converted(opcode: str, parsed: ParsedInstruction, inferred: AnyShape) -> bool:
    """Whether the result is written with an element type to which XLA converts it.

    That is a poorer type of a product, or the operand's own where an all-reduce adds in a wider one.
    """
    written, operand = parsed.shape, parsed.operand()
    if (
        not isinstance(written, Shape)
        or not isinstance(inferred, Shape)
        or written.with_dtype(inferred.dtype) != inferred
    ):
        return False
    if opcode == "all_reduce":
        return operand is not None and operand.dtype is written.dtype
    return opcode in ("dot", "convolution", "scaled_dot")
