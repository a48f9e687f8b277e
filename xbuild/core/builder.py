"""`Builder`, which records an instruction at each call of an op, and `Value`, a handle to a recorded instruction."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import Factory, define, field

from shape_inference import AnyShape, ShapeError, XbuildError, infer

from .collector import relax, restore
from .context import context
from .diagnostics import BuildError, caller, explain, rejection, wrong_root
from .graph import Computation, Immutable, Instruction, InstructionDraft, Uncopied
from .hooks import Showable
from .identifiers import check_name
from .numpy_protocols import Protocols
from .operators import Methods, Operators
from .regions import trace_regions

if TYPE_CHECKING:
    from .op import Schema


# ----------------------------------------------------------------------------
# The shape of a result, inferred by the rule of the op and cached by shapes and attributes


def infer_shape(schema: Schema, shapes: tuple[Any, ...], segments: tuple[int, ...] | None, record: Any) -> AnyShape:
    """The shape of an op's result for these operand shapes and attributes. Raises ShapeError if the op refuses."""
    values: tuple[Any, ...] = ()
    if record is not None:
        values = tuple(vars(record).values())
        if schema.regions:
            values = tuple(map(_signature_of, values))
    try:
        return _cached_shape(schema, shapes, segments, values)
    except TypeError:  # a literal is not hashable
        return _cached_shape.__wrapped__(schema, shapes, segments, values)


@functools.lru_cache(maxsize=16384)
def _cached_shape(
    schema: Schema, shapes: tuple[Any, ...], segments: tuple[int, ...] | None, values: tuple[Any, ...]
) -> AnyShape:
    """The result of the shape rule, a pure function; refusals are not cached."""
    attributes = dict(zip(schema.readers, values, strict=True))
    return infer[schema.opcode](*schema.unflatten(shapes, segments), **attributes)  # type: ignore[no-any-return]


def _signature_of(attribute: Any) -> Any:
    """An attribute for shape inference: a region is replaced by its signature."""
    if type(attribute) is Computation:
        return attribute.signature
    return tuple(map(_signature_of, attribute)) if type(attribute) is tuple else attribute


# ----------------------------------------------------------------------------
# Values and builders

_new = object.__new__


@define(eq=False, repr=False)
class _Handle:
    """The fields of a value; none can be assigned after construction."""

    instruction: Instruction
    builder: Builder


class Value(Operators, Methods, Protocols, Showable, Immutable, _Handle):
    """A handle to an instruction that a builder has recorded. Operators on values record ops."""

    __slots__ = ()

    def __new__(cls, instruction: Instruction, builder: Builder) -> Value:
        handle: Any = _Handle(instruction, builder)
        handle.__class__ = cls
        return handle  # type: ignore[no-any-return]

    def __init__(self, *fields: Any) -> None: ...

    @property
    def shape(self) -> AnyShape:
        return self.instruction.shape

    @property
    def name(self) -> str:
        return self.instruction.name

    def __repr__(self) -> str:
        return f"%{self.name}: {self.shape}"


Values: TypeAlias = Sequence[Value]


@define(eq=False)
class _Names:
    """The names of a module under construction, each with the last suffix that made it unique, and the counter.

    Names from the counter are unique among themselves; they are added to `taken` when a name is requested.
    """

    taken: dict[str, int] = Factory(dict)
    count: int = 0
    counted: list[str] = Factory(list)

    def fresh(self, spelling: str) -> str:
        while True:
            self.count += 1
            name = f"{spelling}.{self.count}"
            if name not in self.taken:
                self.counted.append(name)
                return name

    def unique(self, name: str) -> str:
        self.taken.update(dict.fromkeys(self.counted, 0))
        self.counted.clear()
        wanted = name
        while name in self.taken:
            self.taken[wanted] += 1
            name = f"{wanted}.{self.taken[wanted]}"
        self.taken[name] = 0
        return name


_MOST_CALLS = 4096


