"""The words in a box: title, attributes, operands without a box, shape, and the text shown on hover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from shape_inference import AnyShape, Layout, Shape, TokenShape, TupleShape
from shape_inference.escaping import in_line

from ...core.diagnostics import operand_labels
from ...core.graph import Instruction
from ...core.op import OPS
from ...properties.variances import declared, typed_text
from ...text.codecs.sugar import spelled_opcode, sugared
from ...text.codecs.table import spellings
from ...text.spelling.literals import excerpt_text
from ...text.spelling.writer import Writer
from ...variance.rules.marks import marks_of
from .folding import Folding, simple_reducer
from .picture import Words

_WIDTH = 44
_NAMED = 3  # operands of callers that are named

Given: TypeAlias = Sequence[tuple[Instruction, Folding]]


def words_of(instruction: Instruction, folding: Folding, given: Given = ()) -> Words:
    """The words of a box; `given` are the operands that callers give a parameter."""
    arguments = tuple(argument(operand, folding) for operand in instruction.operands)
    details = (*_details(instruction, folding), *_origins(given))
    return Words(shape_words(instruction), details, arguments)


def title_of(instruction: Instruction) -> str:
    """The title of a box: the op, and the number of a parameter."""
    spelling = spelled_opcode(instruction)
    return f"{spelling} {instruction.attributes.number}" if instruction.opcode == "parameter" else spelling


def worded(instruction: Instruction) -> Instruction:
    """The instruction whose attributes a box shows: for sugared async-starts, the wrapped one."""
    wrapped = sugared(instruction) if instruction.opcode == "async_start" else None
    return instruction if wrapped is None else wrapped


def _details(instruction: Instruction, folding: Folding) -> Iterator[str]:
    """The attributes in HLO's words, then the operands that have no box."""
    for mark in marks_of(instruction):
        yield from _cut(in_line(mark))
    shown = worded(instruction)
    if shown.attributes is not None:
        for spelling in spellings(shown.opcode):
            if not _is_region(shown, spelling.names):
                yield from _cut(spelling.text(Writer(), shown).removeprefix(", "))
        if instruction.opcode in ("send", "recv") and instruction.attributes.source_target_pairs:
            yield from _cut("pairs " + ", ".join(f"{s}→{t}" for s, t in instruction.attributes.source_target_pairs))
    if instruction.opcode == "constant":
        yield from _cut(excerpt_text(instruction.attributes.literal, 8))
    yield from (f"by {word}" for _, region in shown.regions() if (word := simple_reducer(region)))
    labels = operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)
    for label, operand in zip(labels, instruction.operands, strict=True):
        if (text := folding.text(operand)) is not None:
            yield f"{label} = {text}"


def _origins(given: Given) -> Iterator[str]:
    """The operands that the calls of its computation pass to a parameter."""
    names = list(dict.fromkeys(argument(operand, folding) for operand, folding in given))
    if names:
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        yield from _cut(f"from {', '.join(names[:_NAMED])}{more}")


def _is_region(instruction: Instruction, names: tuple[str, ...]) -> bool:
    return any(name in OPS[instruction.opcode].regions for name in names)


def _cut(text: str) -> Iterator[str]:
    if text and text != "replica_groups={}":
        yield text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def argument(operand: Instruction, folding: Folding) -> str:
    """An operand in words: its value where it has no box, else the name of the box that it comes from."""
    text = folding.text(operand)
    if text is not None:
        return text
    origin, path = folding.origin(operand)
    return f"{origin.name}{path}"


def scope_of(instruction: Instruction) -> str:
    """The scope of an instruction: the `op_name` of its metadata."""
    return in_line(str(instruction.annotations.get("metadata", {}).get("op_name", "")))


def tooltip(instruction: Instruction) -> str:
    """The text on hover: the instruction as text, its source and its scope."""
    scope = scope_of(instruction)
    large = instruction.opcode == "constant" and instruction.attributes.literal.size > 8
    first = f"{instruction.name} = {instruction.shape} constant" if large else repr(instruction)
    lines = (first, str(instruction.source or ""), f"scope {scope}" if scope else "")
    return "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in lines if line)


def shape_words(instruction: Instruction) -> str:
    """The shape of an instruction, shortened to the width of a box, with its type on a mesh where one is declared."""
    short = short_shape(instruction.shape)
    if declared(instruction) is None:
        return short
    text = typed_text(instruction, lambda leaf: repr(_without_usual_layouts(leaf)))
    return text if len(text) <= _WIDTH or not isinstance(instruction.shape, TupleShape) else short


def short_shape(shape: AnyShape) -> str:
    """A shape, shortened to the width of a box: row-major layouts are omitted, the rest of a long tuple is counted."""
    shape = _without_usual_layouts(shape)
    text = repr(shape)
    if len(text) <= _WIDTH or not isinstance(shape, TupleShape):
        return text
    shown: list[str] = []
    for element in shape.elements:
        if sum(map(len, shown)) + len(short := short_shape(element)) > _WIDTH - 12:
            break
        shown.append(short)
    return f"({', '.join([*shown, f'… {len(shape) - len(shown)} more'])})"


def _without_usual_layouts(shape: AnyShape) -> AnyShape:
    if isinstance(shape, TokenShape):
        return shape
    if isinstance(shape, Shape):
        return shape.plain() if shape.layout == Layout(tuple(range(shape.rank))[::-1]) else shape
    return TupleShape(map(_without_usual_layouts, shape.elements))
