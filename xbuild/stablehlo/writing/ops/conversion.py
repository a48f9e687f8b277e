"""Ops that read bits as another type, and those that are their operand."""

from __future__ import annotations

import math

from shape_inference import PrimitiveType, Shape, pred, u8

from ....core.builder import Value
from ....core.graph import Instruction
from ....ops.conversion import bitcast_convert as _reread
from ....ops.conversion import convert as _converted
from ....ops.elementwise import compare
from ....ops.leaves import constant
from ....ops.shaping import broadcast, reshape, transpose
from ..support.decomposition import decomposed
from ..support.refusals import refuse
from ..support.tables import REFUSED, values
from ..support.writer import Tree, Writer
from .elementwise import same_type


@values
def copy(writer: Writer, instruction: Instruction) -> Tree:
    """The operand itself; no op is written."""
    return writer.names[instruction.operands[0]]


@values
def convert(writer: Writer, instruction: Instruction) -> Tree:
    """A complex number is true where it is not 0; StableHLO asks for its real part."""
    source, target = instruction.operands[0].shape, instruction.attributes.new_element_type
    assert isinstance(source, Shape)
    if source.dtype.kind == "complex" and target is pred:
        return decomposed(writer, instruction, lambda operand, *, new_element_type: _not_zero(operand))
    writer.define(instruction, *same_type(writer, instruction))
    return writer.names[instruction]


@values
def bitcast_convert(writer: Writer, instruction: Instruction) -> Tree:
    """HLO's pred is a byte, and MLIR's i1 a bit: it is read as a byte, and written by comparison with 0."""
    source, target = instruction.operands[0].shape, instruction.attributes.new_element_type
    assert isinstance(source, Shape)
    if (source.dtype is pred) != (target is pred):
        return decomposed(writer, instruction, reread)
    head = f"stablehlo.bitcast_convert {writer.name(instruction.operands[0])}"
    writer.define(instruction, head, writer.signature(instruction))
    return writer.names[instruction]


def reread(operand: Value, *, new_element_type: PrimitiveType) -> Value:
    """A bitcast_convert in which no pred is read or made."""
    if _dtype(operand) is pred:
        operand = _converted(operand, new_element_type=u8)
    if new_element_type is not pred:
        same = _dtype(operand) is new_element_type
        return operand if same else _reread(operand, new_element_type=new_element_type)
    octets = operand if _dtype(operand) is u8 else _reread(operand, new_element_type=u8)
    return _not_zero(octets)


def _not_zero(operand: Value) -> Value:
    zero = constant(operand.builder, literal=_dtype(operand).dtype.type(0))
    zeros = broadcast(zero, sizes=operand.shape.dims, dimensions=())  # type: ignore[union-attr]
    return compare(operand, zeros, direction="NE")


def _dtype(value: Value) -> PrimitiveType:
    assert isinstance(value.shape, Shape)
    return value.shape.dtype


@values
def bitcast(writer: Writer, instruction: Instruction) -> Tree:
    """Transposes, reshapes and a `stablehlo.bitcast_convert`: the elements in the order of the layouts."""
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if source.plain() == target.plain() and _order(source) == _order(target):
        return writer.names[instruction.operands[0]]
    kinds = {source.dtype, target.dtype}
    if source.is_dynamic or (len(kinds) > 1 and any(each.bit_width < 8 or each.kind == "complex" for each in kinds)):
        refuse(instruction, f"the bytes of {source} would be read as {target}, and no op does that")
    return decomposed(writer, instruction, lambda operand, *, shape: _relaid(operand, target))


def _order(shape: Shape) -> tuple[int, ...]:
    """The dimensions, major to minor."""
    return shape.layout.minor_to_major[::-1] if shape.layout else tuple(range(shape.rank))


def _relaid(operand: Value, target: Shape) -> Value:
    source = operand.shape
    assert isinstance(source, Shape)
    if _order(source) != tuple(range(source.rank)):
        operand = transpose(operand, permutation=_order(source))
    if source.dtype is not target.dtype:
        operand = _retyped(operand, target.dtype)
    order = _order(target)
    operand = reshape(operand, new_sizes=tuple(target.dims[dim] for dim in order))
    if order == tuple(range(target.rank)):
        return operand
    return transpose(operand, permutation=tuple(order.index(dim) for dim in range(target.rank)))


def _retyped(operand: Value, dtype: PrimitiveType) -> Value:
    """One row of elements, read as another type."""
    source = operand.shape
    assert isinstance(source, Shape)
    ratio = max(dtype.bit_width // source.dtype.bit_width, 1)
    row = (source.size,) if ratio == 1 else (source.size // ratio, ratio)
    found = reread(reshape(operand, new_sizes=row), new_element_type=dtype)
    return reshape(found, new_sizes=(math.prod(found.shape.dims),))  # type: ignore[union-attr]


def _none(writer: Writer, instruction: Instruction) -> Tree:
    """StableHLO has no such op, and the value is that of each implementation."""
    refuse(instruction, "StableHLO has no such op, and its value is that of each implementation")


for _opcode in ("stochastic_convert", "rng_get_and_update_state"):
    values.enter(_opcode, _none)
    REFUSED.add(_opcode)
