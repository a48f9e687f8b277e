"""One computation while it is read: its values by name, its instructions so far, and regions as computations.

Sections:

    Names of instructions and computations
    Scope: the values of a computation by name, and the instructions recorded so far
    Regions as computations: arguments become parameters, and outer values become elements of a state
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape, XbuildError, compatible

from ...core.builder import infer_shape
from ...core.diagnostics import explain
from ...core.graph import NOTHING, Computation, Instruction, InstructionDraft, Source
from ...core.identifiers import is_identifier, nearest
from ...core.op import OPS, Schema
from ...properties.effects import MEETS
from ...properties.order import is_control_dependency, with_control_edges
from ...properties.placement import CONSTRAINT, FUNC_RESULT_SHARDING, SHARDY
from ...text.annotations import Raw
from ...text.scanner import COUNTED_FAULTS, Fault, Poisoned
from ..syntax.trees import Argument, Form, FutureType, ParsedOperation, Region
from .operation import OperationReading, read_annotations, unprefixed_attributes
from .rules import RULES

if TYPE_CHECKING:
    from .reader import StablehloReader


# ----------------------------------------------------------------------------
# Names of instructions and computations: those of MLIR, if HLO text can hold them

_NUMBER = re.compile(r"\d+(?:#\d+)?", re.ASCII)
_PLAIN = re.compile(r"(?:arg|c|cst)(?:_?\d+)?", re.ASCII)


class ScopeNames:
    """The names of one computation, or of the computations of a module."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._last

    def fresh(self, wanted: str) -> str:
        """The wanted name, with a number if it is taken."""
        if wanted not in self._last:
            self._last[wanted] = 0
            return wanted
        number = self._last[wanted]
        while True:
            number += 1
            name = f"{wanted}.{number}"
            if name not in self._last:
                self._last[wanted] = number
                self._last[name] = 0
                return name

    def for_operation(self, operation: ParsedOperation, spelling: str) -> str:
        """The name of the instruction of an operation: total for `%total`, add.3 for `%3` of an add."""
        result = operation.results[0] if operation.results else ""
        wanted = result.partition("#")[0]
        if not wanted:
            return self.fresh(spelling)
        if _NUMBER.fullmatch(wanted):
            return self.fresh(f"{_location_name(operation.location.name) or spelling}.{wanted}")
        return self.fresh(wanted if is_identifier(wanted) else nearest(wanted))

    def for_element(self, result: str, of: str, index: int) -> str:
        """The preferred name of a result that is an element of a tuple; it is not reserved."""
        _, _, number = result.partition("#")
        if result and not number and not _NUMBER.fullmatch(result):
            return result if is_identifier(result) else nearest(result)
        return f"{of}.{number or index}"

    def for_argument(self, name: str, location: str) -> str:
        """The name of an argument; that of its location if the text has a generic one."""
        located = _location_name(location) if not name or _PLAIN.fullmatch(name) else ""
        wanted = located or name or "arg"
        return self.fresh(wanted if is_identifier(wanted) else nearest(wanted))


def _location_name(location: str) -> str:
    """The last part of a location's name, if HLO text can hold it."""
    last = location.rpartition("/")[2]
    return last if len(last) < 60 and is_identifier(last) else ""


# ----------------------------------------------------------------------------
# Scope: the values of a computation by name, and the instructions recorded so far

ENDS = ("func.return", "stablehlo.return", "mhlo.return", "sdy.return", "chlo.return")
_LAYOUTS = {"result_layout", "source_layout", "xla_shape"}
"""Attributes that XLA leaves on ops and that do not affect values."""

_COPIED = ("broadcast", "constant", "convert", "iota", "reshape")


@frozen(eq=False)
class KnownForm:
    """The instruction that operations of one form become, for operands of these shapes."""

    schema: Schema
    record: Any
    segments: tuple[int, ...] | None
    shapes: tuple[AnyShape, ...]
    shape: AnyShape
    notes: Mapping[str, Any]


