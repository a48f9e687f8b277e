"""Ops without operands."""

from __future__ import annotations

from shape_inference.elided import ElidedArray

from ....core.graph import Instruction
from ..support.dense import dense_text
from ..support.notes import notes_text
from ..support.refusals import refuse
from ..support.tables import lines, values
from ..support.writer import Tree, Writer

Line = tuple[str, str]


@values
def constant(writer: Writer, instruction: Instruction) -> Tree:
    """The dictionary of annotations stands before the literal."""
    array = instruction.attributes.literal
    if isinstance(array, ElidedArray):
        refuse(instruction, "its elements are left out of the text, as {...}")
    notes = notes_text(writer, instruction)
    text = f"stablehlo.constant{notes} {dense_text(array)} : {writer.type(instruction.shape)}"
    return writer.emit(instruction.name, text, instruction)


@lines
def iota(writer: Writer, instruction: Instruction) -> Line:
    return f"stablehlo.iota dim = {instruction.attributes.iota_dimension}", writer.type(instruction.shape)


@lines
def replica_id(writer: Writer, instruction: Instruction) -> Line:
    return "stablehlo.replica_id", writer.type(instruction.shape)


@lines
def partition_id(writer: Writer, instruction: Instruction) -> Line:
    return "stablehlo.partition_id", writer.type(instruction.shape)
