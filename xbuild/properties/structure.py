"""The structure of a program, without its names: a canonical order of instructions, and a digest.

Sections:

    The canonical order of a computation's instructions, by structure instead of recorded order
    Digests of computations and programs
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define

from shape_inference import AnyShape, Shape, TupleShape

from ..core.graph import Computation, Instruction, Module
from .effects import has_effect
from .order import ordered

# ----------------------------------------------------------------------------
# The canonical order of a computation's instructions, by structure instead of recorded order

Digest: TypeAlias = bytes


def digest(*parts: Any) -> Digest:
    """A digest of parts that have a stable text."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def canonical_order(computation: Computation, labels: Mapping[Instruction, Digest]) -> tuple[Instruction, ...]:
    """Parameters, then each effect, the root and unused code, each instruction after its operands."""
    found: dict[Instruction, None] = dict.fromkeys(computation.parameters)
    if any(
        len(instruction.control) > 1 for instruction in computation.instructions
    ):  # control predecessors have no order
        labels = digest_by_predecessors(computation.instructions, labels, {})
    for effect in filter(has_effect, computation.instructions):
        _visit(effect, found, labels)
    _visit(computation.root, found, labels)
    rest = [instruction for instruction in computation.instructions if instruction not in found]
    if rest:
        rank = _digest_by_users(rest, labels, {each: n for n, each in enumerate(found)})
        used = {before for each in rest for before in (*each.operands, *each.control)}
        for each in sorted((each for each in rest if each not in used), key=rank.__getitem__):
            _visit(each, found, rank)
    return tuple(found)


def _visit(instruction: Instruction, found: dict[Instruction, None], rank: Mapping[Instruction, Digest]) -> None:
    """Append an instruction after its operands in their order and its control predecessors by their rank."""
    stack = [(instruction, False)]
    while stack:
        each, is_done = stack.pop()
        if each in found:
            continue
        if is_done:
            found[each] = None
            continue
        stack.append((each, True))
        control = sorted(each.control, key=lambda c: rank.get(c, b"")) if len(each.control) > 1 else each.control
        stack += [(before, False) for before in (*control, *reversed(each.operands)) if before not in found]


def _digest_by_users(
    rest: Sequence[Instruction], labels: Mapping[Instruction, Digest], number: Mapping[Instruction, int]
) -> dict[Instruction, Digest]:
    """Digests of unused instructions by their operands and users, so that equal digests mean equal places."""
    members = set(rest)
    digests = digest_by_predecessors(rest, labels, number)
    users: dict[Instruction, list[Digest]] = {}
    used: dict[Instruction, Digest] = {}
    for each in reversed(rest):
        used[each] = digest(digests[each], *sorted(users.get(each, ())))
        for place, before in enumerate(each.operands):
            if before in members:
                users.setdefault(before, []).append(digest(place, used[each]))
    return digest_by_predecessors(rest, used, number)


def digest_by_predecessors(
    rest: Sequence[Instruction], labels: Mapping[Instruction, Digest], number: Mapping[Instruction, int]
) -> dict[Instruction, Digest]:
    found: dict[Instruction, Digest] = {}
    for each in rest:
        operands: list[Any] = [found.get(before, number.get(before)) for before in each.operands]
        control: list[str] = sorted(str(found.get(before, number.get(before))) for before in each.control)
        found[each] = digest(labels[each], operands, control)
    return found


# ----------------------------------------------------------------------------
# Digests of computations and programs
#
# Two programs have one structure if they compute the same in the same way: opcodes, shapes, operands, attributes,
# called computations, control edges, device counts, sharding and other directives for a compiler. Names, metadata,
# layouts, the spelling of literals and groups, whether an attribute states its default or is left out, channel
# numbers (if they are renumbered consistently) and the order of independent instructions do not count. Instructions
# with effects keep their order, and so does a schedule.

UNSEEN = frozenset({"metadata", "literal", "replica_groups", "origin", "statistics"})
UNSEEN_IN_HEADER = frozenset({
    "stack_tables", "entry_computation_layout", "origin_recovery_table", "inferred_counts",
    "allow_comments",
})  # fmt: skip
_CHANNELS = "channel_id"


def _without_default_type(instruction: Instruction) -> dict[str, Any]:
    """The comparison type of an element type is its default order, or for floats also the total order."""
    return {} if instruction.attributes.type == "TOTALORDER" else {"type": None}


def _without_unit_strides(instruction: Instruction) -> dict[str, Any]:
    return {"strides": ()} if set(instruction.attributes.strides) <= {1} else {}


def _without_default_precision(instruction: Instruction) -> dict[str, Any]:
    return {"operand_precision": ()} if set(instruction.attributes.operand_precision) <= {"default"} else {}


_ONE_SPELLING: Mapping[str, Callable[[Instruction], dict[str, Any]]] = {
    "compare": _without_default_type,
    "slice": _without_unit_strides,
    **dict.fromkeys(("convolution", "custom_call", "dot", "ragged_dot", "scaled_dot"), _without_default_precision),
}
"""For ops whose attributes can state a default, the attributes as if they were left out."""


def meant_values(instruction: Instruction) -> dict[str, Any]:
    """The attributes of an instruction; those that state a default are as if they were left out.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.s32[4])
    >>> meant_values(xb.compare(x, x, direction="LT", type="SIGNED").instruction)
    {'direction': 'LT', 'type': None}
    """
    values = instruction.attribute_values()
    meant = _ONE_SPELLING.get(instruction.opcode)
    return {**values, **meant(instruction)} if meant else values


