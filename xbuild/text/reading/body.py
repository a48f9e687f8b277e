"""Reader of a computation's instructions: by one regular expression where a similar line was read, else in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shape_inference import PRIMITIVES, AnyShape, Shape, TupleShape, XbuildError, compatible, refuse

from ...core.diagnostics import explain
from ...core.graph import Computation, Instruction, TextSource
from ...core.inference import infer_shape
from ...core.op import Schema, opcodes
from ...properties.effects import MEETS
from ..codecs.attribute_reader import read_attributes, record_of
from ..codecs.counted import check_ids
from ..codecs.sugar import (
    HALVES,
    check_alone,
    check_repeated,
    named_op,
    repeated_keys,
    settled,
    unfolded,
)
from ..spelling.faults import Fault, Poisoned
from ..spelling.literal_reader import read_literal
from ..spelling.literals import SpelledLiteral
from ..spelling.mixed_types import is_converted
from ..spelling.opcodes import OPENS, unknown
from ..spelling.parsed import ParsedInstruction, stands_for
from ..spelling.scanner import NAME
from ..spelling.segments import check_precision, segments_of
from .constants import tuple_constant
from .converts import bits_alone, convert, convert_operands, under_made_up_name
from .lines import Known, like, line_at, take
from .parameters import read_number

if TYPE_CHECKING:
    from .reader import Reader

# XLA infers the shape of a result that is not written, but not of these.
NEEDS_SHAPE = opcodes(lambda op: op.states_shape)


class Body:
    """One computation under reading; a name whose instruction was at fault stands for None."""

    def __init__(self, reader: Reader, name: str) -> None:
        self.reader, self.name = reader, name
        self.names: dict[str, Instruction | None] = {}
        self.plain: dict[str, AnyShape] = {}
        self.root: Instruction | None = None
        self.instructions: list[Instruction] = []
        self.is_poisoned = False
        self.reading: str | None = None
        self.numbers: set[int] = set()
        self.where = TextSource("", 0, name)
        self.known: Known | None = None
        self.bits: set[str] = set()  # values of random bits, of other types than are written

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
                f"{self.name!r} has no parameter {missing}, and one of a higher number",
                place=begin,
            )
        return Computation(self.name, tuple(self.instructions), self.root or self.instructions[-1])

    def read(self) -> None:
        """The next instruction."""
        reader = self.reader
        place, self.reading, self.known = reader.place, None, None
        line = line_at(reader.text, place)
        known = reader.known.get(line.key) if line else None
        if line and known and take(self, line, known):
            reader.place = line.end
            return
        self._read_in_full(place)
        if line and self.known and line.metadata is not None and line.ends(reader.text, reader.place):
            reader.known[line.key] = self.known

    def _read_in_full(self, place: int) -> None:
        reader = self.reader
        self.where = TextSource(reader.file or "<hlo>", reader.line(place), self.name)
        is_root = reader.take_word("ROOT")
        place = reader.skip()
        name = self._defined()
        self.reading = name
        instruction = self._instruction(name, self._shape())
        if is_root and self.root is not None:
            reader.fail("syntax", f"{self.root.name!r} is the ROOT of {self.name!r} already; there is one", place=place)
        if is_root:
            self.root = instruction

    def _defined(self) -> str:
        """The name before ` = `, which must be new."""
        reader = self.reader
        place = reader.skip()
        is_marked = reader.sees("%")
        name = reader.name("the name of an instruction")
        if reader.text.startswith("=", reader.place) and not is_marked:
            reader.fail(
                "syntax",
                f"a blank is wanted between {name!r} and '='; {name}= is the name of an attribute",
                place=place,
            )
        reader.expect("=", f" after {name!r}")
        if name in self.names:
            first = self.names[name]
            line = f" in line {first.source.line}" if first is not None and first.source else ""
            reader.fail("duplicate_name", f"there is an instruction {name!r} already{line}", place=place)
        return name

    def _shape(self) -> AnyShape | None:
        """The shape, if one stands here."""
        reader = self.reader
        match = NAME.match(reader.text, reader.skip())
        if match and match[0] == "opaque" and reader.text.startswith("[", match.end()):
            reader.fail("syntax", "xbuild has no values of type opaque")
        is_buffer = match and match[0] == "b" and reader.text.startswith("(", match.end())
        if reader.sees("(") or is_buffer or (match and (match[0] in PRIMITIVES or match[0] == "token")):
            return reader.shape()
        return None

    def _instruction(self, name: str | None, shape: AnyShape | None) -> Instruction:
        """Read an instruction from its opcode on; one without a name is an operand in place, and has no attributes."""
        reader = self.reader
        place = reader.skip()
        schema, wrapped = self._schema(place, shape)
        if shape is None and schema.opcode in NEEDS_SHAPE:
            reader.fail(
                "missing_shape", f"the shape of the result has to be written before {schema.spelling}", place=place
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
        schema = settled(self, schema, wrapped, parsed, place)
        starts = wrapped if schema.opcode == "async_start" else None
        if name is not None:
            read_attributes(reader, starts or schema, parsed, self.named, repeated_keys(schema, starts))
        if schema.opcode == "rng_bit_generator" and isinstance(shape, Shape):
            return bits_alone(self, name, parsed, shape, place)
        if schema.opcode in HALVES:
            check_repeated(self, parsed, place)
        if starts is not None:
            parsed = unfolded(self, starts, parsed, shape, place)
        return self.finish(name, schema, parsed, shape, place, literal)

    def _schema(self, place: int, shape: AnyShape | None) -> tuple[Schema, Schema | None]:
        """The op that stands here and, where an async one is spelled by what it wraps, that one."""
        reader = self.reader
        match = reader.scan(NAME)
        if not match:
            reader.expected("an opcode")
        return named_op(match[0], shape) or unknown(reader, match[0], place)

    def _operands(self) -> tuple[Instruction, ...]:
        """Read the operands up to the closing bracket, before which a comma may stand."""
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
        found = self.named()
        if shape is not None and not stands_for(shape, found, self.bits):
            message = f"operand {found.name!r} is {found.shape}, and {shape} is written"
            reader.fail("shape_mismatch", message, place=place)
        return found

    def named(self) -> Instruction:
        """The instruction of the name that stands here."""
        reader = self.reader
        place = reader.skip()
        name = reader.name("an operand")
        if name not in self.names:
            names = [] if reader.is_terse else list(self.names)[-2000:]
            reader.fail(
                "undefined_name",
                f"no instruction before this is called {name!r}",
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
                check_alone(self, record.calls)
            shapes = tuple([self.plain[o.name] for o in parsed.operands])
            if shapes:
                check_precision(schema, shapes)
            shape = infer_shape(schema, shapes, segments, record)
            if schema.opcode == "set_dimension_size":
                shape = parsed.sized(shape)
            if parsed.shape is not None and not (shape is parsed.shape or compatible(shape, parsed.shape)):
                if is_converted(schema.opcode, parsed, shape):
                    made = under_made_up_name(self, schema, parsed, record, segments, shape, place)
                    return convert(self, name, made, parsed.shape, place)
                parsed.check_are_bits(schema.opcode, shape, self.bits)
                name, declared = name or self.made_up(schema.spelling), None
                self.bits.add(name)
            elif schema.opcode == "async_update" and parsed.operands[0].name in self.bits:
                start = parsed.operands[0].name
                refuse("shape_mismatch", f"{start!r} is written with () for its result, and {parsed.shape} here")
        except XbuildError as error:
            raise self.refused(error, schema, parsed.operands, segments, values, place) from None
        if literal:
            parsed.notes["literal"] = SpelledLiteral(record.literal, literal)
        if name is not None:
            self.known = like(schema, parsed, record, declared)
        name = self.made_up(schema.spelling) if name is None else name
        where = self.reader.origin(parsed.notes.get("metadata")) or self.where
        instruction = Instruction(
            schema.opcode, name, shape if declared is None else declared, parsed.operands, segments, record, where,
            parsed.control, parsed.annotations,
        )  # fmt: skip
        if schema.opcode in MEETS:
            check_ids(self, instruction, schema, place)
        return self.add(instruction, shape)

    def add(self, instruction: Instruction, shape: AnyShape) -> Instruction:
        self.names[instruction.name] = instruction
        self.plain[instruction.name] = shape.plain()
        self.instructions.append(instruction)
        return instruction

    def made_up(self, spelling: str) -> str:
        """A fresh name for an operand that the text gives none."""
        number = 1
        while f"{spelling}.{number}" in self.names or f"{spelling}.{number}" in self.reader.known_names:
            number += 1
        return f"{spelling}.{number}"

    def refused(
        self,
        error: XbuildError,
        schema: Schema,
        operands: tuple[Instruction, ...],
        segments: tuple[int, ...] | None,
        values: dict[str, Any],
        place: int,
    ) -> Fault:
        """A refusal of the op as a fault of the text, with the operands and attributes below it."""
        dressed = str(explain(error, schema, operands, segments, values, None)).splitlines()
        rows = [row for row in dressed[1:] if not row.startswith("  hint: ")]
        return Fault(error.kind, f"{schema.spelling}: {error.message}", place, error.hints, rows)
