"""Typed programs as modules: each instruction states its type, and casts are instructions that can be removed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import define, evolve, field, frozen

from shape_inference import TupleShape

from ..core.graph import NOTHING, Computation, Instruction, Module, Source
from ..core.op import OPS
from ..properties.mesh import Mesh
from ..properties.rewriting import Rewriter, with_called
from ..properties.variances import VARIANCE, Type, Variance, declared, spelled
from .types import CAST, CASTS, NamedCollective, TypedComputation, cast_of


@frozen
class Cast:
    """A cast of an operand: its kind, its axes, the value that is cast, and the reason."""

    op: str
    axes: tuple[str, ...]
    operand: Instruction
    instruction: Instruction
    reason: str

    @property
    def source(self) -> Source | None:
        """The line in the user's code that recorded the value."""
        return self.operand.source

    def __str__(self) -> str:
        why = self.reason or "stated in the program"
        return f"{self.op}({', '.join(self.axes)}) of {self.operand.name}: {why}"


def add_notes(notes: Mapping[str, Any], **entries: str) -> Mapping[str, Any]:
    """Annotations with these frontend attributes added."""
    given = {**notes.get("frontend_attributes", NOTHING), **entries}
    return MappingProxyType({**notes, "frontend_attributes": MappingProxyType(given)})


@define(eq=False)
class TypedWriter:
    """Writes typed computations; names of casts are unique in the whole program."""

    mesh: Mesh
    taken: set[str]
    numbers: Any = field(factory=lambda: itertools.count(1))
    _written: dict[int, tuple[TypedComputation, Computation]] = field(factory=dict)

    def write(self, typed: TypedComputation) -> Computation:
        """The computation with types on its instructions and with its casts; one for each typed computation."""
        if id(typed) not in self._written:
            self._written[id(typed)] = typed, _ComputationWriter(self, typed).computation()
        return self._written[id(typed)][1]

    def name(self, op: str) -> str:
        name = next(name for n in self.numbers if (name := f"{op}.{n}") not in self.taken)
        self.taken.add(name)
        return name


