"""Fast path of the reader: a line that differs from an earlier one in names alone is matched by one expression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from shape_inference import AnyShape, XbuildError, compatible

from ...core.graph import NOTHING, Instruction, TextSource
from ...core.identifiers import KEYWORDS
from ...core.inference import infer_shape
from ...core.op import Schema
from ..codecs.attribute_reader import by_operands
from ..codecs.sugar import ASYNC
from ..spelling.notes import METADATA
from ..spelling.parsed import ParsedInstruction
from ..spelling.segments import check_precision, segments_of

if TYPE_CHECKING:
    from .body import Body

_SHAPE = r"\([^()\n]*+\)|[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?"
_LINE = re.compile(
    rf"(ROOT )?%?([A-Za-z_][\w.-]*+) = ({_SHAPE}) ([a-z][a-z0-9-]*+)\(([^()\n]*+)\)"
    rf"([^\n]{{0,2000}}+)(?=\n\s*+[A-Za-z_%}}])",
    re.ASCII,
)
_TYPED = re.compile(rf"({_SHAPE}) %?([A-Za-z_][\w.-]*+)(?:, |$)", re.ASCII)
_NO_OPERANDS = ("constant", "parameter")
_METADATA = ", metadata={"
_ENTRY = re.compile(r'([a-z_]++)=(?:"([^"\\]*+)"|(0|[1-9][0-9]{0,17}+))(?:[ ,]++|$)')


@frozen
class Known:
    """What lines of one opcode, shape and attributes have in common."""

    schema: Schema
    record: Any
    declared: AnyShape
    plain: AnyShape
    annotations: Mapping[str, Any]


_UNLIKE = tuple(ASYNC)  # async ops are what their operand makes of them


def like(schema: Schema, parsed: ParsedInstruction, record: Any, declared: AnyShape | None) -> Known | None:
    """What other lines of these words have in common with this one, unless they differ by more than names."""
    if declared is None or parsed.control or schema.opcode in _UNLIKE or by_operands(schema.opcode):
        return None
    notes = {key: value for key, value in parsed.notes.items() if key != "metadata"}
    assert parsed.shape is not None
    return Known(schema, record, declared, parsed.shape, notes or NOTHING)


class Line:
    """A line that looks like an instruction with its shape, and nothing nested."""

    def __init__(self, match: re.Match[str]) -> None:
        self.match, self.end = match, match.end()
        root, self.name, shape, opcode, self.operands, attributes = match.groups()
        self.is_root = root is not None
        self.metadata: Mapping[str, Any] | None = NOTHING
        if _METADATA in attributes:
            attributes, self.metadata = _split(attributes)
        inside = self.operands if opcode in _NO_OPERANDS else ""
        self.key = opcode, shape, attributes, inside

    def ends(self, text: str, place: int) -> bool:
        """Whether what was read up to this place is all of the line, and nothing of the next."""
        return place >= self.end and not text[self.end : place].strip()

    def annotations(self, known: Known) -> Mapping[str, Any]:
        return {**known.annotations, "metadata": self.metadata} if self.metadata else known.annotations


def line_at(text: str, place: int) -> Line | None:
    match = _LINE.match(text, place)
    return Line(match) if match else None


def _split(attributes: str) -> tuple[str, Mapping[str, Any] | None]:
    """The metadata apart from the other attributes, which more lines have in common; None where it is unusual."""
    begin = attributes.index(_METADATA)
    end = attributes.find("}", begin)
    text = attributes[begin + len(_METADATA) : end]
    found: dict[str, Any] = {}
    place = 0
    for match in _ENTRY.finditer(text):
        if match.start() != place or match[1] not in METADATA or match[1] in found:
            return attributes, None
        found[match[1]] = match[2] if match[3] is None else int(match[3])
        place = match.end()
    if end < 0 or place != len(text):
        return attributes, None
    return attributes[:begin] + attributes[end + 1 :], found


def take(body: Body, line: Line, known: Known) -> bool:
    """Add the instruction of a line whose like is known; False where it has to be read in full, to be refused there."""
    if (
        line.name in body.names
        or line.name in KEYWORDS
        or line.metadata is None
        or (line.is_root and body.root is not None)
    ):
        return False
    names = _names(body, line.operands) if not line.key[3] else []
    if names is None:
        return False
    found = [body.names.get(name) for name in names]
    if None in found:
        return False
    operands: tuple[Any, ...] = tuple(found)
    shapes = tuple([body.plain[name] for name in names])
    schema = known.schema
    try:
        segments = segments_of(schema, len(operands))
        if len(shapes) > 1:
            check_precision(schema, shapes)
        shape = infer_shape(schema, shapes, segments, known.record)
    except XbuildError:
        return False
    if shape is not known.plain and not compatible(shape, known.plain):
        return False
    if schema.opcode == "parameter":
        if known.record.number in body.numbers:
            return False
        body.numbers.add(known.record.number)
    reader = body.reader
    where = reader.origin(line.metadata) or TextSource(
        reader.file or "<hlo>", reader.line(line.match.start()), body.name
    )
    instruction = Instruction(
        schema.opcode, line.name, known.declared, operands, segments, known.record, where, (), line.annotations(known)
    )
    body.names[line.name] = instruction
    body.plain[line.name] = known.plain
    body.instructions.append(instruction)
    if line.is_root:
        body.root = instruction
    return True


def _names(body: Body, operands: str) -> list[str] | None:
    if not operands:
        return []
    if "[" not in operands:
        return operands.replace("%", "").split(", ")
    found = list(_typed(body, operands))
    return None if None in found else found  # type: ignore[return-value]


def _typed(body: Body, operands: str) -> Iterator[str | None]:
    """The names of operands with their shapes; None where a shape is not as it was, or has not been seen."""
    place = 0
    for match in _TYPED.finditer(operands):
        shape, name = body.reader.shapes.get(match[1]), match[2]
        plain = body.plain.get(name)
        is_known = match.start() == place and shape is not None and plain is not None
        yield name if is_known and (shape is plain or compatible(shape, plain)) else None  # type: ignore[arg-type]
        place = match.end()
    if place != len(operands):
        yield None
