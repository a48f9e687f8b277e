"""Recording: each call of an op infers its shape and adds one instruction."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from attrs import Factory, define, field

from shape_inference import AnyShape, ShapeError, XbuildError, infer

from .context import context
from .diagnostics import BuildError, explain
from .graph import Computation, Instruction
from .operators import Operators
from .regions import trace_regions
from .text.identifiers import check_name

if TYPE_CHECKING:
    from .op import Schema

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


@define(eq=False, repr=False)
class Value(Operators):
    """A handle on an instruction under construction; operators on it record ops."""

    instruction: Instruction
    builder: Builder

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
    """The names of a module under construction, and its one counter."""

    taken: set[str] = Factory(set)
    count: int = 0

    def fresh(self, spelling: str) -> str:
        while True:
            self.count += 1
            name = f"{spelling}.{self.count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def unique(self, name: str) -> str:
        if name in self.taken:
            name = next(n for k in range(1, len(self.taken) + 2) if (n := f"{name}.{k}") not in self.taken)
        self.taken.add(name)
        return name


@define(eq=False, repr=False)
class Builder:
    """Records ops into one computation, each checked when it is called.

    >>> import xbuild as xb
    >>> builder = xb.Builder("double")
    >>> x = xb.parameter(builder, number=0, shape=xb.f32[3], name="x")
    >>> builder.build(x + x).program_shape
    (f32[3]) -> f32[3]

    Source: xla_builder.h, XlaBuilder.
    """

    name: str
    parent: Builder | None = None
    computation: Computation | None = field(default=None, init=False)
    traced: dict[Any, Computation] = field(factory=dict, init=False)
    _instructions: list[Instruction] = field(factory=list, init=False)
    _names: _Names = field(init=False)

    def __attrs_post_init__(self) -> None:
        check_name(self.name)
        self._names = self.parent._names if self.parent else _Names()
        if self.parent:
            self.traced = self.parent.traced

    def sub_builder(self, name: str) -> Builder:
        """A builder for a called computation, whose instructions count on with this one's."""
        return Builder(self._names.unique(name), self)

    def record(
        self,
        schema: Schema,
        operands: tuple[Value, ...],
        segments: tuple[int, ...] | None,
        attributes: dict[str, Any],
        name: str | None,
    ) -> Value:
        """Add one instruction; what the function of every op calls.

        Raises ShapeError where the op refuses, BuildError where the builder does.
        """
        where = _caller()
        try:
            self._admit(schema, operands)
            if name:
                check_name(name)
            record = self._attributes(schema, operands, segments, attributes)
            shape = _infer(schema, operands, segments, record)
        except XbuildError as error:
            raise explain(error, schema, operands, segments, attributes, where) from None
        instruction = Instruction(
            schema.opcode,
            self._names.unique(name) if name else self._names.fresh(schema.spelling),
            shape,
            tuple([operand.instruction for operand in operands]),
            segments,
            record,
            where,
            *context(),
        )
        self._instructions.append(instruction)
        return Value(instruction, self)

    def build(self, root: Value | None = None) -> Computation:
        """The computation of all that was recorded; the root is the last instruction where none is named.

        Raises BuildError: nothing recorded, a root of another builder, a gap in the parameter numbers, a second build.
        """
        if self.computation is not None:
            raise BuildError("builder_finished", f"builder {self.name!r} was built already; its computation is builder.computation")
        if not self._instructions:
            raise BuildError("missing_parameter", f"builder {self.name!r} has no instructions")
        if root is not None and (not isinstance(root, Value) or root.builder is not self):
            raise BuildError("foreign_value", f"build: the root {root!r} is no value of builder {self.name!r}")
        computation = Computation(self.name, tuple(self._instructions), root.instruction if root is not None else self._instructions[-1])
        numbers = [p.attributes.number for p in computation.parameters]
        if numbers != list(range(len(numbers))):
            raise BuildError("missing_parameter", f"builder {self.name!r} has the parameter numbers {numbers}; 0..{len(numbers) - 1} are wanted")
        self.computation = computation
        return computation

    def _admit(self, schema: Schema, operands: tuple[Value, ...]) -> None:
        if self.computation is not None:
            raise BuildError("builder_finished", f"builder {self.name!r} was built; no op can be added to it")
        for operand in operands:
            if type(operand) is not Value or operand.builder is not self:
                self._reject(operand)
        if schema.is_flat and len(operands) != len(schema.operands):
            raise ShapeError("arity_mismatch", f"{len(operands)} operands, and {len(schema.operands)} are wanted: {', '.join(schema.operands) or 'none'}")

    def _reject(self, operand: Any) -> NoReturn:
        if not isinstance(operand, Value):
            raise BuildError("invalid_operand", f"operand {operand!r} is no value of a builder", "xb.constant(builder, literal=...) makes one")
        raise BuildError(
            "foreign_value",
            f"operand {operand} belongs to builder {operand.builder.name!r}, and this is builder {self.name!r}",
            "a region sees its own parameters only: pass the value as an operand",
        )

    def _attributes(
        self, schema: Schema, operands: tuple[Value, ...], segments: tuple[int, ...] | None, attributes: dict[str, Any]
    ) -> Any:
        if schema.attributes is None and not attributes:
            return None
        schema.expect(attributes)
        if schema.regions and any(not isinstance(attributes[role], Computation) for role in schema.regions):
            shapes = schema.gather(tuple(operand.shape for operand in operands), segments)
            attributes = {**attributes, **trace_regions(self, schema, shapes, attributes)}
        record = schema.attributes(**attributes)
        if schema.opcode == "parameter" and any(
            i.opcode == "parameter" and i.attributes.number == record.number for i in self._instructions
        ):
            raise BuildError("duplicate_parameter", f"builder {self.name!r} has a parameter {record.number} already")
        return record


def _infer(schema: Schema, operands: tuple[Value, ...], segments: tuple[int, ...] | None, record: Any) -> AnyShape:
    shapes = [operand.instruction.shape for operand in operands]
    if segments is not None:
        shapes = schema.gather(tuple(shapes), segments)
    if record is None:
        return infer[schema.opcode](*shapes)
    if not schema.regions:
        return infer[schema.opcode](*shapes, **vars(record))
    return infer[schema.opcode](*shapes, **signatures(vars(record), schema.regions))


def signatures(attributes: dict[str, Any], regions: tuple[str, ...]) -> dict[str, Any]:
    """The attributes as shape inference reads them: a region by its signature."""
    seen = dict(attributes)
    for role in regions:
        region = seen[role]
        seen[role] = tuple(r.program_shape for r in region) if isinstance(region, tuple) else region.program_shape
    return seen


def builder_of(schema: Schema, operands: tuple[Any, ...], builder: Builder | None) -> Builder:
    """The builder that an op records into: its operands', or the one that is named where it has none."""
    for operand in operands:
        if isinstance(operand, Value):
            return operand.builder
    if isinstance(builder, Builder):
        return builder
    raise BuildError("no_builder", f"{schema.spelling}: no operand tells the builder; pass it first, or as builder=")


def _caller() -> tuple[CodeType, int] | None:
    """The user's frame: the first outside this package."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
