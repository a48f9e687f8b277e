"""The value of one instruction over prime fields, by its rule, by the value rule where words are moved, or exactly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape, TupleShape, leaves
from shape_inference.elided import ElidedArray
from shape_inference.trees import map_leaves
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS

from ...rules import compute
from ...runtime.instruction_values import DeviceIds, rule_of
from . import literals
from .primes import Pair, current
from .regions import FieldRegion, computing
from .residues import of_reals
from .tables import MOVED, REFUSED, Undecidable, fields

ALONE = DeviceIds(np.uint32(0), np.uint32(0))


def value(instruction: Instruction, operands: Sequence[Any], ids: DeviceIds = ALONE) -> Any:
    """The value of an instruction that calls nothing or applies its computations, on the device of these ids.

    Raises Undecidable, with the class, where the op is not decided.
    """
    opcode = instruction.opcode
    if opcode in REFUSED or _is_dynamic(instruction):
        raise Undecidable(REFUSED.get(opcode, REFUSED["dynamic_reshape"]))
    if opcode == "constant":
        return constant(instruction)
    if not touches_floats(instruction):
        return _exactly(instruction, operands, ids)
    arguments = OPS[opcode].unflatten(tuple(map(_array, operands)), instruction.segments)
    if opcode in _BY_TYPE:
        return _BY_TYPE[opcode](instruction, *arguments)
    rule = fields.get(opcode) or (compute[opcode] if opcode in MOVED else None)
    if rule is None:
        raise Undecidable(f"{opcode.replace('_', '-')} of floats")
    return rule(*arguments, **attributes_of(instruction))


computing.supply(value)
OMITTED = "constants whose elements are omitted from the text"
"""The class of constants of which the text has no elements."""
_BY_TYPE: dict[str, Any] = {}
"""Rules that need the types of operands and result, of the instruction and its operands."""


def _array(operand: Any) -> Any:
    return map_leaves(lambda leaf: None if leaf is None else np.asarray(leaf), operand)


@lru_cache(maxsize=1 << 16)
def attributes_of(instruction: Instruction) -> dict[str, Any]:
    """The attributes of an instruction, with computations as regions over prime fields."""
    return {
        key: FieldRegion(each) if isinstance(each, Computation) else each
        for key, each in instruction.attribute_values().items()
    }


def is_float(shape: AnyShape) -> bool:
    """Whether an array, or one in a tuple, has floats or complex numbers."""
    return any(isinstance(leaf, Shape) and leaf.dtype.kind in ("float", "complex") for leaf in leaves(shape))


@lru_cache(maxsize=1 << 16)
def touches_floats(instruction: Instruction) -> bool:
    """Whether floats are among the operands or results, or in a computation that is called."""
    return (
        is_float(instruction.shape)
        or any(is_float(operand.shape) for operand in instruction.operands)
        or any(map(touches_floats, (i for each in instruction.called for i in each.instructions)))
    )


@lru_cache(maxsize=1 << 16)
def _is_dynamic(instruction: Instruction) -> bool:
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return any(isinstance(leaf, Shape) and leaf.is_dynamic for shape in shapes for leaf in leaves(shape))


_rule_of = lru_cache(maxsize=1 << 14)(rule_of)


def _exactly(instruction: Instruction, operands: Sequence[Any], ids: DeviceIds) -> Any:
    """The value of integers, as in a run."""
    rule = _rule_of(instruction)
    if rule is None and instruction.opcode in compute:
        arguments = OPS[instruction.opcode].unflatten(tuple(map(_array, operands)), instruction.segments)
        return compute[instruction.opcode](*arguments, **attributes_of(instruction))
    if rule is None and instruction.opcode in _BY_TYPE:
        return _BY_TYPE[instruction.opcode](instruction, *map(_array, operands))
    if rule is None:
        raise Undecidable(f"{instruction.opcode.replace('_', '-')} of integers")
    return rule(ids, tuple(_scalar(each, of.shape) for each, of in zip(operands, instruction.operands, strict=True)))


def _scalar(operand: Any, shape: AnyShape) -> Any:
    """Arrays of rank 0 as NumPy scalars, which value rules take."""
    if isinstance(shape, TupleShape) or not isinstance(operand, np.ndarray):
        return operand
    return operand if operand.ndim else operand[()]


def constant(instruction: Instruction) -> Any:
    """A literal as words."""
    return _constant(instruction, current(), literals.current())


@lru_cache(maxsize=1 << 12)
def _constant(instruction: Instruction, pair: Pair, reading: literals.LiteralReading) -> Any:
    literal = instruction.attributes.literal
    if isinstance(literal, ElidedArray):
        raise Undecidable(OMITTED)
    return literal_words(literal, instruction.shape)


def literal_words(literal: Any, shape: AnyShape) -> Any:
    """An array of a type as the fields have it: floats as words, integers as they are."""
    assert isinstance(shape, Shape)
    if shape.dtype.kind == "complex":
        from .complexes import joined

        single = np.float32 if shape.dtype.bits == 64 else np.float64
        return joined(of_reals(np.asarray(literal.real, single)), of_reals(np.asarray(literal.imag, single)))
    return of_reals(np.asarray(literal)) if shape.dtype.kind == "float" else np.asarray(literal)


def by_type(rule: Any) -> Any:
    """Enter a rule that takes the instruction before its operands, by its name."""
    enter_by_type(rule.__name__.strip("_"), rule)
    return rule


def enter_by_type(opcode: str, rule: Any) -> None:
    """Enter a rule that takes the instruction before its operands."""
    _BY_TYPE[opcode] = rule
    fields.enter(opcode, rule)