@define(eq=False)
class _ComputationWriter:
    """Writes one computation: the new instruction for each old one, and the casts that were made of each."""

    writer: TypedWriter
    typed: TypedComputation
    new: dict[Instruction, Instruction] = field(factory=dict)
    made: dict[tuple[Instruction, str], Instruction] = field(factory=dict)
    instructions: list[Instruction] = field(factory=list)

    def computation(self) -> Computation:
        for instruction, judgement in self.typed.judged.items():
            operands = []
            for number, (operand, wanted) in enumerate(zip(instruction.operands, judgement.operands, strict=True)):
                given, reason = self.typed.type_of(operand), judgement.reasons.get(number, "")
                operands.append(self.cast(self.new[operand], given, wanted, reason))
            self.new[instruction] = self.add(self.rewrite(instruction, tuple(operands)))
        root, result = self.typed.computation.root, self.typed.root
        last = self.cast(self.new[root], self.typed.type_of(root), result, f"result of {self.typed.computation.name}")
        return Computation(self.typed.computation.name, self.instructions, last)

    def add(self, instruction: Instruction) -> Instruction:
        self.instructions.append(instruction)
        return instruction

    def rewrite(self, instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
        judgement = self.typed.judged[instruction]
        called = [self.writer.write(each) for each in judgement.called]
        return evolve(
            instruction,
            operands=operands,
            control=tuple(self.new[each] for each in instruction.control),
            attributes=with_called(instruction, called) if called else instruction.attributes,
            annotations=self.typed_notes(instruction.annotations, judgement.result),
        )

    def typed_notes(self, notes: Mapping[str, Any], given: Type) -> Mapping[str, Any]:
        return add_notes(notes, **{VARIANCE: spelled(given, self.writer.mesh)})

    def cast(self, operand: Instruction, given: Type, wanted: Type, reason: str) -> Instruction:
        """The operand, cast to the expected type; a tuple is cast element by element."""
        if given == wanted:
            return operand
        key = operand, spelled(wanted, self.writer.mesh)
        if key not in self.made:
            make = self.cast_tuple if isinstance(given, tuple) else self.cast_leaf
            self.made[key] = make(operand, given, wanted, reason)
        return self.made[key]

    def cast_tuple(self, operand: Instruction, given: Type, wanted: Type, reason: str) -> Instruction:
        parts = []
        for number, (old, new) in enumerate(zip(given, wanted, strict=True)):
            part = operand.operands[number] if operand.opcode == "tuple" else self.element(operand, number, old)
            parts.append(self.cast(part, old, new, reason))
        assert isinstance(operand.shape, TupleShape)
        notes = self.typed_notes(NOTHING, wanted)
        name, segments = self.writer.name("tuple"), (len(parts),)
        return self.add(
            Instruction("tuple", name, operand.shape, tuple(parts), segments, None, operand.where, (), notes)
        )

    def element(self, operand: Instruction, number: int, given: Type) -> Instruction:
        key = operand, f"element {number}"
        if key not in self.made:
            assert isinstance(operand.shape, TupleShape)
            record = OPS["get_tuple_element"].read({"index": number})
            shape, notes = operand.shape.elements[number], self.typed_notes(NOTHING, given)
            name = self.writer.name("get-tuple-element")
            found = Instruction("get_tuple_element", name, shape, (operand,), None, record, operand.where, (), notes)
            self.made[key] = self.add(found)
        return self.made[key]

    def cast_leaf(self, operand: Instruction, given: Variance, wanted: Variance, reason: str) -> Instruction:
        for op, axes in cast_steps(given, wanted, self.writer.mesh):
            given = given.moved(axes, _TO[op])
            key = operand, f"{op}({','.join(axes)})"
            if key not in self.made:
                self.made[key] = self.add(self.copy(operand, NamedCollective(op, axes, reason), given))
            operand = self.made[key]
        return operand

    def copy(self, operand: Instruction, mark: NamedCollective, given: Variance) -> Instruction:
        notes = self.typed_notes(add_notes(NOTHING, **{CAST: mark.text()}), given)
        name = self.writer.name("pvary" if mark.op == "pvary" else "pcast")
        return Instruction("copy", name, operand.shape, (operand,), None, None, operand.where, (), notes)


_TO = {op: next(iter(states.values())) for op, states in CASTS.items()}
_BY = {("invarying", "varying"): ("pvary",), ("invarying", "reduced"): ("to_reduced",),
       ("reduced", "varying"): ("to_varying",), ("varying", "unreduced"): ("to_unreduced",),
       ("invarying", "unreduced"): ("pvary", "to_unreduced")}  # fmt: skip


def cast_steps(given: Variance, wanted: Variance, mesh: Mesh) -> list[tuple[str, tuple[str, ...]]]:
    """The casts from one type to another, each with its axes; axes with the same cast are cast together."""
    found: dict[str, list[str]] = {}
    for axis in mesh.axes:
        if given.state(axis) != wanted.state(axis):
            for op in _BY[given.state(axis), wanted.state(axis)]:
                found.setdefault(op, []).append(axis)
    return [(op, tuple(found[op])) for op in CASTS if op in found]


def names_in(computation: Computation) -> set[str]:
    return {each.name for c in computation.reachable() for each in c.instructions}


def casts_in(computation: Computation) -> list[Cast]:
    """All casts of a typed computation and its callees; inserted ones have their reasons."""
    found = []
    for each in computation.reachable():
        for instruction in each.instructions:
            if mark := cast_of(instruction):
                found.append(Cast(mark.op, mark.axes, _origin(instruction), instruction, mark.reason))
    return found


def _origin(instruction: Instruction) -> Instruction:
    while cast_of(instruction):
        (instruction,) = instruction.operands
    return instruction


def remove_casts(computation: Computation) -> Computation:
    """The computation without its casts, which move no data.

    Tuple parameters of callees state no type, since real XLA accepts no attributes on them.
    """
    return _Lowering(computation).program(computation)


def readable(module: Module) -> Module:
    """The module as real XLA reads it: no tuple parameter states a type, also not in the entry."""
    if not any(_is_typed_tuple(each) for computation in module.computations for each in computation.instructions):
        return module
    return evolve(module, entry=_Lowering(None).program(module.entry), computations=())


class _Lowering(Rewriter):
    """The pass that removes casts, and the stated types of tuple parameters outside the entry."""

    def __init__(self, entry: Computation | None) -> None:
        super().__init__()
        self.typed = frozenset(entry.parameters) if entry is not None else frozenset()

    def instruction(self, instruction: Instruction) -> Instruction:
        if cast_of(instruction) is not None:
            return self.now[instruction.operands[0]]
        is_tuple = instruction.opcode == "parameter" and isinstance(instruction.shape, TupleShape)
        if is_tuple and instruction not in self.typed:
            return self.add(_drop_type(instruction))
        return super().instruction(instruction)


def _is_typed_tuple(instruction: Instruction) -> bool:
    is_tuple = instruction.opcode == "parameter" and isinstance(instruction.shape, TupleShape)
    return is_tuple and declared(instruction) is not None


def _drop_type(parameter: Instruction) -> Instruction:
    """The parameter without its stated type."""
    notes = {key: value for key, value in parameter.annotations.items() if key != "frontend_attributes"}
    given = parameter.annotations.get("frontend_attributes", NOTHING)
    rest = {key: value for key, value in given.items() if key != VARIANCE}
    if rest:
        notes["frontend_attributes"] = MappingProxyType(rest)
    return evolve(parameter, annotations=MappingProxyType(notes) if notes else NOTHING)
