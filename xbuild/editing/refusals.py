"""Errors of edits: the error of the op with the edit as a hint, or a message that names both instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve

from shape_inference import AnyShape, XbuildError

from ..core.builder import infer_shape
from ..core.diagnostics import caller, explain, operand_labels
from ..core.diagnostics import refusal as refusal
from ..core.graph import Instruction
from ..core.op import OPS

SHOWN = 4


def infer_edited_shape(instruction: Instruction, operands: Sequence[Instruction], edit: str) -> AnyShape:
    """The inferred shape of an instruction with these operands; refusals of the op get the edit as a hint."""
    schema = OPS[instruction.opcode]
    shapes = tuple(operand.shape.plain() for operand in operands)
    try:
        return infer_shape(schema, shapes, instruction.segments, instruction.attributes)
    except XbuildError as error:
        given = type(error)(error.kind, error.message, (*error.hints, f"%{instruction.name}: {edit}"))
        values = instruction.attribute_values()
        raise explain(given, schema, tuple(operands), instruction.segments, values, caller()) from None


def with_attributes(instruction: Instruction, given: dict[str, Any]) -> Instruction:
    """The instruction with the given attributes changed."""
    schema = OPS[instruction.opcode]
    try:
        record = schema.read({**instruction.attribute_values(), **given})
    except XbuildError as error:
        raise explain(error, schema, instruction.operands, instruction.segments, given, caller()) from None
    return evolve(instruction, attributes=record)


def list_names(instructions: Iterable[Instruction]) -> str:
    """The names of instructions as text, such as `%a, %b and 3 more`."""
    names = [f"%{instruction.name}" for instruction in instructions]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def label_of(instruction: Instruction, index: int) -> str:
    """The name of an operand in the op's signature."""
    return operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)[index]


def name_with_shape(value: Any) -> str:
    """The name and shape of an instruction for a message: `%x: f32[4]`."""
    return f"%{value.name}: {value.shape}"
