"""Typed programs as programs: each instruction states its type, and casts are instructions that can be taken out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import define, evolve, field, frozen

from shape_inference import TupleShape

from ..core.attributes import Region
from ..core.graph import NOTHING, Computation, Instruction, Module, Source
from ..core.op import OPS
from ..properties.mesh import Mesh
from ..properties.variances import VARIANCE, Type, Variance, declared, spelled
from .rules.collective_rules import CASTS
from .rules.marks import CAST, Mark, cast_of
from .rules.walk import Typed


@frozen
class Cast:
    """A cast of a value on its way to an instruction that takes it: which, along which axes, of what, and why."""

    op: str
    axes: tuple[str, ...]
    operand: Instruction
    instruction: Instruction
    reason: str

    @property
    def source(self) -> Source | None:
        """The line of the user that recorded what is cast."""
        return self.operand.source

    def __str__(self) -> str:
        why = self.reason or "stated in the program"
        return f"{self.op}({', '.join(self.axes)}) of {self.operand.name}: {why}"


def noted(notes: Mapping[str, Any], **entries: str) -> Mapping[str, Any]:
    """Annotations with these frontend attributes added."""
    given = {**notes.get("frontend_attributes", NOTHING), **entries}
    return MappingProxyType({**notes, "frontend_attributes": MappingProxyType(given)})


@define(eq=False)
class Writer:
    """Writes typed computations; names of casts are unique in the whole program."""

    mesh: Mesh
    taken: set[str]
    numbers: Any = field(factory=lambda: itertools.count(1))
    _written: dict[int, tuple[Typed, Computation]] = field(factory=dict)

    def written(self, typed: Typed) -> Computation:
        """The computation with types on its instructions and with its casts; one for each typed computation."""
        if id(typed) not in self._written:
            self._written[id(typed)] = typed, _Body(self, typed).computation()
        return self._written[id(typed)][1]

    def name(self, op: str) -> str:
        name = next(name for n in self.numbers if (name := f"{op}.{n}") not in self.taken)
        self.taken.add(name)
        return name


@define(eq=False)
class _Body:
    """One computation under way: the new instruction for each old one, and the casts that were made of each."""

    writer: Writer
    typed: Typed
    new: dict[Instruction, Instruction] = field(factory=dict)
    made: dict[tuple[Instruction, str], Instruction] = field(factory=dict)
    instructions: list[Instruction] = field(factory=list)

    def computation(self) -> Computation:
        for instruction, judgement in self.typed.judged.items():
            operands = []
            for number, (operand, wanted) in enumerate(zip(instruction.operands, judgement.operands, strict=True)):
                given, reason = self.typed.type_of(operand), judgement.reasons.get(number, "")
                operands.append(self.cast(self.new[operand], given, wanted, reason))
            self.new[instruction] = self.add(self.renewed(instruction, tuple(operands)))
        root, result = self.typed.computation.root, self.typed.root
        last = self.cast(self.new[root], self.typed.type_of(root), result, f"result of {self.typed.computation.name}")
        return Computation(self.typed.computation.name, self.instructions, last)

    def add(self, instruction: Instruction) -> Instruction:
        self.instructions.append(instruction)
        return instruction

    def renewed(self, instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
        judgement = self.typed.judged[instruction]
        called = [self.writer.written(each) for each in judgement.called]
        return evolve(
            instruction,
            operands=operands,
            control=tuple(self.new[each] for each in instruction.control),
            attributes=with_called(instruction, called) if called else instruction.attributes,
            annotations=self.typed_notes(instruction.annotations, judgement.result),
        )

    def typed_notes(self, notes: Mapping[str, Any], given: Type) -> Mapping[str, Any]:
        return noted(notes, **{VARIANCE: spelled(given, self.writer.mesh)})

    def cast(self, operand: Instruction, given: Type, wanted: Type, reason: str) -> Instruction:
        """The operand in the type that is wanted; of a tuple element by element."""
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
        for op, axes in steps(given, wanted, self.writer.mesh):
            given = given.moved(axes, _TO[op])
            key = operand, f"{op}({','.join(axes)})"
            if key not in self.made:
                self.made[key] = self.add(self.copy(operand, Mark(op, axes, reason), given))
            operand = self.made[key]
        return operand

    def copy(self, operand: Instruction, mark: Mark, given: Variance) -> Instruction:
        notes = self.typed_notes(noted(NOTHING, **{CAST: mark.text()}), given)
        name = self.writer.name("pvary" if mark.op == "pvary" else "pcast")
        return Instruction("copy", name, operand.shape, (operand,), None, None, operand.where, (), notes)


_TO = {op: next(iter(states.values())) for op, states in CASTS.items()}
_BY = {("invarying", "varying"): ("pvary",), ("invarying", "reduced"): ("to_reduced",),
       ("reduced", "varying"): ("to_varying",), ("varying", "unreduced"): ("to_unreduced",),
       ("invarying", "unreduced"): ("pvary", "to_unreduced")}  # fmt: skip


def steps(given: Variance, wanted: Variance, mesh: Mesh) -> list[tuple[str, tuple[str, ...]]]:
    """The casts from one type to another, each with its axes; axes that go the same way go together."""
    found: dict[str, list[str]] = {}
    for axis in mesh.axes:
        if given.state(axis) != wanted.state(axis):
            for op in _BY[given.state(axis), wanted.state(axis)]:
                found.setdefault(op, []).append(axis)
    return [(op, tuple(found[op])) for op in CASTS if op in found]


def with_called(instruction: Instruction, called: Sequence[Computation]) -> Any:
    """The attributes with the called computations, in order, in place of what they are."""
    given = iter(called)
    changes: dict[str, Any] = {}
    for key in instruction.attributes.calling:
        value = getattr(instruction.attributes, key)
        changes[key] = next(given) if isinstance(value, Region) else tuple(next(given) for _ in value)
    return evolve(instruction.attributes, **changes)


def names_in(computation: Computation) -> set[str]:
    return {each.name for c in computation.reachable() for each in c.instructions}


def casts_in(computation: Computation) -> list[Cast]:
    """All casts of a typed computation and of what it calls, those that were inserted with their reasons."""
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


def lowered(computation: Computation) -> Computation:
    """The computation without its casts, which move no data.

    A tuple that a called computation takes states no type, since real XLA takes no attributes of such a parameter.
    """
    done: dict[Computation, Computation] = {}
    for each in computation.reachable():
        done[each] = _lowered(each, done, each is computation)
    return done[computation]


def readable(module: Module) -> Module:
    """The module as real XLA reads it: no tuple that a computation takes, the entry's among them, states a type."""
    if not any(_is_typed_tuple(each) for computation in module.computations for each in computation.instructions):
        return module
    done: dict[Computation, Computation] = {}
    for each in module.entry.reachable():
        done[each] = _lowered(each, done, False)
    return evolve(module, entry=done[module.entry], computations=())