@define(eq=False)
class _Calls:
    """The calls of ops in a program: equal ones share the record of their attributes, and the shape of the result.

    A key of `known` has the ids of the operands' shapes, which the entry keeps alive.
    """

    known: dict[Any, tuple[Any, AnyShape, Any]] = Factory(dict)
    records: dict[Any, Any] = Factory(dict)

    def find(
        self,
        schema: Schema,
        shapes: list[AnyShape],
        segments: tuple[int, ...] | None,
        converted: dict[str, Any],
        key: Any,
    ) -> tuple[Any, AnyShape, Any]:
        """The record of the attributes and the shape of the result, remembered. Raises ShapeError if the op refuses."""
        record = self._record(schema, converted) if schema.names else None
        found = record, infer_shape(schema, tuple(shapes), segments, record), shapes
        if schema.shares_records:
            _remember(self.known, key, found)
        return found

    def _record(self, schema: Schema, converted: dict[str, Any]) -> Any:
        if not schema.shares_records:
            return schema.fill(converted)
        key = (schema, *converted, *converted.values())
        found = self.records.get(key)
        if found is None:
            found = schema.fill(converted)
            _remember(self.records, key, found)
        return found


def _remember(memory: dict[Any, Any], key: Any, found: Any) -> None:
    if len(memory) >= _MOST_CALLS:
        memory.clear()
    memory[key] = found


def _build_error(kind: str, message: str, *hints: str) -> BuildError:
    """An error of `build`; its text states the kind, since `explain` does not add it."""
    error = BuildError(kind, "\n".join([f"{message} [{kind}]", *(f"  hint: {hint}" for hint in hints)]), hints)
    error.message = message
    return error


def _arity_message(schema: Schema, count: int) -> str:
    expected = f"{len(schema.operands)} operand{'s' * (len(schema.operands) != 1)}"
    return f"expected {expected} ({', '.join(schema.operands) or 'none'}), got {count}"


