"""The reader of HLO text: modules, computations, instructions.

An instruction is read by one regular expression if a line like it was read before, and in full otherwise.

Sections:

    Attributes of an instruction, read by key and made into the record of its op
    The number of a parameter
    Tuple constants
    Converts that XLA inserts if HLO text mixes element types
    Fast path: a line that differs from an earlier one only in names
    Body: the instructions of a computation
    Parts of a text with several modules
    parse_hlo: modules and computations
    parse_hlo_modules: texts of several modules
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
from attrs import Factory, define, evolve, frozen

from shape_inference import PRIMITIVES, AnyShape, ProgramShape, Shape, TupleShape, XbuildError, compatible, refuse
from shape_inference.bounds import MOST_LEAVES_OF_TEXT
from shape_inference.escaping import hlo_text
from shape_inference.types import of_one_width

from ..core.builder import infer_shape
from ..core.diagnostics import explain
from ..core.graph import (
    NOTHING,
    UNWRITTEN,
    Computation,
    Instruction,
    InstructionDraft,
    MetadataSource,
    Module,
    TextSource,
)
from ..core.identifiers import KEYWORDS
from ..core.op import OPS, Schema, opcodes
from ..process.limits import no_collection
from ..process.progress import during
from ..properties.effects import MEETS
from ..properties.order import is_control_dependency, with_control_edges
from .annotations import COMMON, KEPT, METADATA, read_raw
from .async_sugar import ASYNC, HALVES, check_repeated, check_unshared, extra_keys, find_op, resolve_async, unfold_start
from .codec_table import spellings
from .comments import with_comments
from .counts import Counted, check_counts, check_ids, infer_counts, set_counts
from .custom_codecs import read_elements
from .header import CONFIGS, Frames, Header, check_aliases, origin, read_frames, read_header
from .literals import SpelledLiteral, read_literal
from .scanner import (
    COUNTED_FAULTS,
    MOST_FAULTS,
    NAME,
    OPENS,
    Fault,
    HloParseError,
    Poisoned,
    Scanner,
    parse_error,
    refuse_opcode,
)
from .spelling import (
    ParsedInstruction,
    Read,
    check_precision,
    is_converted,
    matches_operand,
    product_types,
    segments_of,
)

# ----------------------------------------------------------------------------
# Attributes of an instruction, read by key and made into the record of its op

CONTROL = "control-predecessors"


@functools.cache
def own_keys(opcode: str) -> Mapping[str, Read]:
    """The reader of each attribute that an op may have in the text."""
    return {key: read for spelling in spellings(opcode) for key, read in spelling.keys.items()}


@functools.cache
def depends_on_operands(opcode: str) -> bool:
    """Whether the value of an attribute depends on the operands, by more than their shapes."""
    return any(spelling.by_operands for spelling in spellings(opcode))


@functools.cache
def depends_on_shapes(opcode: str) -> bool:
    """Whether the value of an attribute depends on the shapes of the operands."""
    return any(spelling.by_shapes for spelling in spellings(opcode))


def read_attributes(
    reader: HloReader,
    schema: Schema,
    parsed: ParsedInstruction,
    read_operand: Callable[[], Instruction],
    also: Mapping[str, Read] = NOTHING,
) -> None:
    """Read each `, key=value` after the operands; `also` are additional keys."""
    seen: set[str] = set()
    while reader.take(","):
        key, place = reader.key()
        if key in seen:
            reader.fail("duplicate_attribute", f"{key} appears twice", place=place)
        seen.add(key)
        own = own_keys(schema.opcode).get(key) or also.get(key)
        if own is not None:
            parsed.written[key] = own(reader)
        elif key in COMMON:
            parsed.notes[key] = COMMON[key](reader)
        elif key == CONTROL:
            parsed.control = tuple(reader.listed(read_operand))
        elif key in KEPT.get(schema.opcode, ()):
            parsed.notes[key] = read_raw(reader)
        else:
            _refuse_attribute(reader, schema, key, place)


def _refuse_attribute(reader: HloReader, schema: Schema, key: str, place: int) -> None:
    own = (*own_keys(schema.opcode), *KEPT.get(schema.opcode, ()))
    close = reader.near(key, (*own, *COMMON, CONTROL))
    has = f"it has {', '.join(own)}" if own else "it has none"
    reader.fail("unknown_attribute", f"{schema.spelling} has no attribute {key[:60]!r}; {has}", *close, place=place)


def record_of(schema: Schema, parsed: ParsedInstruction, values: dict[str, Any]) -> Any:
    """The record of the attributes of an op, or None; also fills `values`, with which errors are explained."""
    if schema.attributes is None:
        return None
    for spelling in spellings(schema.opcode):
        values.update(spelling.read(parsed))
    for each in attrs.fields(schema.attributes):
        if each.name not in values and each.default is attrs.NOTHING:
            keys = next(s.keys for s in spellings(schema.opcode) if each.name in s.names)
            refuse("missing_attribute", f"attribute {' or '.join(keys) or each.name!r} is missing")
    return schema.read(values)


# ----------------------------------------------------------------------------
# The number of a parameter


def read_number(body: Body) -> int:
    """Read the number of a parameter, which must be new."""
    reader = body.reader
    place = reader.skip()
    number = reader.integer()
    if number in body.numbers:
        reader.fail("duplicate_parameter", f"computation {body.name!r} already has a parameter {number}", place=place)
    if not 0 <= number < 2**31:
        reader.fail("invalid_attribute", f"{number} is not a valid parameter number; numbers start at 0", place=place)
    body.numbers.add(number)
    return number


# ----------------------------------------------------------------------------
# Tuple constants: a constant for each array, and tuples of them


def tuple_constant(body: Body, name: str | None, shape: TupleShape, place: int) -> Instruction:
    """Read the tuple between the parentheses of `constant(...)`, with the attributes after it."""
    parsed = _read_tuple(body, shape, place)
    body.reader.expect(")", " at the end of a constant")
    if name is not None:
        read_attributes(body.reader, OPS["tuple"], parsed, body.read_operand)
    return body.finish(name, OPS["tuple"], parsed, None, place, "")


def _read_tuple(body: Body, shape: TupleShape, place: int) -> ParsedInstruction:
    parsed = ParsedInstruction(shape.plain())
    body.reader.expect("(", " before the elements of a tuple")
    found = []
    for number, element in enumerate(shape.elements):
        if number:
            body.reader.expect(",", " between the elements of a tuple")
        found.append(_read_tuple_element(body, element, place))
    body.reader.expect(")", f" after the {len(shape)} elements of a tuple")
    parsed.operands = tuple(found)
    return parsed


def _read_tuple_element(body: Body, shape: AnyShape, place: int) -> Instruction:
    if isinstance(shape, TupleShape):
        return body.finish(None, OPS["tuple"], _read_tuple(body, shape, place), shape, place, "")
    if not isinstance(shape, Shape):
        body.reader.fail("syntax", f"a constant can contain only arrays, but an element has shape {shape}")
    parsed = ParsedInstruction(shape.plain())
    parsed.inside, text = read_elements(body.reader, shape)
    return body.finish(None, OPS["constant"], parsed, shape, place, text)


# ----------------------------------------------------------------------------
# Converts that XLA inserts if HLO text mixes element types: of operands of products, and of results


def convert_operands(body: Body, schema: Schema, parsed: ParsedInstruction, place: int) -> None:
    """Convert the operands of a product to one kind of element type, such as an integer and a float to floats."""
    dtypes = product_types(schema.opcode, parsed)
    if dtypes is None:
        return
    converted = [
        each if each.shape.dtype is dtype else convert(body, None, each, each.shape.plain().with_dtype(dtype), place)
        for each, dtype in zip(parsed.operands, dtypes, strict=False)
        if isinstance(each.shape, Shape)
    ]
    parsed.operands = (*converted, *parsed.operands[2:])


def convert(body: Body, name: str | None, operand: Instruction, shape: AnyShape | None, place: int) -> Instruction:
    """A convert to a shape, or the operand if it has that shape."""
    if operand.shape.plain() == shape:
        return operand
    parsed = ParsedInstruction(shape)
    parsed.operands = (operand,)
    return body.finish(name, OPS["convert"], parsed, None, place, "")


def select_bits(body: Body, name: str | None, parsed: ParsedInstruction, shape: Shape, place: int) -> Instruction:
    """The random bits of an rng-bit-generator whose written result omits the new state."""
    states = [each.shape.plain() for each in parsed.operands[:1]]
    both = evolve(parsed, shape=TupleShape((*states, shape.plain())), notes={})
    made = body.finish(None, OPS["rng_bit_generator"], both, None, place, "")
    taken = ParsedInstruction(shape.plain(), (made,), written={"index": 1}, notes=parsed.notes)
    return body.finish(name, OPS["get_tuple_element"], taken, None, place, "")


def add_unnamed(
    body: Body, schema: Schema, parsed: ParsedInstruction, record: Any, segments: Any, shape: AnyShape, place: int
) -> Instruction:
    """Add an instruction that the text does not name, with the inferred shape."""
    name, notes = body.generate_name(schema.spelling), parsed.annotations
    found = Instruction(
        schema.opcode, name, shape, parsed.operands, segments, record, body.where, parsed.control, notes
    )
    if schema.opcode in MEETS:
        check_ids(body, found, schema, place)
    return body.add(found, shape)


# ----------------------------------------------------------------------------
# Fast path: one regular expression matches a line that differs from an earlier one only in names

_LINE_SHAPE = r"\([^()\n]*+\)|[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?"
_LINE = re.compile(
    rf"(ROOT )?%?([A-Za-z_][\w.-]*+) = ({_LINE_SHAPE}) ([a-z][a-z0-9-]*+)\(([^()\n]*+)\)"
    rf"([^\n]{{0,2000}}+)(?=\n\s*+[A-Za-z_%}}])",
    re.ASCII,
)
_TYPED = re.compile(rf"({_LINE_SHAPE}) %?([A-Za-z_][\w.-]*+)(?:, |$)", re.ASCII)
_NO_OPERANDS = ("constant", "parameter")
_METADATA = ", metadata={"
_NUMBER = re.compile(r"[0-9]{1,9}")
_QUOTED = re.compile(r'"[^"]*+"')
_CALLED = re.compile(r", (calls|to_apply)=%?([A-Za-z_][\w.-]*+)(?=[,\s]|$)", re.ASCII)
_ENTRY = re.compile(r'([a-z_]++)=(?:"((?:[^"\\]++|\\.)*+)"|(0|[1-9][0-9]{0,17}+))(?:[ ,]++|$)')


@frozen
class KnownLine:
    """What lines of one opcode, shape and attributes share."""

    schema: Schema
    record: Any
    declared: AnyShape
    plain: AnyShape
    annotations: Mapping[str, Any]


_NEVER_KNOWN = tuple(ASYNC)  # their operand determines what they are


def known_line(schema: Schema, parsed: ParsedInstruction, record: Any, declared: AnyShape | None) -> KnownLine | None:
    """What lines like this one share; None if they may differ by more than names."""
    if declared is None or parsed.control or schema.opcode in _NEVER_KNOWN or depends_on_operands(schema.opcode):
        return None
    notes = {key: value for key, value in parsed.notes.items() if key != "metadata"}
    assert parsed.shape is not None
    return KnownLine(schema, record, declared, parsed.shape, notes or NOTHING)


@define(eq=False)
class KnownLines:
    """The lines of one opcode, shape and attributes that were read.

    `variants` has one for each list of operand shapes if attributes depend on them, else one for all. `checked` has
    those whose result was inferred, by the ids of the operand shapes, which `kept` keeps alive.
    """

    schema: Schema
    variants: dict[tuple[AnyShape, ...], KnownLine] = Factory(dict)
    checked: dict[tuple[int, ...], tuple[KnownLine, tuple[int, ...] | None, Any]] = Factory(dict)
    kept: list[Any] = Factory(list)

    def enter(self, known: KnownLine, shapes: tuple[AnyShape, ...]) -> None:
        self.variants[shapes if depends_on_shapes(known.schema.opcode) else ()] = known

    def check(
        self, shapes: tuple[AnyShape, ...], own: dict[str, Any] | None = None
    ) -> tuple[KnownLine, tuple[int, ...] | None, Any] | None:
        """The line for operands of these shapes, the lengths of its operand lists, and its record with its own
        attribute; None if it must be read in full."""
        schema = self.schema
        known = self.variants.get(shapes if depends_on_shapes(schema.opcode) else ())
        if known is None:
            return None
        record = known.record if own is None else schema.fill({**vars(known.record), **own})
        try:
            segments = segments_of(schema, len(shapes))
            if len(shapes) > 1:
                check_precision(schema, shapes)
            inferred = known.record if schema.opcode == "parameter" else record  # whose number does not matter
            shape = infer_shape(schema, shapes, segments, inferred)
        except XbuildError:
            return None
        if shape is not known.plain and not compatible(shape, known.plain):
            return None
        if own is None:
            self.checked[tuple(map(id, shapes))] = known, segments, record
            self.kept.append(shapes)
        return known, segments, record


class InstructionLine:
    """A line that looks like an instruction with its shape and without nesting.

    `own` is an attribute that differs from line to line: the number of a parameter, or the name of a computation.
    """

    __slots__ = ("end", "is_root", "key", "match", "metadata", "name", "operands", "own")

    def __init__(self, match: re.Match[str], split: dict[str, tuple[str, Mapping[str, Any] | None]]) -> None:
        self.match, self.end = match, match.end()
        root, self.name, shape, opcode, self.operands, attributes = match.groups()
        self.is_root = root is not None
        self.metadata: Mapping[str, Any] | None = NOTHING
        if _METADATA in attributes:
            known = split.get(attributes)
            if known is None:
                known = split[attributes] = _split_metadata(attributes)
            attributes, self.metadata = known
        self.own: tuple[str, str] | None = None
        inside = ""
        if opcode == "parameter" and _NUMBER.fullmatch(self.operands):
            self.own, self.operands = ("number", self.operands), ""
        elif opcode in _NO_OPERANDS:
            inside, self.operands = self.operands, ""
        elif "calls=" in attributes or "to_apply=" in attributes:
            called = _CALLED.search(attributes)
            if called is not None and _is_at_top(attributes[: called.start()]):
                self.own = called[1], called[2]
                attributes = attributes[: called.start(2)] + attributes[called.end(2) :]
        self.key = opcode, shape, attributes, inside

    def ends(self, text: str, place: int) -> bool:
        """Whether reading that ended at this place consumed exactly this line."""
        return place >= self.end and not text[self.end : place].strip()


def _is_at_top(before: str) -> bool:
    """Whether what follows this text is outside of its strings and braces."""
    if "\\" in before or "'" in before:
        return False
    plain = _QUOTED.sub("", before) if '"' in before else before
    return '"' not in plain and plain.count("{") == plain.count("}")


def _split_metadata(attributes: str) -> tuple[str, Mapping[str, Any] | None]:
    """Separate the metadata from the attributes, which more lines share; None if its form is unusual."""
    begin = attributes.index(_METADATA)
    end = attributes.find("}", begin)
    text = attributes[begin + len(_METADATA) : end]
    found: dict[str, Any] = {}
    place = 0
    for match in _ENTRY.finditer(text):
        if match.start() != place or match[1] not in METADATA or match[1] in found:
            return attributes, None
        found[match[1]] = int(match[3]) if match[2] is None else hlo_text(match[2])
        place = match.end()
    if end < 0 or place != len(text) or not _is_at_top(attributes[:begin]):
        return attributes, None
    return attributes[:begin] + attributes[end + 1 :], found


def take_known(body: Body, line: InstructionLine, lines: KnownLines) -> bool:
    """Add the instruction of a known line; False if the line must be read in full, which may refuse it."""
    name, names, metadata = line.name, body.names, line.metadata
    if name in names or name in KEYWORDS or metadata is None or (line.is_root and body.root is not None):
        return False
    used = _operand_names(body, line.operands)
    if used is None:
        return False
    plain = body.plain
    try:
        shapes = tuple([plain[each] for each in used])
    except KeyError:  # undefined, or faulty
        return False
    reader = body.reader
    if line.own is None:
        checked = lines.checked.get(tuple(map(id, shapes))) or lines.check(shapes)
    else:
        own = _own_attribute(body, line.own)
        checked = None if own is None else lines.check(shapes, own)
    if checked is None:
        return False
    known, segments, record = checked
    schema = known.schema
    if schema.opcode == "parameter":
        body.numbers.add(record.number)
    where: TextSource | None = reader.origin(metadata) if reader.origins else None
    if where is None and reader.source_file is not None:
        where = TextSource(reader.source_file, reader.line(line.match.start()), body.name)
    annotations = known.annotations
    if metadata:
        annotations = {**annotations, "metadata": metadata} if annotations else {"metadata": metadata}
    operands: Any = tuple([names[each] for each in used])
    instruction: Any = InstructionDraft(
        schema.opcode, name, known.declared, operands, segments, record, where, (), annotations
    )
    instruction.__class__ = Instruction
    names[name] = instruction
    plain[name] = known.plain
    body.instructions.append(instruction)
    if line.is_root:
        body.root = instruction
    return True


def _own_attribute(body: Body, own: tuple[str, str]) -> dict[str, Any] | None:
    """The attribute that a line has for itself; None if it must be read in full, which may refuse it."""
    name, text = own
    if name == "number":
        return None if int(text) in body.numbers else {name: int(text)}
    called = body.reader.computations.get(text)
    return None if called is None else {name: called}


def _operand_names(body: Body, operands: str) -> list[str] | None:
    if not operands:
        return []
    if "[" not in operands:
        return operands.replace("%", "").split(", ")
    found = list(_names_after_shapes(body, operands))
    return None if None in found else found  # type: ignore[return-value]


def _names_after_shapes(body: Body, operands: str) -> Iterator[str | None]:
    """The names of operands that follow their shapes; None for a shape that is new or differs."""
    place = 0
    for match in _TYPED.finditer(operands):
        shape, name = body.reader.shapes.get(match[1]), match[2]
        plain = body.plain.get(name)
        is_known = match.start() == place and shape is not None and plain is not None
        yield name if is_known and (shape is plain or compatible(shape, plain)) else None  # type: ignore[arg-type]
        place = match.end()
    if place != len(operands):
        yield None


# ----------------------------------------------------------------------------
# Body: the instructions of a computation

# XLA infers omitted shapes of results, except for these ops.
NEEDS_SHAPE = opcodes(lambda op: op.states_shape)


class Body:
    """A computation while it is read; the name of a faulty instruction has the value None."""

    def __init__(self, reader: HloReader, name: str) -> None:
        self.reader, self.name = reader, name
        self.names: dict[str, Instruction | None] = {}
        self.plain: dict[str, AnyShape] = {}
        self.root: Instruction | None = None
        self.instructions: list[Instruction] = []
        self.is_poisoned = False
        self.reading: str | None = None
        self.numbers: set[int] = set()
        self.where: TextSource | None = TextSource("", 0, name)
        self.known: KnownLine | None = None
        self.has_control_dependencies = False
        self.bits: set[str] = set()  # values of random bits whose written type differs from the inferred one

    def poison(self) -> None:
        """Mark the instruction that is being read as faulty, so that its users are not reported as well."""
        self.is_poisoned = True
        if self.reading is not None:
            self.names.setdefault(self.reading, None)

    def computation(self, begin: int) -> Computation:
        if not self.instructions:
            self.reader.fail("syntax", f"computation {self.name!r} has no instructions", place=begin)
        if self.numbers and len(self.numbers) != max(self.numbers) + 1:
            missing = next(n for n in range(len(self.numbers) + 1) if n not in self.numbers)
            self.reader.fail(
                "missing_parameter",
                f"computation {self.name!r} has no parameter {missing}, but it has a parameter with a higher number",
                place=begin,
            )
        found = Computation(self.name, tuple(self.instructions), self.root or self.instructions[-1])
        if not self.has_control_dependencies:
            return found
        try:
            return with_control_edges(found)
        except XbuildError as error:
            return self.reader.fail(error.kind, error.message, place=begin)

    def read(self) -> None:
        """Read the next instruction."""
        reader = self.reader
        place, self.reading, self.known = reader.place, None, None
        match = _LINE.match(reader.text, place)
        if match is None:
            self._read_in_full(place)
            return
        line = InstructionLine(match, reader.split)
        lines = reader.known.get(line.key)
        if lines is not None and take_known(self, line, lines):
            reader.place = line.end
            return
        count = len(self.instructions)
        self._read_in_full(place)
        is_one = len(self.instructions) == count + 1  # without converts of operands and the like
        if self.known and is_one and line.metadata is not None and line.ends(reader.text, reader.place):
            if line.own is not None and line.own[0] not in self.known.schema.names:
                return
            if lines is None:
                lines = reader.known[line.key] = KnownLines(self.known.schema)
            lines.enter(self.known, tuple([self.plain[o.name] for o in self.instructions[-1].operands]))

    def _read_in_full(self, place: int) -> None:
        reader = self.reader
        line, file = reader.line(place), reader.source_file
        self.where = None if file is None else TextSource(file, line, self.name)
        is_root = reader.take_word("ROOT")
        place = reader.skip()
        name = self._read_name()
        self.reading = name
        instruction = self._instruction(name, self._shape())
        if is_root and self.root is not None:
            reader.fail(
                "syntax",
                f"a computation can have only one ROOT, but {self.root.name!r} is already the ROOT of {self.name!r}",
                place=place,
            )
        if is_root:
            self.root = instruction

    def _read_name(self) -> str:
        """Read the name before ` = `, which must be new."""
        reader = self.reader
        place = reader.skip()
        is_marked = reader.text.startswith("%", place)
        name = reader.name("the name of an instruction")
        if reader.text.startswith("=", reader.place) and not is_marked:
            reader.fail(
                "syntax",
                f"expected a space between {name!r} and '='; without a space, {name}= is an attribute",
                place=place,
            )
        reader.expect("=", f" after {name!r}")
        if name in self.names:
            first = self.names[name]
            line = f" on line {first.source.line}" if first is not None and first.source else ""
            reader.fail("duplicate_name", f"instruction {name!r} is already defined{line}", place=place)
        return name

    def _shape(self) -> AnyShape | None:
        """Read a shape, if there is one."""
        reader = self.reader
        place = reader.skip()
        match = NAME.match(reader.text, place)
        if match is None:
            return reader.shape() if reader.text.startswith("(", place) else None
        word = match[0]
        if word in PRIMITIVES or word == "token" or (word == "b" and reader.text.startswith("(", match.end())):
            return reader.shape()
        if word == "opaque" and reader.text.startswith("[", match.end()):
            reader.fail("syntax", "xbuild does not support the type opaque")
        return None

    def _instruction(self, name: str | None, shape: AnyShape | None) -> Instruction:
        """Read an instruction from its opcode on; without a name, it is an operand in place and has no attributes."""
        reader = self.reader
        place = reader.skip()
        schema, wrapped = self._schema(place, shape)
        if shape is None and schema.opcode in NEEDS_SHAPE:
            reader.fail(
                "missing_shape",
                f"write the shape of the result before {schema.spelling}; it cannot be inferred",
                place=place,
            )
        parsed = ParsedInstruction(
            shape and shape.plain(), counts=(reader.header.num_replicas, reader.header.num_partitions)
        )
        reader.expect("(", f" after {schema.spelling}")
        if schema.opcode == "constant" and isinstance(shape, TupleShape):
            return tuple_constant(self, name, shape, place)
        literal = ""
        if schema.opcode == "constant":
            parsed.inside, literal = read_literal(reader, shape)
        elif schema.opcode == "parameter":
            parsed.inside = read_number(self)
        else:
            parsed.operands = self._operands()
        reader.expect(")", f" at the end of the operands of {schema.spelling}")
        schema = resolve_async(self, schema, wrapped, parsed, place)
        starts = wrapped if schema.opcode == "async_start" else None
        if name is not None:
            read_attributes(reader, starts or schema, parsed, self.read_operand, extra_keys(schema, starts))
        if schema.opcode == "rng_bit_generator" and isinstance(shape, Shape):
            return select_bits(self, name, parsed, shape, place)
        if schema.opcode in HALVES:
            check_repeated(self, parsed, place)
        if starts is not None:
            parsed = unfold_start(self, starts, parsed, shape, place)
        return self.finish(name, schema, parsed, shape, place, literal)

    def _schema(self, place: int, shape: AnyShape | None) -> tuple[Schema, Schema | None]:
        """Read an opcode; return the op, and the wrapped op if it is the short form of an async op."""
        reader = self.reader
        match = reader.scan(NAME)
        if not match:
            reader.expected("an opcode")
        return find_op(match[0], shape) or refuse_opcode(reader, match[0], place)

    def _operands(self) -> tuple[Instruction, ...]:
        """Read the operands up to the closing parenthesis; a trailing comma is allowed."""
        found: list[Instruction] = []
        while not self.reader.sees(")"):
            found.append(self._operand())
            if not self.reader.take(","):
                break
        return tuple(found)

    def _operand(self) -> Instruction:
        reader = self.reader
        shape = self._shape()
        place = reader.skip()
        match = NAME.match(reader.text, place)
        if match and OPENS.match(reader.text, match.end()):
            with reader.deeper():
                return self._instruction(None, shape)
        found = self.read_operand()
        while reader.sees("#"):
            found = self._tuple_element(found, place)
        if shape is not None and not matches_operand(shape, found, self.bits):
            message = f"operand {found.name!r} is {found.shape}, but the text states {shape}"
            reader.fail("shape_mismatch", message, place=place)
        return found

    def _tuple_element(self, tuple_: Instruction, place: int) -> Instruction:
        """The get-tuple-element that `#1` after an operand means; all uses share one."""
        self.reader.expect("#")
        index = self.reader.integer()
        spelled = f"{tuple_.name}#{index}"  # no other name has a `#`; the fast path finds a second use by it
        found = self.names.get(spelled)
        if found is None:
            parsed = ParsedInstruction(None, (tuple_,), written={"index": index})
            name = self.unused(f"{tuple_.name}_{index}")
            found = self.finish(name, OPS["get_tuple_element"], parsed, None, place, "")
            self.names[spelled], self.plain[spelled] = found, self.plain[name]
            if tuple_.name in self.bits:
                self.bits.add(name)
        return found

    def read_operand(self) -> Instruction:
        """Read the name of an instruction and return that instruction."""
        reader = self.reader
        place = reader.skip()
        name = reader.name("an operand")
        if name not in self.names:
            names = [] if reader.is_terse else list(self.names)[-2000:]
            reader.fail(
                "undefined_name",
                f"undefined instruction {name!r}",
                *reader.near(name, names),
                place=place,
            )
        found = self.names[name]
        if found is None:
            raise Poisoned
        return found

    def finish(
        self,
        name: str | None,
        schema: Schema,
        parsed: ParsedInstruction,
        declared: AnyShape | None,
        place: int,
        literal: str,
    ) -> Instruction:
        values: dict[str, Any] = {}
        segments = None
        convert_operands(self, schema, parsed, place)
        try:
            segments = segments_of(schema, len(parsed.operands))
            record = record_of(schema, parsed, values)
            if schema.opcode == "async_start":
                check_unshared(self, record.calls)
            shapes = tuple([self.plain[o.name] for o in parsed.operands])
            if shapes:
                check_precision(schema, shapes)
            shape = infer_shape(schema, shapes, segments, record)
            if schema.opcode == "set_dimension_size":
                shape = parsed.resolve_dimension_size(shape)
            if parsed.shape is not None and not (shape is parsed.shape or compatible(shape, parsed.shape)):
                if is_converted(schema.opcode, parsed, shape):
                    made = add_unnamed(self, schema, parsed, record, segments, shape, place)
                    return convert(self, name, made, parsed.shape, place)
                parsed.check_written_shape(schema.opcode, shape, self.bits)
                name, declared = name or self.generate_name(schema.spelling), None
                self.bits.add(name)
            elif parsed.shape is None and isinstance(shape, TupleShape):
                self.reader.count_leaves(shape)
            elif schema.opcode == "async_update" and parsed.operands[0].name in self.bits:
                start = parsed.operands[0].name
                refuse("shape_mismatch", f"the result of {start!r} is (), but the text states {parsed.shape} here")
        except XbuildError as error:
            raise self.fault_of(error, schema, parsed.operands, segments, values, place) from None
        if literal:
            parsed.notes["literal"] = SpelledLiteral(record.literal, literal)
        if name is not None:
            self.known = known_line(schema, parsed, record, declared)
        name = self.generate_name(schema.spelling) if name is None else name
        where = self.reader.origin(parsed.notes.get("metadata")) or self.where
        instruction = Instruction(
            schema.opcode, name, shape if declared is None else declared, parsed.operands, segments, record, where,
            parsed.control, parsed.annotations,
        )  # fmt: skip
        if schema.opcode in MEETS:
            check_ids(self, instruction, schema, place)
        if schema.opcode == "custom_call" and is_control_dependency(instruction):
            self.has_control_dependencies = True
        return self.add(instruction, shape)

    def add(self, instruction: Instruction, shape: AnyShape) -> Instruction:
        self.names[instruction.name] = instruction
        self.plain[instruction.name] = shape.plain()
        self.instructions.append(instruction)
        return instruction

    def generate_name(self, spelling: str) -> str:
        """A new name for an instruction that the text does not name."""
        number = 1
        while self._is_taken(f"{spelling}.{number}"):
            number += 1
        return f"{spelling}.{number}"

    def unused(self, name: str) -> str:
        """The name itself if it is free, else a new name that begins with it."""
        return self.generate_name(name) if self._is_taken(name) else name

    def _is_taken(self, name: str) -> bool:
        return name in self.names or name in self.reader.known_names

    def fault_of(
        self,
        error: XbuildError,
        schema: Schema,
        operands: tuple[Instruction, ...],
        segments: tuple[int, ...] | None,
        values: dict[str, Any],
        place: int,
    ) -> Fault:
        """An error of the op as a fault of the text, with operands and attributes below it."""
        explained = str(explain(error, schema, operands, segments, values, None)).splitlines()
        rows = [row for row in explained[1:] if not row.startswith("  hint: ")]
        return Fault(error.kind, f"{schema.spelling}: {error.message}", place, error.hints, rows)


# ----------------------------------------------------------------------------
# Parts of a text with several modules. Empty lines precede a part, so that line numbers are those of the text.

SEVERAL = "the second module begins here; xb.parse_hlo_modules reads all of them"
_BORDER = re.compile(r"^[ \t]*+// -----[^\n]*+$|^(?=[ \t]*+HloModule[ \t,])", re.MULTILINE)
_BORDER_OR_STRING = re.compile(
    rf'(?P<border>{_BORDER.pattern})|"(?s:[^"\\]++|\\.)*+"?|//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)', re.MULTILINE
)
_NAME = re.compile(r"^[ \t]*+HloModule[ \t]++%?([\w.-]++)", re.MULTILINE)
_COMMENTS = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")


def split_modules(text: str) -> list[str]:
    """The parts of a text that hold more than comments."""
    return ["\n" * text.count("\n", 0, begin) + text[begin:end] for begin, end in module_ranges(text)]


def modules_in(text: str) -> list[tuple[str, str]]:
    """Name and text of each part; a blank line stands in for each line before it."""
    return [(found[1] if (found := _NAME.search(part)) else "", part) for part in split_modules(text)]


def find_second_module(text: str) -> tuple[int, int]:
    """The number of parts, and where the second begins; 0 if there is only one."""
    ranges = module_ranges(text)
    return len(ranges), ranges[1][0] if len(ranges) > 1 else 0


def module_ranges(text: str) -> list[tuple[int, int]]:
    """Begin and end of each part."""
    found = [each.start() for each in _BORDER.finditer(text)]
    if len(found) > 1:  # a table of the header may hold the text of a module, as a string
        found = [each.start() for each in _BORDER_OR_STRING.finditer(text) if each["border"] is not None]
    borders = [0, *found, len(text)]
    return [(begin, end) for begin, end in itertools.pairwise(borders) if _has_content(text, begin, end)]


def _has_content(text: str, begin: int, end: int) -> bool:
    comments = _COMMENTS.match(text, begin, end)
    return comments is not None and comments.end() < end


# ----------------------------------------------------------------------------
# parse_hlo: modules and computations

# The next place where an instruction or the end of a computation may begin.
_RESUME = re.compile(r"\n[ \t\r]*+(?=(?:ROOT[ \t]++)?%?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]++=|\})")

# A word before an `=`.
_ASSIGNED = re.compile(r"(?<![A-Za-z0-9_.-])([A-Za-z_][A-Za-z0-9_.-]*+)[ \t\r\n]*+=")

# The next place where a computation can begin.
_NEXT = re.compile(r"\n(?=(?:[ \t]*+ENTRY[ \t]++)?%?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]*+[({])")

_SHAPE = re.compile(r"[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?|\([^()\n]*+\)", re.ASCII)

_MLIR = re.compile(r"\s*+(?:#[^\n]*+\n\s*+)*+module\s*+(?:@|attributes\b|\{\s*+(?:func\.func|sdy\.mesh)\s++[@\w])")


def parse_hlo(
    text: str | bytes,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
) -> Module:
    """Read a module from HLO text. Every shape is inferred and compared with the shape in the text.

    Layouts, shardings, metadata, backend_config and similar annotations are kept and printed. `file` is the name of the
    text in error messages. With `origins`, reports name the source lines in the metadata instead of lines in the text.
    `replicas` and `partitions` override the counts in the header. If neither the arguments nor the header state counts,
    groups, pairs and shardings determine them, and `annotations["inferred_counts"]` of the module says how. Raises
    HloParseError with up to twenty faults, each with its line, its column and what was expected.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) ROOT y = negate(x) }")
    >>> print(module.entry)
    ENTRY main {
      x = f32[2] parameter(0)
      ROOT y = f32[2] negate(x)
    }

    Source: xla/hlo/parser, the grammar of HLO text.
    """
    if isinstance(text, bytes | bytearray):
        text = text.decode("utf-8", errors="surrogateescape")
    if not isinstance(text, str):
        raise TypeError(f"expected HLO text as str or bytes, got {type(text).__name__}")
    check_counts(replicas, partitions)
    with no_collection():
        return HloReader(text, file, origins, (replicas, partitions)).module()


class HloReader(Scanner):
    """Reads one module. A computation with faults is None, and its users are skipped without a fault."""

    def __init__(
        self, text: str, file: str | None = None, origins: bool = False, counts: Counted = (None, None)
    ) -> None:
        super().__init__(text)
        self.file, self.origins, self.counts = file, origins, counts
        self.frames: Frames = {}
        self.header = Header()
        self.computations: dict[str, Computation | None] = {}
        self.order: list[Computation] = []
        self.inline, self.last = 0, ""
        self.started: set[Computation] = set()
        self.faults, self.count = list[Fault](), 0
        self.known: dict[tuple[str, ...], KnownLines] = {}
        self.split: dict[str, tuple[str, Mapping[str, Any] | None]] = {}  # attributes of lines, apart from metadata
        self.source_file = None if file in UNWRITTEN else file or "<hlo>"
        self.shapes: dict[str, AnyShape] = {}
        self._lines = (0, 1)
        self._known_names: frozenset[str] | None = None
        self.leaves = 0  # of tuples whose shapes the text omits

    def module(self) -> Module:
        try:
            with during("reading text", lambda: self.place, len(self.text), "characters"):
                entry = self._read()
        except Fault as fault:
            self.keep(fault)
        except RecursionError:
            self.keep(Fault("syntax", "this is nested too deeply", self.place))
        if self.faults:
            raise self._error()
        assert entry is not None  # else there is a fault
        infer_counts(self.header, self.order)
        return Module(
            self.header.name or f"module_{entry.name}",
            entry,
            tuple(self.order),
            num_replicas=self.header.num_replicas,
            num_partitions=self.header.num_partitions,
            is_scheduled=self.header.is_scheduled,
            annotations=with_comments(self.header.annotations, self.text, self.file or "<hlo>"),
        )

    def _error(self) -> HloParseError:
        return parse_error(self.text, self.file, self.faults, self.count)

    def keep(self, fault: Fault) -> None:
        """Store a fault; beyond a limit, faults are only counted."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        self.is_terse = len(self.faults) == MOST_FAULTS

    def _read(self) -> Computation | None:
        if _MLIR.match(self.text):
            hint = "use xb.parse_stablehlo to read MLIR, or xb.parse to read either language"
            self.fail("syntax", "expected HLO text, got MLIR", hint)
        count, place = find_second_module(self.text)
        if count > 1:
            self.fail("syntax", f"expected one module, got {count}", SEVERAL, place=place)
        if not self._read_or_skip(self._read_header):
            return None
        set_counts(self.header, *self.counts)
        entry: str | None = None
        while self.skip() < len(self.text) and self.count < COUNTED_FAULTS:
            place = self.skip()
            is_entry = self.take_word("ENTRY")
            if is_entry and entry is not None:
                self.keep(Fault("syntax", f"a module has only one ENTRY, but {entry!r} is already the ENTRY", place))
            if not self._read_or_skip(self._read_computation):
                return None
            entry = self.last if is_entry else entry
        if not self.last and not self.count:
            self.expected("a computation")
        if self.count:
            return None
        found = self.computations[self.last if entry is None else entry]
        assert found is not None  # else there is a fault
        check_aliases(self, self.header.aliases, found)
        return found

    def _read_or_skip(self, part: Callable[[], None]) -> bool:
        """Read a part; after a fault, resume at the next computation. False if there is none."""
        try:
            part()
        except Fault as fault:
            self.keep(fault)
            following = _NEXT.search(self.text, self.place)
            self.place = following.end() if following else len(self.text)
            return following is not None
        return True

    def _read_header(self) -> None:
        self.header = read_header(self)
        if self.origins:
            self.frames = read_frames(self.header.annotations.get("stack_tables", ""))

    def _read_computation(self) -> None:
        place = self.skip()
        name = self.name("the name of a computation")
        if name in self.computations:
            self.fail("duplicate_name", f"computation {name!r} is already defined", place=place)
        try:
            written = self._signature()
            self.expect("{", f" before the instructions of {name!r}")
            computation = self.body(name, written)
        except Fault:
            self.computations[name] = None
            raise
        self.last, self.computations[name] = name, computation
        if computation is not None:
            self.add(computation)
        while self.take(","):
            key, key_place = self.key()
            if key == "backend_config":
                self.header.annotations.setdefault(CONFIGS, {})[name] = read_raw(self)
            elif key == "execution_thread":
                self.string()
            else:
                self.fail("unknown_attribute", f"a computation has no attribute {key!r}", place=key_place)

    def _signature(self) -> tuple[int, ProgramShape] | None:
        """The program shape before the brace, with its place, if there is one."""
        place = self.skip()
        if not self.sees("("):
            return None
        parameters = self.listed(self._parameter, "(", ")")
        self.expect("->")
        place = self.skip()
        return place, ProgramShape(parameters, self.shape())

    def _parameter(self) -> AnyShape:
        self.take("%")
        if not self.scan(NAME):
            self.expected("the name of a parameter")
        self.expect(":")
        return self.shape()

    def count_leaves(self, shape: TupleShape) -> None:
        """Count the leaves of a tuple whose shape the text omits: a short line may repeat a large tuple."""
        self.leaves += shape.count
        most = MOST_LEAVES_OF_TEXT + len(self.text)
        if self.leaves > most:
            refuse(
                "tuple_too_large",
                f"the tuples in the text would have {self.leaves:,} arrays and tokens, more than the limit of {most:,}",
            )

    def body(self, name: str, written: tuple[int, ProgramShape] | None = None) -> Computation | None:
        """Read the instructions up to the closing brace as a computation; None if one has a fault."""
        body = Body(self, name)
        begin = self.place
        while not self.take("}"):
            self._instruction(body)
        if body.is_poisoned:
            return None
        computation = body.computation(begin)
        if written and not (
            compatible(written[1].result, computation.root.shape)
            or (computation.root.name in body.bits and of_one_width(written[1].result, computation.root.shape))
        ):
            message = (
                f"the signature of {name!r} returns {written[1].result}, but its root "
                f"{computation.root.name!r} is {computation.root.shape}"
            )
            self.keep(Fault("shape_mismatch", message, written[0]))
            return None
        return computation

    def _instruction(self, body: Body) -> None:
        """Read an instruction; after a fault, resume at the next line that looks like one."""
        begin = self.place
        try:
            body.read()
        except (Fault, Poisoned) as fault:
            body.poison()
            if isinstance(fault, Fault):
                self.keep(fault)
            if self.depth or self.count >= COUNTED_FAULTS:
                raise self._error() from None
            read = self.text[begin : max(begin, self.place)].rstrip()  # blanks may have been skipped already
            resume = _RESUME.search(self.text, begin + len(read))
            if resume is None:
                raise self._error() from None
            self.place = resume.end()

    def origin(self, metadata: Mapping[str, Any] | None) -> MetadataSource | None:
        """The source line in the metadata, if `origins` is set."""
        return origin(self.frames, metadata) if metadata and self.origins else None

    def shape(self) -> AnyShape:
        """Read a shape; known shapes are looked up by their text."""
        match = _SHAPE.match(self.text, self.skip())
        if not match:
            return super().shape()
        found = self.shapes.get(match[0])
        if found is not None and not self.text.startswith("{", match.end()):
            self.place = match.end()
            return found
        begin, found = self.place, super().shape()
        if self.place == match.end():
            self.shapes[self.text[begin : self.place]] = found
        return found

    def region(self) -> Computation:
        """Read a computation: by name, or in place in braces."""
        if not self.sees("{"):
            return self._named_computation()
        with self.deeper():
            self.take("{")
            self.inline += 1
            computation = self.body(f"inline.{self.inline}")
        if computation is None:
            raise Poisoned
        self.add(computation)
        return computation

    def add(self, computation: Computation) -> None:
        """Add a computation to the module, after its callees."""
        self.order.append(computation)

    def _named_computation(self) -> Computation:
        place = self.skip()
        name = self.name("the name of a computation")
        if name not in self.computations:
            hints = self.near(name, self.computations) or ("define a computation before its callers",)
            self.fail("undefined_name", f"undefined computation {name!r}", *hints, place=place)
        computation = self.computations[name]
        if computation is None:
            raise Poisoned
        return computation

    def line(self, place: int) -> int:
        """The line number of a place, which must not precede the previous one."""
        last, line = self._lines
        line += self.text.count("\n", last, place)
        self._lines = place, line
        return line

    @property
    def known_names(self) -> frozenset[str]:
        """Every word before an `=` in the text: names that generated ones must avoid."""
        if self._known_names is None:
            self._known_names = frozenset(_ASSIGNED.findall(self.text))
        return self._known_names


# ----------------------------------------------------------------------------
# parse_hlo_modules: texts of several modules, separated by lines `// -----` or headers


def parse_hlo_modules(
    text: str | bytes,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
) -> tuple[Module, ...]:
    """Read several independent modules from one text, separated by `// -----` lines or by module headers.

    Raises HloParseError, as xb.parse_hlo does, for the first module with faults. Line numbers are those of the text.

    >>> import xbuild as xb
    >>> one = "HloModule one ENTRY e { ROOT x = f32[2] parameter(0) }"
    >>> [module.name for module in xb.parse_hlo_modules(one + "\\n// -----\\n" + one.replace("one", "two"))]
    ['one', 'two']

    Source: XLA, hlo-opt --split-input-file.
    """
    if isinstance(text, bytes | bytearray):
        text = text.decode("utf-8", errors="surrogateescape")
    options = {"origins": origins, "replicas": replicas, "partitions": partitions}
    return tuple(parse_hlo(part, file, **options) for part in split_modules(text) or [text])  # type: ignore[arg-type]
