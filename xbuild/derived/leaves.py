"""Convenience forms of constant and iota, and `is_constant`."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape, primitive_type

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Instruction
from ..core.op import opcodes
from .support import convert_numbers, dressed, normalize_dimensions, require_value
from .support import literal as literal_of

__all__ = ["constant", "iota", "is_constant"]


@dressed
def constant(builder: Builder, literal: Any, dtype: PrimitiveType | None = None, *, name: str | None = None) -> Value:
    """Return a constant from a Python number, a (nested) list or an array; `dtype` selects a different element type.

    Shapes: Python's int, float, complex and bool become s32, f32, c64 and pred. An array keeps its dtype.
    Raises: element_type_mismatch if the type cannot hold one of the numbers; invalid_operand (BuildError) if the
    literal is not a number.

    >>> import xbuild as xb
    >>> builder = xb.Builder("b")
    >>> xb.constant(builder, 2.5), xb.constant(builder, [1, 2], xb.bf16)
    (%constant.1: f32[], %constant.2: bf16[2])

    Source: xla_builder.h, ConstantR0, ConstantR1, ConstantLiteral.
    """
    array = (
        literal_of(literal) if dtype is None else convert_numbers(np.asarray(literal), primitive_type(dtype), literal)
    )
    return ops.constant(builder, literal=array, name=name)


def iota(builder: Builder, shape: Shape | PrimitiveType, iota_dimension: int = 0, *, name: str | None = None) -> Value:
    """Return an array in which each element is its own index along `iota_dimension`.

    If `shape` is an element type, the arguments have XlaBuilder's form (type, size).
    Raises: the same errors as xb.ops.iota.

    >>> import xbuild as xb
    >>> builder = xb.Builder("b")
    >>> xb.iota(builder, xb.s32[2, 3], 1), xb.iota(builder, xb.f32, 5)
    (%iota.1: s32[2,3], %iota.2: f32[5])

    Source: Operation Semantics, Iota.
    """
    if isinstance(shape, PrimitiveType):
        shape, iota_dimension = shape[iota_dimension], 0
    rank = shape.rank if isinstance(shape, Shape) else None
    return ops.iota(builder, shape=shape, iota_dimension=normalize_dimensions(iota_dimension, rank), name=name)


_OF_THE_RUN = opcodes(lambda op: op.depends_on in ("device", "random_state", "target"))


def is_constant(operand: Value) -> bool:
    """Return whether a value is the same in every run, independent of parameters, other devices, the host and random
    numbers.

    Raises: invalid_operand (BuildError) if the operand is not a value.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> ones = xb.broadcast(xb.constant(x.builder, 1.0), (2,))
    >>> xb.is_constant(ones), xb.is_constant(x + ones)
    (True, False)

    Source: xla_builder.h, IsConstant.
    """
    todo, seen = [require_value(operand).instruction], set()
    while todo:
        instruction = todo.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        if instruction.opcode == "parameter" or _depends_on_the_run(instruction):
            return False
        todo.extend(instruction.operands)
    return True


def _depends_on_the_run(instruction: Instruction) -> bool:
    """Whether an instruction or one of its callees depends on the device, on chance, a target or communication."""
    from ..properties.effects import communicates_itself

    inside = (each for called in instruction.called for c in called.reachable() for each in c.instructions)
    return any(each.opcode in _OF_THE_RUN or communicates_itself(each) for each in (instruction, *inside))
