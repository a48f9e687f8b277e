"""One computation under reading: the values by their names, and the instructions recorded so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import frozen

from shape_inference import AnyShape, XbuildError, compatible

from ...core.diagnostics import explain
from ...core.graph import NOTHING, Computation, Draft, Instruction, Source
from ...core.inference import infer_shape
from ...core.op import OPS, Schema
from ...properties.effects import MEETS
from ...text.spelling.faults import COUNTED_FAULTS, Fault, Poisoned
from ..syntax.trees import Form, Operation, Region
from ..syntax.types import FutureType
from .names import Names
from .operation import Reading
from .rules import RULES

if TYPE_CHECKING:
    from .reader import Reader

ENDS = ("func.return", "stablehlo.return", "mhlo.return", "sdy.return", "chlo.return")
_LAYOUTS = {"result_layout", "source_layout", "xla_shape"}
"""Attributes that XLA leaves at ops, and that say nothing of values."""

_COPIED = ("broadcast", "constant", "convert", "iota", "reshape")


@frozen(eq=False)
class Known:
    """What operations of one form and operands of these shapes become."""

    schema: Schema
    record: Any
    segments: tuple[int, ...] | None
    shapes: tuple[AnyShape, ...]
    shape: AnyShape
    notes: Mapping[str, Any]


class Scope:
    """A computation under reading; a name whose operation was at fault stands for None."""

    def __init__(self, reader: Reader, function: str, outer: Scope | None = None) -> None:
        self.reader, self.function, self.outer = reader, function, outer
        self.values: dict[str, Instruction | None] = {}
        self.names = Names()
        self.instructions: list[Instruction] = []

    def read(self, region: Region) -> tuple[Instruction, ...]:
        """Record operations up to the one that ends the block; the result is what that gives."""
        known = self.reader.known
        for operation in region.operations:
            found = known.get(operation.form)
            if found is not None and self._take(operation, found):
                continue
            if operation.name in ENDS:
                return self._ended(operation)
            self._recovering(operation)
        return self.reader.fail("syntax", "this block ends without a return", place=region.place)

    def returned(self, function: Operation) -> tuple[Instruction, ...]:
        """Record the operations of a function; what it returns has the types that its head states."""
        given = self.read(function.regions[0])
        types = function.attributes["function_type"].results
        name = f"@{function.attributes.get('sym_name', '')}"
        if len(given) != len(types):
            message = f"{name} returns {len(given)} values, and {len(types)} results are written"
            self.reader.fail("arity_mismatch", message, place=function.place)
        for number, (value, type_) in enumerate(zip(given, types, strict=True)):
            self._check_type(function, value.shape, type_, f"result {number} of {name}")
        return given

    def _ended(self, operation: Operation) -> tuple[Instruction, ...]:
        return self._operands(operation)

    def _take(self, operation: Operation, known: Known) -> bool:
        """Record the instruction of a known form; False where it has to be read in full."""
        values, found = self.values, []
        for name, shape in zip(operation.operands, known.shapes, strict=True):
            value = values.get(name)
            if value is None or (value.shape is not shape and value.shape != shape):
                return False
            found.append(value)
        if not operation.results or operation.results[0] in values:
            return False
        where, notes = self.reader.origin(operation, self)
        if known.notes:
            notes = {**notes, **known.notes}
        name = self.names.of(operation, known.schema.spelling)
        instruction = _made(known.schema, name, known.shape, tuple(found), known.segments, known.record, where, notes)
        self.instructions.append(instruction)
        values[operation.results[0]] = instruction
        return True

    def _recovering(self, operation: Operation) -> None:
        """Read an operation by its rule; after a fault its results stand for None."""
        try:
            self._in_full(operation)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.reader.keep(fault)
            for name in operation.results:
                self.values.setdefault(name, None)
            if self.reader.count >= COUNTED_FAULTS:
                raise self.reader.error() from None

    def _in_full(self, operation: Operation) -> None:
        rule = RULES.get(operation.name)
        if rule is None:
            self._no_rule(operation)
        operands = self._operands(operation)
        count = len(self.instructions)
        reading = Reading(self, operation, operands)
        found = rule(reading)
        self._check_asked(reading)
        results = () if found is None else found if isinstance(found, tuple) else (found,)
        self._define(operation, results)
        if len(results) == 1 and len(self.instructions) == count + 1 and results[0].operands == operands:
            self._remember(operation.form, results[0])

    def _no_rule(self, operation: Operation) -> NoReturn:
        close = self.reader.near(operation.name, [name for name in RULES if not name.startswith("mhlo.")])
        self.reader.fail("unknown_opcode", f"xbuild reads no {operation.name[:60]}", *close, place=operation.place)

    def _remember(self, form: Form, made: Instruction) -> None:
        notes = {key: value for key, value in made.annotations.items() if key != "metadata"}
        shapes = tuple([operand.shape for operand in made.operands])
        self.reader.known[form] = Known(
            OPS[made.opcode], made.attributes, made.segments, shapes, made.shape, notes or NOTHING
        )

    def _check_asked(self, reading: Reading) -> None:
        unknown = [key for key in reading.attributes if "." not in key and key not in reading.asked | _LAYOUTS]
        if unknown:
            close = self.reader.near(unknown[0], reading.asked)
            reading.fail("unknown_attribute", f"there is no attribute {unknown[0][:60]!r}", *close)

    def _define(self, operation: Operation, results: tuple[Instruction, ...]) -> None:
        types = operation.result_types
        if len(results) != len(types):
            message = f"{operation.name} has {len(results)} results, and {len(types)} are written"
            self.reader.fail("arity_mismatch", message, place=operation.place)
        for value, type_ in zip(results, types, strict=True):
            self._check_type(operation, value.shape, type_, "the result")
        for name, value in zip(operation.results, results, strict=False):
            self.bind(name, value, operation.place)

    def bind(self, name: str, value: Instruction, place: int) -> None:
        if name in self.values:
            self.reader.fail("duplicate_name", f"there is a value %{name} already", place=place)
        self.values[name] = value

    def _check_type(self, operation: Operation, shape: AnyShape, written: Any, what: str) -> None:
        """Refuse a value that is not of the type that is written; what a future holds, its start and done check."""
        if isinstance(written, FutureType):
            return
        wanted = self.reader.shape(written, operation)
        if shape is not wanted and not compatible(shape, wanted):
            message = f"{operation.name}: {what} is {shape}, and {wanted} is written"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    # Values

    def _operands(self, operation: Operation) -> tuple[Instruction, ...]:
        found = []
        for name, type_ in zip(operation.operands, operation.operand_types, strict=True):
            value = self.value(name, operation.place)
            self._check_type(operation, value.shape, type_, f"operand %{name}")
            found.append(value)
        return tuple(found)

    def value(self, name: str, place: int) -> Instruction:
        """The value of a name; one of an outer block is recorded here again if that can be done."""
        if name not in self.values:
            name = self._spelled_otherwise(name)
        if name in self.values:
            found = self.values[name]
            if found is None:
                raise Poisoned
            return found
        outer = self.outer.value(name, place) if self.outer is not None else self._undefined(name, place)
        copied = self._copied(outer)
        if copied is None:
            message = f"%{name} is a value from outside of the region, and this op has no operand for it"
            hint = "constants, and what is a conversion or a broadcast of one, can be used in every region"
            self.reader.fail("foreign_value", message, hint, place=place)
        self.values[name] = copied
        return copied

    def _spelled_otherwise(self, name: str) -> str:
        """`%x` for the first of several results, and `%x#0` for the only one."""
        scope: Scope | None = self
        while scope is not None:
            for other in (name, f"{name}#0", name.removesuffix("#0")):
                if other in scope.values:
                    return other
            scope = scope.outer
        return name

    def _undefined(self, name: str, place: int) -> NoReturn:
        names = [] if self.reader.is_terse else list(self.values)[-2000:]
        close = self.reader.near(name, names)
        self.reader.fail("undefined_name", f"there is no value %{name[:60]} before this", *close, place=place)

    def _copied(self, value: Instruction) -> Instruction | None:
        """A constant of an outer block recorded here, with what it is converted and broadcast to."""
        if value.opcode not in _COPIED:
            return None
        operands = tuple([self._copied(each) for each in value.operands])
        if None in operands:
            return None
        name = self.names.fresh(value.name)
        made = _made(
            OPS[value.opcode], name, value.shape, operands, value.segments, value.attributes, value.where,
            value.annotations,
        )  # fmt: skip
        self.instructions.append(made)
        return made

    def is_copied(self, value: Instruction) -> bool:
        """Whether a region takes the value as a constant of its own, as XLA has it, and not as an operand."""
        if value.opcode == "broadcast":
            return self.is_copied(value.operands[0])
        return value.opcode == "constant"

    # Recording

    def record(
        self,
        opcode: str,
        arguments: tuple[Any, ...],
        attributes: dict[str, Any],
        name: str,
        where: Source,
        notes: Mapping[str, Any],
        operation: Operation,
    ) -> Instruction:
        schema = OPS[opcode]
        operands, segments = schema.flatten(arguments)
        try:
            record = schema.read(attributes)
            shape = infer_shape(schema, tuple([each.shape for each in operands]), segments, record)
        except XbuildError as error:
            raise _refused(error, schema, operation, operands, segments, attributes) from None
        except (TypeError, ValueError, OverflowError) as error:
            raise Fault("invalid_attribute", f"{operation.name}: {error}", operation.place) from None
        instruction = _made(schema, name, shape, operands, segments, record, where, notes)
        self.instructions.append(instruction)
        if opcode in MEETS:
            self.reader.collectives.append((instruction, operation))
        return instruction

    def computation(self, name: str, root: Instruction) -> Computation:
        found = Computation(name, tuple(self.instructions), root)
        self.reader.add(found)
        return found

    def closed_region(self, reading: Reading, number: int, role: str, count: int | None) -> Computation:
        from .regions import closed_region

        return closed_region(self, reading, number, role, count)


def _made(
    schema: Schema,
    name: str,
    shape: AnyShape,
    operands: tuple[Any, ...],
    segments: tuple[int, ...] | None,
    record: Any,
    where: Any,
    notes: Mapping[str, Any],
) -> Instruction:
    made: Any = Draft(schema.opcode, name, shape, operands, segments, record, where, (), notes)
    made.__class__ = Instruction  # a third of the time of the frozen class's constructor
    return made  # type: ignore[no-any-return]


def _refused(
    error: XbuildError,
    schema: Schema,
    operation: Operation,
    operands: tuple[Instruction, ...],
    segments: tuple[int, ...] | None,
    values: dict[str, Any],
) -> Fault:
    """A refusal of the op as a fault of the text, with the operands and attributes below it."""
    dressed = str(explain(error, schema, operands, segments, values, None)).splitlines()
    rows = [row for row in dressed[1:] if not row.startswith("  hint: ")]
    return Fault(error.kind, f"{operation.name}: {error.message}", operation.place, error.hints, rows)