class Scope:
    """A computation while it is read; the name of a faulty operation has the value None."""

    def __init__(self, reader: StablehloReader, function: str, outer: Scope | None = None) -> None:
        self.reader, self.function, self.outer = reader, function, outer
        self.values: dict[str, Instruction | None] = {}
        self.names = ScopeNames()
        self.instructions: list[Instruction] = []
        self.control_place: int | None = None  # of the last call that orders two values

    def read(self, region: Region) -> tuple[Instruction, ...]:
        """Record operations up to the return of the block, and return its operands."""
        known = self.reader.known
        for operation in region.operations:
            found = known.get(operation.form)
            if found is not None and self._reuse_form(operation, found):
                continue
            if operation.name in ENDS:
                return self._operands(operation)
            self._read_or_skip(operation)
        return self.reader.fail("syntax", "this block has no return", place=region.place)

    def read_function(self, function: ParsedOperation) -> tuple[Instruction, ...]:
        """Record the operations of a function and check its results against its type."""
        given = self.read(function.regions[0])
        types = function.attributes["function_type"].results
        name = f"@{function.attributes.get('sym_name', '')}"
        if len(given) != len(types):
            message = f"{name}: expected one value for each result type, got {len(given)} values for {len(types)} types"
            self.reader.fail("arity_mismatch", message, place=function.place)
        for number, (value, type_) in enumerate(zip(given, types, strict=True)):
            self._check_type(function, value.shape, type_, f"result {number} of {name}")
        return given

    def _reuse_form(self, operation: ParsedOperation, known: KnownForm) -> bool:
        """Record the instruction of a known form; False if its rule must be applied."""
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
        name = self.names.for_operation(operation, known.schema.spelling)
        instruction = make_instruction(
            known.schema, name, known.shape, tuple(found), known.segments, known.record, where, notes
        )
        self.instructions.append(instruction)
        values[operation.results[0]] = instruction
        return True

    def _read_or_skip(self, operation: ParsedOperation) -> None:
        """Apply the rule of an operation; after a fault, its results have the value None."""
        try:
            self._apply_rule(operation)
        except (Fault, Poisoned) as fault:
            if isinstance(fault, Fault):
                self.reader.keep(fault)
            for name in operation.results:
                self.values.setdefault(name, None)
            if self.reader.count >= COUNTED_FAULTS:
                raise self.reader.error() from None

    def _apply_rule(self, operation: ParsedOperation) -> None:
        rule = RULES.get(operation.name)
        if rule is None:
            self._no_rule(operation)
        operands = self._operands(operation)
        count = len(self.instructions)
        reading = OperationReading(self, operation, operands)
        found = rule(reading)
        self._keep_unread_attributes(reading)
        results = () if found is None else found if isinstance(found, tuple) else (found,)
        self._define(operation, results)
        if len(results) == 1 and len(self.instructions) == count + 1 and results[0].operands == operands:
            self._remember(operation.form, results[0])

    def _no_rule(self, operation: ParsedOperation) -> NoReturn:
        close = self.reader.near(operation.name, [name for name in RULES if not name.startswith("mhlo.")])
        self.reader.fail(
            "unknown_opcode", f"xbuild cannot read the operation {operation.name[:60]}", *close, place=operation.place
        )

    def _remember(self, form: Form, made: Instruction) -> None:
        notes = {key: value for key, value in made.annotations.items() if key != "metadata"}
        shapes = tuple([operand.shape for operand in made.operands])
        self.reader.known[form] = KnownForm(
            OPS[made.opcode], made.attributes, made.segments, shapes, made.shape, notes or NOTHING
        )

    def _keep_unread_attributes(self, reading: OperationReading) -> None:
        """Store attributes without a meaning for the op as frontend attributes of its instruction."""
        form = reading.operation.form
        made = reading.made or (self.instructions[-1] if self.instructions else None)
        if form.texts and made is not None:
            kept = unprefixed_attributes(form.attributes, form.texts, reading.keys_read | _LAYOUTS)
            if kept:
                notes = made.annotations.get("frontend_attributes", {})
                reading.annotate(made, frontend_attributes={**notes, **kept})

    def _define(self, operation: ParsedOperation, results: tuple[Instruction, ...]) -> None:
        types = operation.result_types
        if len(results) != len(types):
            expected = f"{operation.name}: expected one type for each result"
            message = f"{expected}, got {len(types)} types for {len(results)} results"
            self.reader.fail("arity_mismatch", message, place=operation.place)
        for value, type_ in zip(results, types, strict=True):
            self._check_type(operation, value.shape, type_, "the result")
        for name, value in zip(operation.results, results, strict=False):
            self.bind(name, value, operation.place)

    def bind(self, name: str, value: Instruction, place: int) -> None:
        if name in self.values:
            self.reader.fail("duplicate_name", f"%{name} is already defined", place=place)
        self.values[name] = value

    def _check_type(self, operation: ParsedOperation, shape: AnyShape, written: Any, what: str) -> None:
        """Refuse a value whose type in the text differs; the contents of a future are checked by its start and done."""
        if isinstance(written, FutureType):
            return
        wanted = self.reader.shape(written, operation)
        if shape is not wanted and not compatible(shape, wanted):
            message = f"{operation.name}: {what} is {shape}, but its type in the text is {wanted}"
            self.reader.fail("shape_mismatch", message, place=operation.place)

    # Values

    def _operands(self, operation: ParsedOperation) -> tuple[Instruction, ...]:
        found = []
        for name, type_ in zip(operation.operands, operation.operand_types, strict=True):
            value = self.value(name, operation.place)
            self._check_type(operation, value.shape, type_, f"operand %{name}")
            found.append(value)
        return tuple(found)

    def value(self, name: str, place: int) -> Instruction:
        """The value of a name; a constant of an outer block is copied here."""
        if name not in self.values:
            name = self._known_name(name)
        if name in self.values:
            found = self.values[name]
            if found is None:
                raise Poisoned
            return found
        outer = self.outer.value(name, place) if self.outer is not None else self._undefined(name, place)
        copied = self._copy_constant(outer)
        if copied is None:
            message = f"the region uses the outer value %{name}, but this op cannot pass values to its regions"
            hint = "every region can use outer constants, and conversions and broadcasts of such constants"
            self.reader.fail("foreign_value", message, hint, place=place)
        self.values[name] = copied
        return copied

    def _known_name(self, name: str) -> str:
        """The name under which a value is stored: `%x` and `%x#0` name the same result."""
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
        self.reader.fail("undefined_name", f"undefined value %{name[:60]}", *close, place=place)

    def _copy_constant(self, value: Instruction) -> Instruction | None:
        """Copy a constant of an outer block, with its conversions and broadcasts; None for any other value."""
        chain = [value]
        while chain[-1].opcode in _COPIED and chain[-1].operands:
            chain += chain[-1].operands  # one
        if chain[-1].opcode not in _COPIED:
            return None
        operands: tuple[Instruction, ...] = ()
        for each in reversed(chain):
            made = make_instruction(
                OPS[each.opcode], self.names.fresh(each.name), each.shape, operands, each.segments, each.attributes,
                each.where, each.annotations,
            )  # fmt: skip
            self.instructions.append(made)
            operands = (made,)
        return made

    def is_constant(self, value: Instruction) -> bool:
        """Whether a value is a constant, which a region copies, as in XLA's conversion, and does not capture."""
        while value.opcode == "broadcast":
            value = value.operands[0]
        return value.opcode == "constant"

    # Recording

    def record(
        self,
        opcode: str,
        arguments: tuple[Any, ...],
        attributes: dict[str, Any],
        name: str,
        where: Source | None,
        notes: Mapping[str, Any],
        operation: ParsedOperation,
    ) -> Instruction:
        schema = OPS[opcode]
        operands, segments = schema.flatten(arguments)
        try:
            record = schema.read(attributes)
            shape = infer_shape(schema, tuple([each.shape for each in operands]), segments, record)
        except XbuildError as error:
            raise _refusal(error, schema, operation, operands, segments, attributes) from None
        except (TypeError, ValueError, OverflowError) as error:
            raise Fault("invalid_attribute", f"{operation.name}: {error}", operation.place) from None
        instruction = make_instruction(schema, name, shape, operands, segments, record, where, notes)
        self.instructions.append(instruction)
        if opcode == "custom_call" and is_control_dependency(instruction):
            self.control_place = operation.place
        if opcode in MEETS:
            self.reader.collectives.append((instruction, operation))
        return instruction

    def computation(self, name: str, root: Instruction) -> Computation:
        found = Computation(name, tuple(self.instructions), root)
        if self.control_place is not None:
            try:
                found = with_control_edges(found)
            except XbuildError as error:
                self.reader.fail(error.kind, error.message, place=self.control_place)
        self.reader.add(found)
        return found


