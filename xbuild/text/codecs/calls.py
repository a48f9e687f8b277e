"""Codecs of those attributes of custom calls, fusions and scans that have a syntax of their own in HLO text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shape_inference import AnyShape, Layout, Shape, TupleShape, refuse

from ...core.attributes import Aliases
from ...core.graph import Instruction
from ..spelling.faults import Fault
from ..spelling.literal_reader import read_literal
from ..spelling.literals import literal_text
from ..spelling.parsed import ParsedInstruction
from ..spelling.scanner import Scanner
from ..spelling.spelling import Found, Joined, told
from ..spelling.words import REGIONS, Word, braces, read_dims
from ..spelling.writer import Writer

if TYPE_CHECKING:
    from ..reading.reader import Reader


def _aliases(writer: Writer, aliases: Aliases) -> str:
    pairs = (f"{braces(output)}: ({number}, {braces(index)})" for output, number, index in aliases)
    return f"{{{', '.join(pairs)}}}"


def _read_alias(reader: Reader) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """`{0}: (1, {})`, and as XLA reads it, too, with the word may-alias or must-alias."""
    output = read_dims(reader)
    reader.expect(":")
    reader.expect("(")
    number = reader.integer()
    reader.expect(",")
    index = read_dims(reader)
    reader.expect(")")
    return output, number, index


ALIASES = Word(_aliases, lambda reader: tuple(reader.listed(lambda: _read_alias(reader))))
CONSTRAINTS = Word(
    lambda writer, shapes: f"{{{', '.join(map(writer.shape, shapes))}}}",
    lambda reader: tuple(reader.listed(reader.shape)),
)


def _literal(writer: Writer, instruction: Instruction) -> str:
    """With its layout always: XLA would take the elements for one."""
    array = instruction.attributes.literal
    if array is None:
        return ""
    layout = Layout(tuple(reversed(range(array.ndim)))) if array.ndim else None
    return f", literal={Shape(array.dtype, array.shape, layout=layout)} {literal_text(array)}"


def _read_literal(reader: Reader) -> Any:
    """A shape and its elements."""
    return elements_of(reader, reader.shape())[0]


def elements_of(reader: Reader, shape: AnyShape) -> tuple[Any, str]:
    """The elements of an array, in braces or one number, and their text."""
    place = reader.skip()
    if reader.sees("{"):
        text = reader.braces()
    else:
        match = reader.scan(_ONE)
        text = match[0] if match else reader.expected("the elements of a literal")
    try:
        return read_literal(Scanner(f"{text})"), shape)
    except Fault as fault:
        reader.fail(fault.kind, fault.message, place=place)


_ONE = re.compile(r"\((?:[^()]*+(?:\([^()]*+\))?+)*+\)|-?nan\([^()]*+\)|[^\s,(){}=]++")

LITERAL = Joined(
    ("literal",), _literal, lambda parsed: {"literal": parsed.written.get("literal")}, {"literal": _read_literal}
)


def _called(writer: Writer, instruction: Instruction) -> str:
    called = instruction.attributes.called_computations
    return f", called_computations={REGIONS.write(writer, called)}" if called else ""


def _read_called(parsed: ParsedInstruction) -> Found:
    """One computation may be written as `to_apply`."""
    one = parsed.written.get("to_apply")
    listed = parsed.written.get("called_computations", ())
    if one is not None and listed:
        refuse("invalid_attribute", "to_apply and called_computations both name computations; one of them is enough")
    return {"called_computations": (one,) if one is not None else listed}


CALLED = Joined(
    ("called_computations",),
    _called,
    _read_called,
    {"to_apply": lambda reader: reader.region(), "called_computations": REGIONS.read},
)


def _read_config(parsed: ParsedInstruction) -> Found:
    """What any instruction keeps as a note is of the call itself here; it is written where the notes are."""
    return {"backend_config": parsed.notes.pop("backend_config", "")}


CONFIG = Joined(("backend_config",), lambda writer, instruction: "", _read_config)


def _length(parsed: ParsedInstruction) -> int | None:
    """How many slices an output has, where there is no input to tell."""
    carries, dimension = parsed.written.get("num_carries"), parsed.written.get("dimensions")
    if not isinstance(carries, int) or carries < len(parsed.operands) or parsed.shape is None:
        return None
    results = parsed.shape.elements if isinstance(parsed.shape, TupleShape) else (parsed.shape,)
    outputs = [each for each in results[: max(len(results) - carries, 0)] if isinstance(each, Shape)]
    if not outputs or not isinstance(dimension, int) or not 0 <= dimension < outputs[0].rank:
        return None
    return outputs[0].dims[dimension]


LENGTH = told("length", _length, by_operands=True)
