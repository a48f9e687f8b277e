"""The builder of a derivative: it simplifies what rules record, and notes of which instruction it is the derivative."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import define, evolve, field

from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction
from ..core.op import OPS, Schema
from ..properties.effects import has_effect
from ..variance.rules.marks import marks_of, with_marks
from .pruning import lean
from .simplification import simplified

_LARGE = 64  # bytes of a literal up to which equal constants are found
_set = object.__setattr__


@define(eq=False)
class Augmented:
    """An instruction that gives more than the one it stands for: what it needs before, itself, the old value after."""

    before: list[Instruction]
    now: Instruction
    after: list[Instruction]
    stand_in: Instruction
    keeps_indices: bool


@define(eq=False, repr=False)
class Recorder(Builder):
    """Records derivatives beside the instructions of a computation, which are taken as they are."""

    origin: Instruction | None = field(default=None, init=False)
    mode: str = field(default="vjp", init=False)
    augmented: dict[Instruction, Augmented] = field(factory=dict, init=False)
    current: dict[Instruction, Instruction] = field(factory=dict, init=False)
    _known: dict[Any, Instruction] = field(factory=dict, init=False)
    _notes: dict[Instruction, Any] = field(factory=dict, init=False)

    def adopt(self, instructions: Iterable[Instruction]) -> None:
        """Take instructions of another computation as they are."""
        taken = self._names.taken
        for each in instructions:
            self._instructions.append(each)
            taken.setdefault(each.name, 0)
            key = _key(each)
            if key is not None:
                self._known.setdefault(key, each)

    def reserve_names_of(self, computation: Computation) -> None:
        """Give nothing a name that a computation or its instructions have."""
        self._computation_names.taken.setdefault(computation.name, 0)
        for each in computation.instructions:
            self._names.taken.setdefault(each.name, 0)

    def fresh(self, name: str) -> str:
        """The name, or the first one like it that nothing has; `record` takes it."""
        found = self._names.unique(name)
        del self._names.taken[found]
        return found

    def unique(self, name: str) -> str:
        """The name, or the first one like it that nothing has, which is taken with this."""
        return self._names.unique(name)

    def inner(self, name: str, origin: Instruction | None) -> Recorder:
        """A recorder for a computation that is called, all of it the derivative of an instruction."""
        found = Recorder(self._computation_names.unique(name), self)
        found.origin, found.mode = origin, self.mode
        return found

    def built(self, root: Value) -> Computation:
        """The computation of what was recorded, without what its root does not need."""
        return lean(self.name, self._instructions, root.instruction)

    def value(self, instruction: Instruction) -> Value:
        return Value(instruction, self)

    @contextmanager
    def deriving(self, origin: Instruction | None) -> Iterator[None]:
        """What is recorded inside is part of the derivative of this instruction."""
        before, self.origin = self.origin, origin
        try:
            yield
        finally:
            self.origin = before

    @contextmanager
    def aside(self) -> Iterator[list[Instruction]]:
        """What is recorded inside goes into a list of its own, for a place further up."""
        known, instructions = self._known, self._instructions
        self._known, self._instructions = {}, []
        try:
            yield self._instructions
        finally:
            self._known, self._instructions = known, instructions

    def record(
        self,
        schema: Schema,
        operands: tuple[Value, ...],
        segments: tuple[int, ...] | None,
        attributes: dict[str, Any],
        name: str | None,
    ) -> Value:
        """Add one instruction, or give the one that computes the same already, or a simpler one."""
        value = super().record(schema, operands, segments, attributes, name)
        made = self._instructions.pop()
        found = simplified(self, made)
        if found is not None:
            return found
        key = _key(made)
        if key is not None and key in self._known:
            return self.value(self._known[key])
        if key is not None:
            self._known[key] = made
        if self.origin is not None:
            self._title(made, self.origin, name)
        self._instructions.append(made)
        return value

    def _title(self, made: Instruction, origin: Instruction, name: str | None) -> None:
        """Name an instruction after the one that it is the derivative of, and give it that one's line."""
        if name is None:
            _set(made, "name", self._names.unique(f"{origin.name}.{self.mode}"))
        _set(made, "where", origin.where)
        if origin not in self._notes:
            self._notes[origin] = _notes_of(origin, self.mode)
        _set(made, "annotations", with_marks(self._notes[origin], made))

    def append(self, instruction: Instruction) -> Value:
        """Add an instruction as it is, or give the one that computes the same already."""
        key = _key(instruction)
        if key is not None and key in self._known:
            return self.value(self._known[key])
        if key is not None:
            self._known[key] = instruction
        self._instructions.append(instruction)
        return self.value(instruction)

    def again(self, opcode: str, operands: list[Value]) -> Value:
        """An op without attributes on other operands."""
        return self.record(OPS[opcode], tuple(operands), None, {}, None)

    def assembled(self) -> list[Instruction]:
        """All instructions, those that were augmented in the place of what they stand for."""
        found: list[Instruction] = []
        for each in self._instructions:
            augmented = self.augmented.get(each)
            if augmented is None:
                found.append(self._rewired(each))
            else:
                found += map(self._rewired, (*augmented.before, augmented.now, *augmented.after))
                self.current[each] = self.now(augmented.stand_in)
        return found

    def now(self, instruction: Instruction) -> Instruction:
        """What an instruction has become."""
        return self.current.get(instruction, instruction)

    def _rewired(self, instruction: Instruction) -> Instruction:
        """The instruction with what its operands have become."""
        if not self.current:
            return instruction
        operands = tuple(map(self.now, instruction.operands))
        if instruction.opcode == "get_tuple_element" and instruction.operands[0] in self.augmented:
            augmented = self.augmented[instruction.operands[0]]
            operands = (self.now(augmented.now),) if augmented.keeps_indices else operands
        control = tuple(map(self.now, instruction.control))
        if operands == instruction.operands and control == instruction.control:
            return instruction
        self.current[instruction] = evolve(instruction, operands=operands, control=control)
        return self.current[instruction]


def _notes_of(origin: Instruction, mode: str) -> Any:
    """The metadata of a derivative: the scope of the instruction, then its name."""
    path = origin.annotations.get("metadata", {}).get("op_name", "")
    title = f"{path}/{mode}({origin.name})" if path else f"{mode}({origin.name})"
    return MappingProxyType({"metadata": MappingProxyType({"op_name": title})})


def _key(instruction: Instruction) -> Any:
    """What two instructions share that compute the same; None where none is to be shared."""
    if instruction.opcode in ("parameter", "custom_call", "after_all") or has_effect(instruction):
        return None
    if instruction.control:
        return None
    attributes = tuple([_frozen(each) for each in instruction.attribute_values().values()])
    return instruction.opcode, instruction.operands, instruction.segments, attributes, marks_of(instruction)


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return (str(value.dtype), value.shape, value.tobytes()) if value.nbytes <= _LARGE else id(value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
