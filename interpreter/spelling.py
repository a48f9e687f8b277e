"""The ops that a plan spells as Python operators, where NumPy's own arithmetic is XLA's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import AnyShape, Shape
from xbuild.graph import Instruction

_NUMBERS = frozenset({"signed", "unsigned", "float", "complex"})
_BITS = frozenset({"pred", "signed", "unsigned"})

_BINARY = {
    "add": (_NUMBERS, "{} + {}"),
    "subtract": (_NUMBERS, "{} - {}"),
    "multiply": (_NUMBERS - {"complex"}, "{} * {}"),
    "divide": (frozenset({"float"}), "{} / {}"),
    "and": (_BITS, "{} & {}"),
    "or": (_BITS, "{} | {}"),
    "xor": (_BITS, "{} ^ {}"),
}
_UNARY = {"negate": (_NUMBERS, "-{}"), "not": (_BITS, "~{}"), "copy": (_NUMBERS | {"pred"}, "{}")}
_ROWS = _BINARY | _UNARY
_COMPARE = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def spelled(instruction: Instruction, operands: Sequence[str]) -> str | None:
    """The op as a Python expression of its operands, or None where its rule must be called."""
    shapes = [operand.shape for operand in instruction.operands]
    if not _same_native(shapes):
        return None
    kind = shapes[0].dtype.kind
    if instruction.opcode == "compare":
        return _compared(instruction.attributes, kind, operands)
    kinds, text = _ROWS.get(instruction.opcode, (frozenset(), ""))
    return text.format(*operands) if kind in kinds else None


def _compared(attributes: Any, kind: str, operands: Sequence[str]) -> str | None:
    if attributes.type == "TOTALORDER" or kind == "complex":
        return None
    return f"{operands[0]} {_COMPARE[attributes.direction]} {operands[1]}"


def _same_native(shapes: Sequence[AnyShape]) -> bool:
    types = {shape.dtype if isinstance(shape, Shape) else None for shape in shapes}
    return len(types) == 1 and None not in types and all(t is not None and t.is_native for t in types)