@define(eq=False)
class Structure:
    """The digests of a module's computations, each computed once."""

    channels: Mapping[int, int]
    in_order: bool = False
    _known: dict[Computation, tuple[Digest, tuple[Instruction, ...]]] = Factory(dict)
    _labels: dict[Computation, dict[Instruction, Digest]] = Factory(dict)
    _shapes: dict[int, tuple[AnyShape, str]] = Factory(dict)
    _plain: dict[Any, tuple[Digest, Any]] = Factory(dict)

    def of(self, computation: Computation) -> Digest:
        """The digest of a computation and of all that it calls."""
        return self._facts(computation)[0]

    def order(self, computation: Computation) -> tuple[Instruction, ...]:
        """Its instructions in an order that follows from structure."""
        return self._facts(computation)[1]

    def _facts(self, computation: Computation) -> tuple[Digest, tuple[Instruction, ...]]:
        if computation not in self._known:
            for each in computation.reachable(self._known):
                self._known[each] = self._digested(each)
        return self._known[computation]

    def _digested(self, computation: Computation) -> tuple[Digest, tuple[Instruction, ...]]:
        labels = self.labels(computation)
        instructions = ordered(computation)
        order = instructions if self.in_order else canonical_order(computation, labels)
        number = {each: n for n, each in enumerate(order)}
        effects = [number[each] for each in instructions if has_effect(each)]
        rows = []
        for each in order:
            control = sorted(number[before] for before in {*each.control} if before in number)
            rows.append((labels[each], tuple(map(number.get, each.operands)), control))
        return digest(number.get(computation.root), effects, *rows), order

    def labels(self, computation: Computation) -> dict[Instruction, Digest]:
        """The label of each of its instructions."""
        if computation not in self._labels:
            self._labels[computation] = {
                instruction: self.label(instruction) for instruction in computation.instructions
            }
        return self._labels[computation]

    def label(self, instruction: Instruction) -> Digest:
        """An instruction without its operands: opcode, shape, segments, attributes, annotations that count."""
        notes = instruction.annotations
        key = instruction.opcode, id(instruction.shape), instruction.segments, id(instruction.attributes)
        if not notes and key in self._plain:
            return self._plain[key][0]
        annotations = sorted((key, str(value)) for key, value in notes.items() if key not in UNSEEN) if notes else []
        values = [self.value(key, value) for key, value in meant_values(instruction).items()]
        found = digest(instruction.opcode, self.shape(instruction.shape), instruction.segments, annotations, *values)
        if not notes:  # kept, since the key has ids of these objects
            self._plain[key] = found, (instruction.shape, instruction.attributes)
        return found

    def value(self, key: str, value: Any) -> Any:
        """An attribute with a stable text: a computation by its digest, a channel by its first occurrence."""
        if isinstance(value, Computation):
            return self.of(value)
        if isinstance(value, np.ndarray):
            return digest(str(value.dtype), value.shape, hashlib.blake2b(value.tobytes()).digest())
        if isinstance(value, tuple) and any(isinstance(each, Computation) for each in value):
            return digest(*map(self.of, value))
        if key == _CHANNELS and value is not None:
            return self.channels.get(value, value)
        return value.plain() if isinstance(value, Shape | TupleShape) else value

    def shape(self, shape: AnyShape) -> str:
        """The text of a shape without layout; cached, since shapes are shared."""
        if id(shape) not in self._shapes:
            self._shapes[id(shape)] = shape, repr(shape.plain())
        return self._shapes[id(shape)][1]


def structure_of(program: Module | Computation) -> Structure:
    """The structure of a program, with channels numbered from 1 in order of occurrence."""
    entry = program.entry if isinstance(program, Module) else program
    channels: dict[int, int] = {}
    for computation in entry.reachable():
        for instruction in computation.instructions:
            channel = getattr(instruction.attributes, _CHANNELS, None)
            if channel is not None:
                channels.setdefault(channel, len(channels) + 1)
    return Structure(channels, isinstance(program, Module) and program.is_scheduled)


def structure_without_channels(entry: Computation) -> Structure:
    """The structure of a computation in which all channels count as one, so that layers have the same labels."""
    return Structure(dict.fromkeys(structure_of(entry).channels, 0))


def fingerprint(program: Module | Computation) -> str:
    """Return 32 hexadecimal digits that are equal for two programs if and only if the programs have the same structure.

    The digits are the same on every machine. Names, metadata, layouts, channel numbers and the order of
    independent instructions do not affect them. Opcodes, shapes, operands, attributes, called computations, control
    edges, sharding, schedules and the order of effects affect the digits.

    >>> import xbuild as xb
    >>> one = xb.parse_hlo("ENTRY e { x = f32[2] parameter(0) a = tanh(x) b = negate(x) ROOT c = add(a, b) }")
    >>> two = xb.parse_hlo("ENTRY m { y = f32[2] parameter(0) v = negate(y) u = tanh(y) ROOT w = add(u, v) }")
    >>> xb.fingerprint(one) == xb.fingerprint(two)
    True
    """
    structure = structure_of(program)
    if isinstance(program, Computation):
        return structure.of(program).hex()
    notes = sorted((key, str(value)) for key, value in program.annotations.items() if key not in UNSEEN_IN_HEADER)
    uncalled = sorted(
        structure.of(computation) for computation in {*program.computations} - {*program.entry.reachable()}
    )
    counts = program.num_replicas, program.num_partitions, program.is_scheduled
    return digest(structure.of(program.entry), *uncalled, *counts, notes).hex()


def same_structure(a: Module | Computation, b: Module | Computation) -> bool:
    """Return whether two programs are equal, ignoring names, metadata, layouts and the order of independent
    instructions.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) ROOT y = tanh(x) }")
    >>> with xb.edit(module) as editor:
    ...     editor.rename("y", "bounded")
    >>> xb.same_structure(module, editor.result)
    True
    """
    return a is b or fingerprint(a) == fingerprint(b)
