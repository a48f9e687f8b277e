"""The structure of a program, without its names: a canonical order of instructions, and a digest of the whole.

Two programs have one structure where they compute the same in the same way: opcodes, shapes, operands, attributes,
called computations, control edges, counts of devices, sharding and what else is told to a compiler. Names, metadata,
layouts, the spelling of literals and groups, the order of independent instructions and the numbers of channels (if they
are renumbered alike everywhere) do not count. Instructions with effects keep their order, and so does a schedule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import Factory, define

from shape_inference import AnyShape, Shape, TupleShape

from ..core.graph import Computation, Instruction, Module
from .canonical_order import Digest, canonical_order, digest
from .effects import has_effect
from .order import ordered

UNSEEN = frozenset({"metadata", "literal", "replica_groups", "origin", "statistics"})
UNSEEN_IN_HEADER = frozenset({"stack_tables", "entry_computation_layout", "origin_recovery_table"})
_CHANNELS = "channel_id"


@define(eq=False)
class Structure:
    """The digests of a module's computations, each found once."""

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
            self._labels[computation] = {each: self.label(each) for each in computation.instructions}
        return self._labels[computation]

    def label(self, instruction: Instruction) -> Digest:
        """An instruction without its operands: opcode, shape, segments, attributes, annotations that count."""
        notes = instruction.annotations
        key = instruction.opcode, id(instruction.shape), instruction.segments, id(instruction.attributes)
        if not notes and key in self._plain:
            return self._plain[key][0]
        kept = sorted((key, str(value)) for key, value in notes.items() if key not in UNSEEN) if notes else []
        values = [self.value(key, value) for key, value in instruction.attribute_values().items()]
        found = digest(instruction.opcode, self.shape(instruction.shape), instruction.segments, kept, *values)
        if not notes:  # kept, since the key has ids of these objects
            self._plain[key] = found, (instruction.shape, instruction.attributes)
        return found

    def value(self, key: str, value: Any) -> Any:
        """An attribute with a stable text: a computation by its digest, a channel by when it first comes."""
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
        """The text of a shape without layout; kept, since shapes are shared."""
        if id(shape) not in self._shapes:
            self._shapes[id(shape)] = shape, repr(shape.plain())
        return self._shapes[id(shape)][1]


def structure_of(program: Module | Computation) -> Structure:
    """The structure of a program, whose channels count from 1 in the order in which they come."""
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
    """32 hexadecimal digits that two programs share exactly where they have one structure, on every machine.

    Names, metadata, layouts, the order of independent instructions and the numbers of channels do not count; opcodes,
    shapes, operands, attributes, what is called, control edges, sharding, the order of effects and schedules do.

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
    uncalled = sorted(structure.of(each) for each in {*program.computations} - {*program.entry.reachable()})
    counts = program.num_replicas, program.num_partitions, program.is_scheduled
    return digest(structure.of(program.entry), *uncalled, *counts, notes).hex()


def same_structure(a: Module | Computation, b: Module | Computation) -> bool:
    """Whether two programs are the same but for names, metadata, layouts and the order of independent instructions.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) ROOT y = tanh(x) }")
    >>> with xb.edit(module) as editor:
    ...     editor.rename("y", "bounded")
    >>> xb.same_structure(module, editor.result)
    True
    """
    return a is b or fingerprint(a) == fingerprint(b)