def _is_typed_tuple(instruction: Instruction) -> bool:
    is_tuple = instruction.opcode == "parameter" and isinstance(instruction.shape, TupleShape)
    return is_tuple and declared(instruction) is not None


def _lowered(computation: Computation, done: Mapping[Computation, Computation], is_entry: bool) -> Computation:
    new: dict[Instruction, Instruction] = {}
    kept: list[Instruction] = []
    for instruction in computation.instructions:
        if cast_of(instruction) is not None:
            new[instruction] = new[instruction.operands[0]]
            continue
        is_taken_apart = (
            instruction.opcode == "parameter" and isinstance(instruction.shape, TupleShape) and not is_entry
        )
        new[instruction] = _untyped(instruction) if is_taken_apart else _renewed(instruction, new, done)
        kept.append(new[instruction])
    if all(old is now for old, now in zip(computation.instructions, kept, strict=False)) and len(kept) == len(new):
        return computation
    return Computation(computation.name, kept, new[computation.root])


def _untyped(parameter: Instruction) -> Instruction:
    """The parameter without what it states of its type."""
    notes = {key: value for key, value in parameter.annotations.items() if key != "frontend_attributes"}
    given = parameter.annotations.get("frontend_attributes", NOTHING)
    rest = {key: value for key, value in given.items() if key != VARIANCE}
    if rest:
        notes["frontend_attributes"] = MappingProxyType(rest)
    return evolve(parameter, annotations=MappingProxyType(notes) if notes else NOTHING)


def _renewed(
    instruction: Instruction, new: Mapping[Instruction, Instruction], done: Mapping[Computation, Computation]
) -> Instruction:
    operands = tuple(new[each] for each in instruction.operands)
    control = tuple(dict.fromkeys(new[each] for each in instruction.control))
    called = [done[each] for each in instruction.called]
    if (
        _same(operands, instruction.operands)
        and _same(control, instruction.control)
        and _same(called, instruction.called)
    ):
        return instruction
    attributes = with_called(instruction, called) if called else instruction.attributes
    return evolve(instruction, operands=operands, control=control, attributes=attributes)


def _same(new: Iterable[object], old: Iterable[object]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