def make_instruction(
    schema: Schema,
    name: str,
    shape: AnyShape,
    operands: tuple[Any, ...],
    segments: tuple[int, ...] | None,
    record: Any,
    where: Any,
    notes: Mapping[str, Any],
) -> Instruction:
    made: Any = InstructionDraft(schema.opcode, name, shape, operands, segments, record, where, (), notes)
    made.__class__ = Instruction  # a third of the time of the frozen class's constructor
    return made  # type: ignore[no-any-return]


def _refusal(
    error: XbuildError,
    schema: Schema,
    operation: ParsedOperation,
    operands: tuple[Instruction, ...],
    segments: tuple[int, ...] | None,
    values: dict[str, Any],
) -> Fault:
    """An error of the op as a fault of the text, with operands and attributes below it."""
    explained = str(explain(error, schema, operands, segments, values, None)).splitlines()
    rows = [row for row in explained[1:] if not row.startswith("  hint: ")]
    return Fault(error.kind, f"{operation.name}: {error.message}", operation.place, error.hints, rows)


# ----------------------------------------------------------------------------
# Regions as computations: arguments become parameters, and outer values become elements of a state


def read_closed_region(
    outer: Scope, reading: OperationReading, number: int, role: str, count: int | None
) -> Computation:
    """A region as a computation whose parameters are its arguments; a shared region is read once."""
    reader, operation = outer.reader, reading.operation
    region = _region_at(reading, number)
    found = reader.closed.get(region)
    if found is not None:
        return found
    if count is not None and len(region.arguments) != count:
        reader.fail(
            "arity_mismatch",
            f"{operation.name}: expected {count} region argument{'s' * (count != 1)}, got {len(region.arguments)}",
            place=region.place,
        )
    inner = reader.scope(outer.function, outer)
    for index, argument in enumerate(region.arguments):
        record_parameter(inner, argument, index, operation)
    root = make_root(inner, inner.read(region), operation)
    found = inner.computation(reader.computation_name(outer, reading, role), root)
    reader.closed[region] = found
    return found


