"""Elementwise ops."""

from __future__ import annotations

from shape_inference import Shape, TupleShape, leaves, pred

from ....core.graph import Instruction
from ....core.op import OPS
from ....text.spelling.expansion import ONE_PRECISION, one_precision
from ...spelling.op_names import OP_NAMES, UNNAMED
from ..support.blocks import op_name
from ..support.notes import notes_text
from ..support.tables import lines, values
from ..support.writer import Tree, Writer, flat, shaped

Line = tuple[str, str]


@lines
def add(writer: Writer, instruction: Instruction) -> Line:
    """Of pred it is `stablehlo.or`."""
    return _written(writer, instruction, op_name(instruction))


def same_type(writer: Writer, instruction: Instruction) -> Line:
    return _written(writer, instruction, OP_NAMES[instruction.opcode])


def _written(writer: Writer, instruction: Instruction, name: str) -> Line:
    operands = instruction.operands
    result = writer.type(instruction.shape)
    types = [writer.type(o.shape) for o in operands]
    if types == [result] * len(types):
        return f"{name} {', '.join([writer.name(o) for o in operands])}", result
    if instruction.opcode in ONE_PRECISION and (last := in_one_precision(writer, instruction)) is not instruction:
        return _written(writer, last, OP_NAMES[last.opcode])
    return f"{name} {', '.join([writer.name(o) for o in operands])}", f"({', '.join(types)}) -> {result}"


def in_one_precision(writer: Writer, instruction: Instruction) -> Instruction:
    """Write conversions to the widest type of the operands, and give the op on these."""
    *before, last = one_precision(instruction)
    for each in before:
        writer.define(each, *(same_type if each.opcode == "convert" else lines[each.opcode])(writer, each))
    return last


def chlo(writer: Writer, instruction: Instruction) -> Line:
    types = ", ".join(writer.types(instruction.operands))
    return (
        f"{OP_NAMES[instruction.opcode]} {', '.join(writer.flat(instruction.operands))}",
        f"{types} -> {writer.type(instruction.shape)}",
    )


for _opcode, _schema in OPS.items():
    if (
        _schema.properties.elements == "same_place"
        and _schema.properties.depends_on == "operands"
        and _opcode not in UNNAMED
        and not _schema.regions
        and _opcode not in ("add", "compare", "convert", "reduce_precision", "select")
    ):
        lines.enter(_opcode, chlo if OP_NAMES[_opcode].startswith("chlo.") else same_type)


@lines
def compare(writer: Writer, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction) if instruction.opcode in ONE_PRECISION else instruction
    a = last.attributes
    kind = f", {a.type}" if a.type else _kind(last)
    return f"stablehlo.compare {a.direction}, {', '.join(writer.flat(last.operands))}{kind}", writer.signature(last)


def _kind(instruction: Instruction) -> str:
    """The type of a comparison that states none: that of its operands."""
    shape = instruction.operands[0].shape
    assert isinstance(shape, Shape)
    if shape.dtype.is_integer or shape.dtype is pred:
        return ", SIGNED" if shape.dtype.kind == "signed" else ", UNSIGNED"
    return ", FLOAT"


@values
def select(writer: Writer, instruction: Instruction) -> Tree:
    """Of tuples, an op for each part."""
    last = in_one_precision(writer, instruction)
    which, *chosen = last.operands
    found = []
    for leaf, *names in zip(leaves(last.shape), *[flat(writer.names[each]) for each in chosen], strict=True):
        result, types = writer.type(leaf), [writer.type(each.shape) for each in chosen]
        told = f"{writer.type(which.shape)}, {result}"
        if not isinstance(last.shape, TupleShape) and types != [result, result]:
            told = writer.signature(last)
        text = f"stablehlo.select {writer.name(which)}, {', '.join(names)}{notes_text(writer, instruction)} : {told}"
        found.append(writer.emit(instruction.name, text, instruction))
    return shaped(instruction.shape, found)


@lines
def reduce_precision(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    head = f"stablehlo.reduce_precision {writer.name(instruction.operands[0])}"
    return f"{head}, format = e{a.exponent_bits}m{a.mantissa_bits}", writer.type(instruction.shape)
