"""Ops that rearrange the elements of arrays, and those on dimension sizes."""

from __future__ import annotations

from ....core.graph import Instruction
from ..support.tables import lines
from ..support.words import listed
from ..support.writer import Writer
from .elementwise import in_one_precision

Line = tuple[str, str]


@lines
def broadcast(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.broadcast_in_dim {writer.name(instruction.operands[0])}"
    return f"{head}, dims = {listed(instruction.attributes.dimensions)}", writer.signature(instruction)


@lines
def reshape(writer: Writer, instruction: Instruction) -> Line:
    return f"stablehlo.reshape {writer.name(instruction.operands[0])}", writer.signature(instruction)


@lines
def transpose(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.transpose {writer.name(instruction.operands[0])}"
    return f"{head}, dims = {listed(instruction.attributes.permutation)}", writer.signature(instruction)


@lines
def reverse(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.reverse {writer.name(instruction.operands[0])}"
    return f"{head}, dims = {listed(instruction.attributes.dimensions)}", writer.type(instruction.shape)


@lines
def concatenate(writer: Writer, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction)
    names = ", ".join(writer.flat(last.operands))
    return f"stablehlo.concatenate {names}, dim = {last.attributes.dimension}", writer.signature(last)


@lines
def pad(writer: Writer, instruction: Instruction) -> Line:
    last = in_one_precision(writer, instruction)
    dims = last.attributes.padding
    low, high, interior = (listed(getattr(dim, side) for dim in dims) for side in ("low", "high", "interior"))
    head = f"stablehlo.pad {', '.join(writer.flat(last.operands))}"
    return f"{head}, low = {low}, high = {high}, interior = {interior}", writer.signature(last)


@lines
def slice(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    strides = a.strides or (1,) * len(a.start_indices)
    ranges = [
        f"{low}:{high}:{step}" if step != 1 else f"{low}:{high}"
        for low, high, step in zip(a.start_indices, a.limit_indices, strides, strict=True)
    ]
    return f"stablehlo.slice {writer.name(instruction.operands[0])} {listed(ranges)}", writer.signature(instruction)


@lines
def get_dimension_size(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.get_dimension_size {writer.name(instruction.operands[0])}"
    return f"{head}, dim = {instruction.attributes.dimension}", writer.signature(instruction)


@lines
def set_dimension_size(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.set_dimension_size {', '.join(writer.flat(instruction.operands))}"
    return f"{head}, dim = {instruction.attributes.dimension}", writer.signature(instruction)


@lines
def dynamic_reshape(writer: Writer, instruction: Instruction) -> Line:
    """The sizes, scalars in HLO, are joined to one vector."""
    operand, *sizes = instruction.operands
    one, name = "tensor<1xi32>", instruction.name
    parts = [
        writer.emit(f"{name}.size", f"stablehlo.reshape {writer.name(each)} : (tensor<i32>) -> {one}") for each in sizes
    ]
    whole = f"tensor<{len(parts)}xi32>"
    if parts:
        types = f"({', '.join([one] * len(parts))}) -> {whole}"
        text = f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : {types}"
    else:
        text = f"stablehlo.constant dense<> : {whole}"
    shape = writer.emit(f"{name}.sizes", text)
    result = writer.type(instruction.shape)
    types = f"({writer.type(operand.shape)}, {whole}) -> {result}"
    return f"stablehlo.dynamic_reshape {writer.name(operand)}, {shape}", types