def _region_at(reading: OperationReading, number: int) -> Region:
    if number >= len(reading.operation.regions):
        reading.fail(
            "arity_mismatch",
            f"expected at least {number + 1} region{'s' * (number > 0)}, got {len(reading.operation.regions)}",
        )
    return reading.operation.regions[number]


def record_parameter(scope: Scope, argument: Argument, number: int, operation: ParsedOperation) -> Instruction:
    """Record the parameter of an argument and bind its name."""
    name = scope.names.for_argument(argument.name, argument.location.name)
    shape = scope.reader.shape(argument.type, operation)
    where, notes = scope.reader.place_of(argument.location, operation.place, scope)
    made = scope.record("parameter", (), {"number": number, "shape": shape}, name, where, notes, operation)
    if argument.name:
        scope.bind(argument.name, made, operation.place)
    return made


def make_root(scope: Scope, given: tuple[Instruction, ...], operation: ParsedOperation) -> Instruction:
    """The root of a computation: its only result, or a tuple of its results."""
    if len(given) == 1:
        return given[0]
    where, _ = scope.reader.place_of(operation.location, operation.place, scope)
    return scope.record("tuple", (given,), {}, scope.names.fresh("tuple"), where, NOTHING, operation)


def free_names(regions: tuple[Region, ...]) -> dict[str, int]:
    """The names that regions use but do not define, in order of use, with the place of each."""
    found: dict[str, int] = {}
    for region in regions:
        for name, place in _free_in(region, set()):
            found.setdefault(name, place)
    return found


def _free_in(region: Region, outer: set[str]) -> Iterator[tuple[str, int]]:
    known = outer | {argument.name for argument in region.arguments}
    for operation in region.operations:
        for name in operation.operands:
            if name not in known and name.removesuffix("#0") not in known and f"{name}#0" not in known:
                yield name, operation.place
        for inner in operation.regions:
            yield from _free_in(inner, known)
        known.update(operation.results)


class Captures:
    """The outer values, except constants, that regions use, in order of use."""

    def __init__(self, outer: Scope, regions: tuple[Region, ...]) -> None:
        self.names: list[str] = []
        self.values: list[Instruction] = []
        for name, place in free_names(regions).items():
            value = outer.value(name, place)
            if not outer.is_constant(value):
                self.names.append(name)
                self.values.append(value)


def read_state_region(
    reading: OperationReading,
    region: Region,
    role: str,
    arguments: tuple[Argument, ...],
    captured: Captures,
    returns_captured: bool,
) -> Computation:
    """A region as a computation with one parameter: its arguments and captures, as a tuple unless there is one.

    With `returns_captured`, the computation also returns the captures, unchanged, after the results of the region.
    """
    outer, operation = reading.scope, reading.operation
    inner = outer.reader.scope(outer.function, outer)
    shapes = [outer.reader.argument_shape(reading, number, each) for number, each in enumerate(arguments)]
    shapes += [each.shape for each in captured.values]
    names = [each.name for each in arguments] + captured.names
    wanted = [each.name for each in arguments] + [each.name for each in captured.values]
    passed = _unpack_parameter(inner, tuple(shapes), wanted, operation)
    for name, value in zip(names, passed, strict=True):
        inner.bind(name, value, operation.place)
    given = inner.read(region)
    root = make_root(inner, (*given, *passed[len(arguments) :]) if returns_captured else given, operation)
    return inner.computation(outer.reader.computation_name(outer, reading, role), root)


