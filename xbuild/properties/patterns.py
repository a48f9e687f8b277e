"""Patterns: constant numbers, broadcast scalars, the ops of reducers, and the neutral elements of these ops."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from shape_inference import PrimitiveType, Shape

from ..core.graph import Computation, Instruction
from ..core.op import OPS


def number_in(instruction: Instruction) -> Any:
    """The number that every element is, if an instruction is a constant number or a broadcast of one; else None."""
    scalar = spread(instruction)
    if scalar is None or scalar.opcode != "constant":
        return None
    return scalar.attributes.literal.reshape(-1)[0]


def spread(instruction: Instruction) -> Instruction | None:
    """The scalar that an instruction is or broadcasts; None for anything else."""
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return None
    while instruction.opcode == "broadcast":
        (instruction,) = instruction.operands
    return instruction if isinstance(instruction.shape, Shape) and instruction.shape.rank == 0 else None


def reducer_of(computation: Computation) -> str | None:
    """The op that a computation applies to its two parameters, such as add; None if it does more."""
    root, parameters = computation.root, computation.parameters
    if root.opcode == "tuple" and len(root.operands) == 1:
        root = root.operands[0]
    if len(parameters) == 2 and root.operands in (parameters, parameters[::-1]) and OPS[root.opcode].is_flat:
        return root.opcode
    return None


def pairwise_reducers(computation: Computation) -> tuple[str, ...] | None:
    """The op of each pair of parameters, if a reducer folds several operands independently; None if it does more."""
    root, parameters = computation.root, computation.parameters
    parts = root.operands if root.opcode == "tuple" else (root,)
    count = len(parameters) // 2
    if len(parts) != count:
        return None
    opcodes = []
    for n, part in enumerate(parts):
        pair = parameters[n], parameters[count + n]
        if part.operands not in (pair, pair[::-1]) or not OPS[part.opcode].is_flat:
            return None
        opcodes.append(part.opcode)
    return tuple(opcodes)


def chooses(computation: Computation) -> bool:
    """Whether each result of a reducer is one of its pair of parameters, as in argmax."""
    root, parameters = computation.root, computation.parameters
    parts = root.operands if root.opcode == "tuple" else (root,)
    count = len(parameters) // 2
    return len(parts) == count and all(
        {*part.operands[-2:]} == {parameters[n], parameters[count + n]}
        and part.opcode in ("select", "maximum", "minimum")
        for n, part in enumerate(parts)
    )


# ----------------------------------------------------------------------------
# Neutral elements: the operand of a reduction by an op that changes nothing, for each element type


@functools.cache
def neutral_element(opcode: str, dtype: PrimitiveType) -> Any:
    """The number n of a type for which `opcode` of n and x is x for every x; None if the type has none.

    `opcode` is add, multiply, maximum, minimum, and, or, xor. The neutral element of a sum of floats is -0, since
    -0 + 0 is 0. That of a maximum is the least number of the type: an infinity if there is one. The result is an
    array without dimensions, which cannot be written to.

    >>> from shape_inference import f32, s8
    >>> [neutral_element(*each).item() for each in (("add", f32), ("maximum", s8), ("minimum", f32))]
    [-0.0, -128, inf]
    """
    number = _neutral(opcode, dtype)
    if number is not None:
        number.flags.writeable = False
    return number


def _neutral(opcode: str, dtype: PrimitiveType) -> Any:
    if opcode == "add":
        return None if dtype.name == "f8e8m0fnu" else additive_zero(dtype)  # its numbers are powers of two
    if opcode == "multiply":
        return np.ones((), dtype.dtype)
    if opcode in ("maximum", "minimum"):
        return np.array(_extreme(dtype, is_least=opcode == "maximum")).astype(dtype.dtype)
    if dtype.kind != "pred" and not dtype.is_integer:
        return None
    return _all_bits(dtype) if opcode == "and" else np.zeros((), dtype.dtype)


def additive_zero(dtype: PrimitiveType) -> Any:
    """The number whose addition changes no bit of another number: -0 for floats and complex numbers."""
    zero = np.zeros((), dtype.dtype)
    return np.asarray(np.negative(zero)) if dtype.kind in ("float", "complex") else zero


def _all_bits(dtype: PrimitiveType) -> Any:
    if dtype.kind == "pred":
        return np.array(True)
    return np.array(-1 if dtype.kind == "signed" else _bounds(dtype)[1]).astype(dtype.dtype)


def _extreme(dtype: PrimitiveType, *, is_least: bool) -> Any:
    """The least or the greatest number of a type."""
    if dtype.kind == "pred":
        return not is_least
    if dtype.is_integer:
        return _bounds(dtype)[0 if is_least else 1]
    end = -np.inf if is_least else np.inf
    if dtype.kind == "complex":
        return complex(end, end)
    if np.isinf(np.array(end).astype(dtype.dtype)):
        return end
    about = ml_dtypes.finfo(dtype.dtype)  # type: ignore[no-untyped-call]
    return float(about.min if is_least else about.max)


def _bounds(dtype: PrimitiveType) -> tuple[int, int]:
    about = np.iinfo(dtype.dtype) if dtype.is_native else ml_dtypes.iinfo(dtype.dtype)  # type: ignore[no-untyped-call]
    return int(about.min), int(about.max)