@define(eq=False, repr=False)
class Builder(Uncopied):
    """Records ops into one computation, and checks each op when it is called.

    >>> import xbuild as xb
    >>> builder = xb.Builder("double")
    >>> x = xb.parameter(builder, number=0, shape=xb.f32[3], name="x")
    >>> builder.build(x + x).program_shape
    (f32[3]) -> f32[3]

    Source: xla_builder.h, XlaBuilder.

    `origin` is the instruction whose line the recorded ones get, if a builder of derivatives sets it.
    """

    name: str
    parent: Builder | None = None
    computation: Computation | None = field(default=None, init=False)
    traced: dict[Any, Computation] = field(factory=dict, init=False)
    begun: int = field(default=0, init=False)
    origin: Instruction | None = field(default=None, init=False)
    _instructions: list[Instruction] = field(factory=list, init=False)
    _parameters: set[int] = field(factory=set, init=False)
    _names: _Names = field(factory=_Names, init=False)
    _computation_names: _Names = field(factory=_Names, init=False)
    _calls: _Calls = field(factory=_Calls, init=False)

    def __repr__(self) -> str:
        return f"Builder({self.name!r})"

    def __attrs_post_init__(self) -> None:
        check_name(self.name, BuildError)
        if self.parent:
            self.traced, self.begun = self.parent.traced, len(self.parent._instructions)
            self._names, self._computation_names = self.parent._names, self.parent._computation_names
            self._calls = self.parent._calls
        else:
            self._computation_names.unique(self.name)

    def sub_builder(self, name: str) -> Builder:
        """Return a builder for a called computation. It shares names and the instruction count with this builder."""
        return Builder(self._computation_names.unique(name), self)

    def recorded_since(self, count: int) -> list[Instruction]:
        """Return the instructions recorded after the first `count` instructions."""
        return self._instructions[count:]

    def unique_name(self, name: str) -> str:
        """Reserve a name that is unique in the module, and return it: the given name, with a number added if
        necessary."""
        return self._names.unique(name)

    def reserve(
        self, names: Iterable[str] = (), computations: Iterable[str] = (), parameters: Iterable[int] = ()
    ) -> None:
        """Reserve the names and parameter numbers of an existing program, so that no new instruction reuses one."""
        instructions = [*names]
        self._names.taken.update(dict.fromkeys(instructions, 0))
        self._names.count += len(instructions)
        self._computation_names.taken.update(dict.fromkeys(computations, 0))
        self._parameters.update(parameters)

    def record(
        self,
        schema: Schema,
        operands: tuple[Value, ...],
        segments: tuple[int, ...] | None,
        attributes: dict[str, Any],
        name: str | None,
    ) -> Value:
        """Add one instruction. Every op function calls this method.

        Raises ShapeError if the op refuses its operands or attributes, and BuildError if the builder refuses the
        instruction.
        """
        where = caller() if self.origin is None else None
        try:
            if self.computation is not None:
                raise BuildError("builder_finished", f"builder {self.name!r} is already built and accepts no more ops")
            sources, shapes = [], []
            for operand in operands:
                if type(operand) is not Value or operand.builder is not self:
                    raise rejection(schema, operands, operand, self)
                source = operand.instruction
                sources.append(source)
                shapes.append(source.shape)
            if segments is None and len(operands) != len(schema.operands):
                raise ShapeError("arity_mismatch", _arity_message(schema, len(operands)))
            if name:
                check_name(name, BuildError)
            if schema.regions:
                attributes = self._traced(schema, operands, segments, attributes)
            converted = schema.convert(attributes) if attributes else attributes
            key = (schema, segments, *converted, *converted.values(), *map(id, shapes))
            known = self._calls.known.get(key) if schema.shares_records else None
            record, shape, _ = known or self._calls.find(schema, shapes, segments, converted, key)
            if schema.opcode == "parameter":
                self._count_parameter(record.number)
        except XbuildError as error:
            raise explain(error, schema, operands, segments, attributes, where) from None
        control, annotations = context()
        named = self._names.unique(name) if name else self._names.fresh(schema.spelling)
        instruction: Any = _new(InstructionDraft)  # with the steps below, a fifth of the time of Instruction(...)
        instruction.opcode = schema.opcode
        instruction.name = named
        instruction.shape = shape
        instruction.operands = tuple(sources)
        instruction.segments = segments
        instruction.attributes = record
        instruction.where = where
        instruction.control = control
        instruction.annotations = annotations
        instruction.__class__ = Instruction
        self._instructions.append(instruction)
        if not len(self._instructions) & 255:
            relax()
        value: Any = _Handle(instruction, self)
        value.__class__ = Value
        return value  # type: ignore[no-any-return]

    @property
    def recorded(self) -> tuple[Instruction, ...]:
        """The instructions recorded so far, in order."""
        return tuple(self._instructions)

    def adopt(self, instructions: Iterable[Instruction]) -> None:
        """Add instructions from another computation, unchanged. Their operands must be recorded here or be among the
        added instructions."""
        for each in instructions:
            self._instructions.append(each)
            self._names.taken.setdefault(each.name, 0)
            for called in each.called:
                self._computation_names.taken.setdefault(called.name, 0)

    def build(self, root: Value | None = None) -> Computation:
        """Return a computation that contains all recorded instructions; by default, the last one is the root.

        Raises BuildError if nothing has been recorded, the root belongs to another builder, the parameter numbers have
        a gap, or `build` has already been called.
        """
        if self.computation is not None:
            raise _build_error(
                "builder_finished",
                f"builder {self.name!r} is already built; use builder.computation for its computation",
            )
        if not self._instructions:
            raise _build_error("missing_parameter", f"builder {self.name!r} has no instructions")
        if root is not None and (not isinstance(root, Value) or root.builder is not self):
            raise _build_error("foreign_value", *wrong_root(root, self))
        computation = Computation(
            self.name, tuple(self._instructions), root.instruction if root is not None else self._instructions[-1]
        )
        numbers = [p.attributes.number for p in computation.parameters]
        if numbers != list(range(len(numbers))):
            raise _build_error(
                "missing_parameter",
                f"the parameter numbers of builder {self.name!r} must be 0..{len(numbers) - 1}, got {numbers}",
            )
        self.computation = computation
        if self.parent is None:
            restore()
        return computation

    def _traced(
        self, schema: Schema, operands: tuple[Value, ...], segments: tuple[int, ...] | None, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        """The attributes with the functions among its regions traced into computations."""
        for role in schema.regions:
            if type(attributes.get(role)) is not Computation:
                break
        else:
            return attributes
        schema.expect(attributes)
        shapes = schema.unflatten(tuple(operand.shape for operand in operands), segments)
        return {**attributes, **trace_regions(self, schema, shapes, attributes)}

    def _count_parameter(self, number: int) -> None:
        if number in self._parameters:
            raise BuildError("duplicate_parameter", f"builder {self.name!r} already has a parameter {number}")
        self._parameters.add(number)


def stands_for(operand: Any) -> Any:
    """The value of an object with `__xbuild_value__`, such as a variable; any other operand unchanged."""
    give = getattr(type(operand), "__xbuild_value__", None)
    return operand if give is None else give(operand)


def builder_of(schema: Schema, operands: tuple[Any, ...], builder: Builder | None) -> Builder:
    """The builder into which an op is recorded: the builder of its operands, or the given one without operands."""
    for operand in operands:
        if type(operand) is Value:
            return operand.builder
    if isinstance(builder, Builder):
        return builder
    raise BuildError("no_builder", f"{schema.spelling}: no operand determines the builder; pass builder=...")