def _unpack_parameter(
    scope: Scope, shapes: tuple[AnyShape, ...], names: list[str], operation: ParsedOperation
) -> tuple[Instruction, ...]:
    """Record the parameter of a computation, and its elements if it is a tuple."""
    where, _ = scope.reader.place_of(operation.location, operation.place, scope)
    if len(shapes) == 1:
        name = scope.names.for_argument(names[0], "")
        return (scope.record("parameter", (), {"number": 0, "shape": shapes[0]}, name, where, NOTHING, operation),)
    attributes_ = {"number": 0, "shape": TupleShape(shapes)}
    state = scope.record("parameter", (), attributes_, scope.names.fresh("state"), where, NOTHING, operation)
    found = []
    for index, wanted in enumerate(names):
        name = scope.names.for_argument(wanted, "")
        attributes = {"index": index}
        found.append(scope.record("get_tuple_element", (state,), attributes, name, where, NOTHING, operation))
    return tuple(found)


def pack_values(reading: OperationReading, values: tuple[Instruction, ...], wanted: str = "") -> Instruction:
    """Values as one operand: the only one, or a tuple of all."""
    return values[0] if len(values) == 1 else reading.emit("tuple", values, wanted=wanted)


def annotate_results(scope: Scope, root: Instruction, operation: ParsedOperation) -> Instruction:
    """The root with the shardings and frontend attributes of the results of a function.

    A root that is a parameter, or has a different sharding, gets the sharding through XLA's custom call.
    """
    given = [each.fields for each in operation.attributes.get("res_attrs", ())]
    if not given:
        return root
    notes = [read_annotations(fields, operation.place) for fields in given]
    others = [each.get("frontend_attributes", {}) for each in notes]
    stated = [each.get(SHARDY, "").removeprefix("#sdy.sharding") for each in others]
    is_tuple = isinstance(root.shape, TupleShape) and len(given) > 1
    if is_tuple:
        rest = {key: value for each in reversed(others) for key, value in each.items() if key != SHARDY}
        root = _set_frontend_attributes(root, {**root.annotations.get("frontend_attributes", {}), **rest})
    root = _with_sharding(scope, root, [str(each.get("sharding", "{unknown}")) for each in notes], operation)
    first = next(filter(None, stated), None)
    if first is None:
        return root
    shapes = root.shape.elements if is_tuple and isinstance(root.shape, TupleShape) else (root.shape,)
    texts = (each or _open_sharding(first, shape) for each, shape in zip(stated, shapes, strict=True))
    text = f"#sdy.sharding_per_value<[{', '.join(texts)}]>"
    known = root.annotations.get("frontend_attributes", {})
    if known.get(SHARDY, text) != text or root.opcode == "parameter":
        root, known = _call_target(scope, FUNC_RESULT_SHARDING, root, operation), {}
    return _set_frontend_attributes(root, {**known, SHARDY: text})


def _call_target(scope: Scope, target: str, root: Instruction, operation: ParsedOperation) -> Instruction:
    """XLA's custom call that returns its operand with a new sharding."""
    where, _ = scope.reader.place_of(operation.location, operation.place, scope)
    attributes = {"custom_call_target": target, "shape": root.shape}
    name = scope.names.fresh("custom_call")
    return scope.record("custom_call", ((root,),), attributes, name, where, NOTHING, operation)


def _set_frontend_attributes(root: Instruction, pairs: Mapping[str, str]) -> Instruction:
    if pairs:
        object.__setattr__(root, "annotations", {**root.annotations, "frontend_attributes": pairs})
    return root


def _with_sharding(scope: Scope, root: Instruction, texts: list[str], operation: ParsedOperation) -> Instruction:
    """The root with the shardings that the results state in HLO's text."""
    if set(texts) == {"{unknown}"}:
        return root
    text = f"{{{', '.join(texts)}}}" if len(texts) > 1 else texts[0]
    if root.annotations.get("sharding", "" if root.opcode == "parameter" else text) != text:
        root = _call_target(scope, CONSTRAINT, root, operation)
    object.__setattr__(root, "annotations", {**root.annotations, "sharding": Raw(text)})
    return root


def _open_sharding(other: str, shape: AnyShape) -> str:
    """The fully open sharding on the mesh of another sharding."""
    rank = shape.rank if isinstance(shape, Shape) else 0
    return f"{other.partition(', [')[0]}, [{', '.join(['{?}'] * rank)}]>"
