"""The attributes of an instruction: read by their keys, then made into the record of its op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from shape_inference import refuse

from ...core.graph import NOTHING, Instruction
from ...core.op import Schema
from ..spelling.notes import COMMON, KEPT, raw
from ..spelling.parsed import ParsedInstruction
from ..spelling.words import Read
from .table import spellings

if TYPE_CHECKING:
    from ..reading.reader import Reader

CONTROL = "control-predecessors"


@functools.cache
def own_keys(opcode: str) -> Mapping[str, Read]:
    """How each attribute that the text may give an op is read."""
    return {key: read for spelling in spellings(opcode) for key, read in spelling.keys.items()}


@functools.cache
def by_operands(opcode: str) -> bool:
    """Whether an attribute depends on the operands, and not on the op's own words alone."""
    return any(spelling.by_operands for spelling in spellings(opcode))


def read_attributes(
    reader: Reader,
    schema: Schema,
    parsed: ParsedInstruction,
    named: Callable[[], Instruction],
    also: Mapping[str, Read] = NOTHING,
) -> None:
    """All of `, key=value` after the operands; `also` are keys that the op itself does not have."""
    seen: set[str] = set()
    while reader.take(","):
        key, place = reader.key()
        if key in seen:
            reader.fail("duplicate_attribute", f"{key} is given twice", place=place)
        seen.add(key)
        own = own_keys(schema.opcode).get(key) or also.get(key)
        if own is not None:
            parsed.written[key] = own(reader)
        elif key in COMMON:
            parsed.notes[key] = COMMON[key](reader)
        elif key == CONTROL:
            parsed.control = tuple(reader.listed(named))
        elif key in KEPT.get(schema.opcode, ()):
            parsed.notes[key] = raw(reader)
        else:
            _unknown(reader, schema, key, place)


def _unknown(reader: Reader, schema: Schema, key: str, place: int) -> None:
    own = (*own_keys(schema.opcode), *KEPT.get(schema.opcode, ()))
    close = reader.near(key, (*own, *COMMON, CONTROL))
    has = f"it has {', '.join(own)}" if own else "it has none of its own"
    reader.fail("unknown_attribute", f"{schema.spelling} has no attribute {key[:60]!r}; {has}", *close, place=place)


def record_of(schema: Schema, parsed: ParsedInstruction, values: dict[str, Any]) -> Any:
    """The record of attributes, None where the op has none; `values` is filled for who explains a refusal."""
    if schema.attributes is None:
        return None
    for spelling in spellings(schema.opcode):
        values.update(spelling.read(parsed))
    for each in attrs.fields(schema.attributes):
        if each.name not in values and each.default is attrs.NOTHING:
            keys = next(s.keys for s in spellings(schema.opcode) if each.name in s.names)
            refuse("missing_attribute", f"attribute {' or '.join(keys) or each.name!r} is missing")
    return schema.record(values)
