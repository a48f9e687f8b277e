"""The builder of a derivative: it simplifies what rules record, and names it after the instruction being derived.

Sections:

    Simplifications of what rules record
    The builder of a derivative
    Copies of instructions of another computation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import define, evolve, field

from shape_inference import Shape
from shape_inference.rules import RuleTable

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction
from ..core.op import OPS, Schema
from ..properties.effects import has_effect
from ..properties.patterns import number_in, reducer_of, spread
from ..properties.rewriting import rewired
from ..variance.types import marks_of, with_marks
from .pruning import prune

# ----------------------------------------------------------------------------
# Simplifications of what rules record
#
# A derivative never multiplies by one or adds zero.


simplifications = RuleTable("simplification")
"""opcode -> rule(recorder, instruction): an equal, simpler value, or None."""


def simplify(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    """An equal value that is cheaper than the instruction, or None."""
    rule = simplifications.get(instruction.opcode)
    return rule(recorder, instruction) if rule is not None else None


def _if_same_shape(recorder: DerivativeRecorder, instruction: Instruction, operand: Instruction) -> Value | None:
    """The operand if it has the shape of the instruction, otherwise None."""
    return recorder.value(operand) if _dims(operand) == _dims(instruction) else None


def _dims(instruction: Instruction) -> Any:
    shape = instruction.shape
    return (shape.dtype, shape.dims) if isinstance(shape, Shape) else None


def _full(recorder: DerivativeRecorder, value: Any, like: Instruction) -> Value:
    """A number broadcast to the shape of an instruction."""
    shape: Any = like.shape
    with np.errstate(all="ignore"):
        literal = np.asarray(value).astype(shape.dtype.dtype)
    scalar = ops.constant(recorder, literal=literal)
    return scalar if shape.rank == 0 else ops.broadcast(scalar, sizes=shape.dims, dimensions=())


_FOLDS: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negate": np.negative,
}  # fmt: skip


def _fold_numbers(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    """The value of an op on numbers; only for floats and complex numbers, since integers divide differently."""
    shape: Any = instruction.shape
    if shape.dtype.kind not in ("float", "complex") or shape.is_dynamic:
        return None
    numbers = [number_in(operand) for operand in instruction.operands]
    if any(number is None for number in numbers):
        return None
    with np.errstate(all="ignore"):
        value = _FOLDS[instruction.opcode](*numbers)
    return _full(recorder, value, instruction)


def _fold_or_hoist(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    """An op of numbers, folded; an op of broadcast scalars, applied before the broadcast."""
    folded = _fold_numbers(recorder, instruction)
    return folded if folded is not None else _hoist_broadcast(recorder, instruction)


@simplifications
def add(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if number_in(one) == 0:
            return _if_same_shape(recorder, instruction, other)
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if one.opcode == "dynamic_update_slice" and number_in(one.operands[0]) == 0:
            return _add_inside(recorder, other, one)
    if rhs.opcode == "negate" and _dims(lhs) == _dims(rhs):
        return ops.subtract(recorder.value(lhs), recorder.value(rhs.operands[0]))
    return _fold_or_hoist(recorder, instruction)


def _add_inside(recorder: DerivativeRecorder, whole: Instruction, part: Instruction) -> Value:
    """The sum of an array and one that is zero outside a slice: only that slice is added to."""
    update, starts = part.operands[1], tuple(map(recorder.value, part.operands[2:]))
    there = recorder.value(whole)
    sizes = update.shape.dims  # type: ignore[union-attr]
    before = ops.dynamic_slice(there, starts, dynamic_slice_sizes=sizes)
    return ops.dynamic_update_slice(there, ops.add(before, recorder.value(update)), starts)


@simplifications
def subtract(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    if number_in(rhs) == 0:
        return _if_same_shape(recorder, instruction, lhs)
    return _fold_or_hoist(recorder, instruction)


@simplifications
def multiply(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    for one, other in ((lhs, rhs), (rhs, lhs)):
        number = number_in(one)
        if number is not None and number == 1:
            return _if_same_shape(recorder, instruction, other)
        if number is not None and number == -1 and _dims(other) == _dims(instruction):
            return ops.negate(recorder.value(other))
    return _fold_or_hoist(recorder, instruction)


@simplifications
def divide(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    lhs, rhs = instruction.operands
    if number_in(rhs) == 1:
        return _if_same_shape(recorder, instruction, lhs)
    return _fold_or_hoist(recorder, instruction)


@simplifications
def negate(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    if operand.opcode == "negate":
        return recorder.value(operand.operands[0])
    return _fold_or_hoist(recorder, instruction)


def _hoist_broadcast(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    """An op of broadcast scalars as the broadcast of the op."""
    shape: Any = instruction.shape
    inside = [spread(operand) for operand in instruction.operands]
    if shape.rank == 0 or shape.is_dynamic or any(operand is None for operand in inside):
        return None
    operands = [recorder.value(operand) for operand in inside if operand is not None]
    scalar = recorder.record_op(instruction.opcode, operands)
    return ops.broadcast(scalar, sizes=shape.dims, dimensions=())


@simplifications
def convert(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    return _if_same_shape(recorder, instruction, instruction.operands[0])


@simplifications
def reshape(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,), shape = instruction.operands, instruction.shape
    inner: Any = operand.shape
    if not isinstance(shape, Shape) or shape.is_dynamic or inner.is_dynamic:
        return None
    if inner.dims == shape.dims:
        return recorder.value(operand)
    if operand.opcode == "reshape":
        return ops.reshape(recorder.value(operand.operands[0]), new_sizes=shape.dims)
    scalar = spread(operand)
    if scalar is not None and operand.opcode == "broadcast":
        return ops.broadcast(recorder.value(scalar), sizes=shape.dims, dimensions=())
    return None


@simplifications
def transpose(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,), shape = instruction.operands, instruction.shape
    permutation = instruction.attributes.permutation
    if permutation == tuple(range(len(permutation))):
        return recorder.value(operand)
    if operand.opcode == "transpose":
        inner = operand.attributes.permutation
        return ops.transpose(recorder.value(operand.operands[0]), permutation=tuple(inner[p] for p in permutation))
    scalar = spread(operand)
    if scalar is not None and operand.opcode == "broadcast" and isinstance(shape, Shape):
        return ops.broadcast(recorder.value(scalar), sizes=shape.dims, dimensions=())
    return None


@simplifications
def broadcast(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,), sizes = instruction.operands, instruction.attributes.sizes
    dimensions, inner = instruction.attributes.dimensions, operand.shape
    if not isinstance(inner, Shape) or inner.is_dynamic:
        return None
    if inner.dims == sizes and dimensions == tuple(range(len(sizes))):
        return recorder.value(operand)
    if operand.opcode == "broadcast":
        through = tuple([dimensions[d] for d in operand.attributes.dimensions])
        return ops.broadcast(recorder.value(operand.operands[0]), sizes=sizes, dimensions=through)
    return None


@simplifications
def select(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    _, on_true, on_false = instruction.operands
    return recorder.value(on_true) if on_true is on_false else None


@simplifications
def pad(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    return _if_same_shape(recorder, instruction, instruction.operands[0]) if _pads_nothing(instruction) else None


def _pads_nothing(pad: Instruction) -> bool:
    padding = pad.attributes.padding
    return all((d.low, d.high, d.interior) == (0, 0, 0) for d in padding)


@simplifications
def slice(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    return (
        _if_same_shape(recorder, instruction, instruction.operands[0])
        if set(instruction.attributes.strides) <= {1}
        else None
    )


@simplifications
def concatenate(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    return recorder.value(instruction.operands[0]) if len(instruction.operands) == 1 else None


@simplifications
def real(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[0]) if operand.opcode == "complex" else None


@simplifications
def imag(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[1]) if operand.opcode == "complex" else None


@simplifications
def get_tuple_element(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    (operand,) = instruction.operands
    return recorder.value(operand.operands[instruction.attributes.index]) if operand.opcode == "tuple" else None


@simplifications
def reduce(recorder: DerivativeRecorder, instruction: Instruction) -> Value | None:
    if len(instruction.operands) != 2 or reducer_of(instruction.attributes.to_apply) != "add":
        return None
    operand, init = instruction.operands
    if number_in(init) != 0 or operand.shape.is_dynamic:  # type: ignore[union-attr]
        return None
    reduced = instruction.attributes.dimensions
    if all(operand.shape.dims[d] == 1 for d in reduced):  # type: ignore[union-attr]
        return ops.reshape(recorder.value(operand), new_sizes=instruction.shape.dims)  # type: ignore[union-attr]
    if operand.opcode == "broadcast":
        return _sum_of_broadcast(recorder, instruction, operand, reduced)
    return None


def _sum_of_broadcast(
    recorder: DerivativeRecorder, instruction: Instruction, operand: Instruction, reduced: tuple[int, ...]
) -> Value | None:
    """The sum of a broadcast array as a product with the number of repetitions."""
    shape: Any = operand.shape
    dimensions = operand.attributes.dimensions
    repeated = [d for d in reduced if d not in dimensions]
    if not repeated:
        return None
    count = math.prod([shape.dims[d] for d in repeated])
    inner = recorder.value(operand.operands[0])
    left = tuple([n for n, d in enumerate(dimensions) if d in reduced])
    if left:
        zero = recorder.value(instruction.operands[1])
        inner = ops.reduce((inner,), (zero,), to_apply=instruction.attributes.to_apply, dimensions=left)
    kept = [d for d in range(len(shape.dims)) if d not in reduced]
    places = tuple([kept.index(d) for d in dimensions if d not in reduced])
    scaled = ops.multiply(inner, _full(recorder, count, inner.instruction))
    return ops.broadcast(scaled, sizes=tuple([shape.dims[d] for d in kept]), dimensions=places)


# ----------------------------------------------------------------------------
# The builder of a derivative


_LARGEST_LITERAL = 64  # bytes; larger constants are not compared
_set = object.__setattr__


@define(eq=False)
class Augmented:
    """The replacement of an instruction by one with more results, what it needs before, and the old value after it."""

    before: list[Instruction]
    replacement: Instruction
    after: list[Instruction]
    stand_in: Instruction
    keeps_indices: bool


@define(eq=False, repr=False)
class DerivativeRecorder(Builder):
    """Records derivatives after the instructions of a computation, which it adopts unchanged."""

    mode: str = field(default="vjp", init=False)
    augmented: dict[Instruction, Augmented] = field(factory=dict, init=False)
    current: dict[Instruction, Instruction] = field(factory=dict, init=False)
    _known: dict[Any, Instruction] = field(factory=dict, init=False)
    _notes: dict[Instruction, Any] = field(factory=dict, init=False)

    def adopt(self, instructions: Iterable[Instruction]) -> None:
        """Take over instructions of another computation unchanged."""
        taken = self._names.taken
        for instruction in instructions:
            self._instructions.append(instruction)
            taken.setdefault(instruction.name, 0)
            key = _sharing_key(instruction)
            if key is not None:
                self._known.setdefault(key, instruction)

    def reserve_names_of(self, computation: Computation) -> None:
        """Avoid the names of a computation and its instructions."""
        self._computation_names.taken.setdefault(computation.name, 0)
        for instruction in computation.instructions:
            self._names.taken.setdefault(instruction.name, 0)

    def fresh(self, name: str) -> str:
        """The name or its first free variant, without taking it; `record` takes it."""
        free = self._names.unique(name)
        del self._names.taken[free]
        return free

    def unique(self, name: str) -> str:
        """The name or its first free variant, which is taken now."""
        return self._names.unique(name)

    def inner(self, name: str, origin: Instruction | None) -> DerivativeRecorder:
        """A recorder for a called computation, all of which is the derivative of an instruction."""
        recorder = DerivativeRecorder(self._computation_names.unique(name), self)
        recorder.origin, recorder.mode = origin, self.mode
        return recorder

    def build_computation(self, root: Value) -> Computation:
        """The recorded computation, without what its root does not need."""
        return prune(self.name, self._instructions, root.instruction)

    def value(self, instruction: Instruction) -> Value:
        return Value(instruction, self)

    @contextmanager
    def deriving(self, origin: Instruction | None) -> Iterator[None]:
        """What is recorded inside belongs to the derivative of this instruction."""
        before, self.origin = self.origin, origin
        try:
            yield
        finally:
            self.origin = before

    @contextmanager
    def recording_aside(self) -> Iterator[list[Instruction]]:
        """What is recorded inside goes into a separate list, to be placed earlier in the program."""
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
        """Add one instruction, unless a simpler value or an equal instruction exists."""
        value = super().record(schema, operands, segments, attributes, name)
        recorded = self._instructions.pop()
        simpler = simplify(self, recorded)
        if simpler is not None:
            return simpler
        key = _sharing_key(recorded)
        if key is not None and key in self._known:
            return self.value(self._known[key])
        if key is not None:
            self._known[key] = recorded
        if self.origin is not None:
            self._name_after(recorded, self.origin, name)
        self._instructions.append(recorded)
        return value

    def _name_after(self, recorded: Instruction, origin: Instruction, name: str | None) -> None:
        """Name an instruction after the one being derived, and give it the same source line."""
        if name is None:
            _set(recorded, "name", self._names.unique(f"{origin.name}.{self.mode}"))
        _set(recorded, "where", origin.where)
        if origin not in self._notes:
            self._notes[origin] = _metadata_of(origin, self.mode)
        _set(recorded, "annotations", with_marks(self._notes[origin], recorded))

    def append(self, instruction: Instruction) -> Value:
        """Add an instruction unchanged, unless an equal one exists."""
        key = _sharing_key(instruction)
        if key is not None and key in self._known:
            return self.value(self._known[key])
        if key is not None:
            self._known[key] = instruction
        self._instructions.append(instruction)
        return self.value(instruction)

    def record_op(self, opcode: str, operands: list[Value]) -> Value:
        """Record an op without attributes."""
        return self.record(OPS[opcode], tuple(operands), None, {}, None)

    def assemble(self) -> list[Instruction]:
        """All instructions, with augmented ones in place of the originals."""
        instructions: list[Instruction] = []
        for instruction in self._instructions:
            augmented = self.augmented.get(instruction)
            if augmented is None:
                instructions.append(self._rewire(instruction))
            else:
                instructions += map(self._rewire, (*augmented.before, augmented.replacement, *augmented.after))
                self.current[instruction] = self.latest(augmented.stand_in)
        return instructions

    def latest(self, instruction: Instruction) -> Instruction:
        """The current version of an instruction."""
        return self.current.get(instruction, instruction)

    def _rewire(self, instruction: Instruction) -> Instruction:
        """The instruction on the current versions of its operands."""
        if not self.current:
            return instruction
        rewired_instruction = rewired(instruction, self.current)
        if instruction.opcode == "get_tuple_element" and instruction.operands[0] in self.augmented:
            augmented = self.augmented[instruction.operands[0]]
            rewired_instruction = (
                evolve(rewired_instruction, operands=(self.latest(augmented.replacement),))
                if augmented.keeps_indices
                else rewired_instruction
            )
        if rewired_instruction is not instruction:
            self.current[instruction] = rewired_instruction
        return rewired_instruction


def _metadata_of(origin: Instruction, mode: str) -> Any:
    """The metadata of a derivative: the scope of the instruction, then the mode and its name."""
    path = origin.annotations.get("metadata", {}).get("op_name", "")
    title = f"{path}/{mode}({origin.name})" if path else f"{mode}({origin.name})"
    return MappingProxyType({"metadata": MappingProxyType({"op_name": title})})


def _sharing_key(instruction: Instruction) -> Any:
    """A key that instructions which compute the same value share; None if the instruction must not be shared."""
    if instruction.opcode in ("parameter", "custom_call", "after_all") or has_effect(instruction):
        return None
    if instruction.control:
        return None
    attributes = tuple([_hashable(value) for value in instruction.attribute_values().values()])
    return instruction.opcode, instruction.operands, instruction.segments, attributes, marks_of(instruction)


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return (str(value.dtype), value.shape, value.tobytes()) if value.nbytes <= _LARGEST_LITERAL else id(value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


# ----------------------------------------------------------------------------
# Copies of instructions of another computation


class Copies:
    """Copies of instructions in a recorder: a value for each, or a tree of values for a tuple."""

    def __init__(self, builder: DerivativeRecorder, values: dict[Instruction, Any]) -> None:
        self.builder, self.values = builder, values

    def copy_all(self, instructions: Iterable[Instruction], rename: Callable[[str], str] | None = None) -> None:
        """Copy instructions, except those that have a value already."""
        for instruction in instructions:
            if instruction in self.values:
                continue
            whole = self.values.get(instruction.operands[0]) if instruction.opcode == "get_tuple_element" else None
            if isinstance(whole, tuple):
                self.values[instruction] = whole[instruction.attributes.index]
            else:
                self.values[instruction] = self._copy(instruction, rename)

    def _copy(self, instruction: Instruction, rename: Callable[[str], str] | None) -> Value:
        operands = tuple([self.value(operand).instruction for operand in instruction.operands])
        control = tuple([self.value(before).instruction for before in instruction.control if before in self.values])
        if instruction.opcode == "get_tuple_element" and operands[0].opcode == "tuple":
            return self.builder.value(operands[0].operands[instruction.attributes.index])
        name = rename(instruction.name) if rename is not None else instruction.name
        copy = evolve(instruction, operands=operands, control=control, name=name)
        return self.builder.append(copy)

    def value(self, instruction: Instruction) -> Value:
        """The value of an instruction; a tree is packed into a tuple."""
        value = self.values[instruction]
        if isinstance(value, tuple):
            value = self.values[instruction] = pack(self.builder, value)
        return value  # type: ignore[no-any-return]


def pack(builder: DerivativeRecorder, tree: Any) -> Value:
    """A tree of values packed into one value."""
    if isinstance(tree, tuple | list):
        return ops.tuple_(tuple([pack(builder, part) for part in tree]), builder=builder)
    assert isinstance(tree, Value)
    return tree
