"""Converts that XLA makes where HLO text mixes element types: of operands before a product, and of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from shape_inference import AnyShape, Shape, TupleShape

from ...core.graph import Instruction
from ...core.op import OPS, Schema
from ...properties.effects import MEETS
from ..codecs.counted import check_ids
from ..spelling.mixed_types import float_of
from ..spelling.parsed import ParsedInstruction

if TYPE_CHECKING:
    from .body import Body


def convert_operands(body: Body, schema: Schema, parsed: ParsedInstruction, place: int) -> None:
    """Convert integers that are multiplied with floating point numbers to their type."""
    dtype = float_of(schema.opcode, parsed)
    if dtype is None:
        return
    shapes = [each.shape.plain() for each in parsed.operands]
    pairs = zip(parsed.operands, shapes, strict=True)
    parsed.operands = tuple(
        [convert(body, None, each, shape.with_dtype(dtype), place) for each, shape in pairs if isinstance(shape, Shape)]
    )


def convert(body: Body, name: str | None, operand: Instruction, shape: AnyShape | None, place: int) -> Instruction:
    """A convert to a shape, or the operand where it has that."""
    if operand.shape.plain() == shape:
        return operand
    parsed = ParsedInstruction(shape)
    parsed.operands = (operand,)
    return body.finish(name, OPS["convert"], parsed, None, place, "")


def bits_alone(body: Body, name: str | None, parsed: ParsedInstruction, shape: Shape, place: int) -> Instruction:
    """The random bits of an rng-bit-generator whose result is written without the new state."""
    states = [each.shape.plain() for each in parsed.operands[:1]]
    both = evolve(parsed, shape=TupleShape((*states, shape.plain())), notes={})
    made = body.finish(None, OPS["rng_bit_generator"], both, None, place, "")
    taken = ParsedInstruction(shape.plain(), (made,), written={"index": 1}, notes=parsed.notes)
    return body.finish(name, OPS["get_tuple_element"], taken, None, place, "")


def under_made_up_name(
    body: Body, schema: Schema, parsed: ParsedInstruction, record: Any, segments: Any, shape: AnyShape, place: int
) -> Instruction:
    """An instruction of a shape that the text does not write."""
    name, notes = body.made_up(schema.spelling), parsed.annotations
    found = Instruction(
        schema.opcode, name, shape, parsed.operands, segments, record, body.where, parsed.control, notes
    )
    if schema.opcode in MEETS:
        check_ids(body, found, schema, place)
    return body.add(found, shape)
