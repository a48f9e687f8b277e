"""Ops that a plan writes as Python operators or NumPy functions, where NumPy's arithmetic equals XLA's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape
from shape_inference.elided import ElidedArray
from xbuild.core.graph import Instruction

from ..kernels.elementwise import BINARY, UNARY

_NUMBERS = frozenset({"signed", "unsigned", "float", "complex"})
_BITS = frozenset({"pred", "signed", "unsigned"})

_INFIX = {
    "add": (_NUMBERS, "{} + {}"),
    "subtract": (_NUMBERS, "{} - {}"),
    "multiply": (_NUMBERS - {"complex"}, "{} * {}"),
    "divide": (frozenset({"float"}), "{} / {}"),
    "and": (_BITS, "{} & {}"),
    "or": (_BITS, "{} | {}"),
    "xor": (_BITS, "{} ^ {}"),
}
_PREFIX = {"negate": (_NUMBERS, "-{}"), "not": (_BITS, "~{}"), "copy": (_NUMBERS | {"pred"}, "{}")}
_ROWS = _INFIX | _PREFIX
_COMPARE = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def spelled(instruction: Instruction, operands: Sequence[str]) -> str | None:
    """The op as a Python expression of its operands; None where the value rule must be called."""
    kind = _native_kind([operand.shape for operand in instruction.operands])
    if kind is None:
        return None
    if instruction.opcode == "compare":
        return _compared(instruction.attributes, kind, operands)
    kinds, text = _ROWS.get(instruction.opcode, (frozenset(), ""))
    return text.format(*operands) if kind in kinds else None


def kernel(instruction: Instruction) -> Callable[..., Any] | None:
    """The NumPy function of the op for operands of one native type; None where the value rule must be called."""
    kernels = BINARY.get(instruction.opcode) or UNARY.get(instruction.opcode)
    shape = instruction.operands[0].shape if kernels else None
    if kernels is None or _native_kind([o.shape for o in instruction.operands]) is None or not isinstance(shape, Shape):
        return None
    bare = _BARE.get(instruction.opcode)
    if bare is not None and any(map(_has_no_zero, instruction.operands)):
        return bare
    return kernels.get(shape.dtype.dtype.kind)


_BARE: dict[str, Callable[..., Any]] = {"maximum": np.maximum, "minimum": np.minimum}
"""NumPy's functions for operands that cannot both be zero; of two zeros NumPy returns either sign, by position."""


def _has_no_zero(instruction: Instruction) -> bool:
    """Whether an instruction is a constant without a zero, or the broadcast of one."""
    while instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    if instruction.opcode != "constant" or isinstance(instruction.attributes.literal, ElidedArray):
        return False
    return bool(np.all(instruction.attributes.literal != 0))


def _compared(attributes: Any, kind: str, operands: Sequence[str]) -> str | None:
    if attributes.type == "TOTALORDER" or kind == "complex":
        return None
    return f"{operands[0]} {_COMPARE[attributes.direction]} {operands[1]}"


def _native_kind(shapes: Sequence[AnyShape]) -> str | None:
    """The kind of the element type if all shapes are arrays of one type that NumPy computes in natively; else None."""
    types = {shape.dtype if isinstance(shape, Shape) else None for shape in shapes}
    only = types.pop() if len(types) == 1 else None
    return only.kind if only is not None and only.is_native else None
