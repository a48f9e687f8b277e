"""The backward slice of predicates, indices and trip counts around communication: the instructions to evaluate.

Slices go through calls, loops and branches and, in tuples, element by element.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field

from shape_inference.trees import Path

from ...core.graph import Computation, Instruction, Module
from ...core.memos import remembered
from ...core.op import opcodes
from ...properties.effects import IDENTITIES, LOOPS, MEETS, UNITS, collective_in, communicates
from ...properties.order import linear
from ...properties.sites import collectives_of, reached
from ...properties.sources import CALLS, Callers, Place, deciders, operands_behind, results_behind
from ..model.program import GridProgram
from ..structure.collective_matching import CollectiveIdentities

Part: TypeAlias = int | None  # an element of a tuple; None for all of it

SAME = opcodes(
    lambda op: op.is_identity or (op.half != "none" and op.needs == "nobody" and op.calls == "nothing"),
)
"""Ops that return the value of their first operand, at once or when a pair is complete."""
NOTHING = {"after_all"} | opcodes(
    lambda op: op.depends_on not in ("operands", "device") or op.needs in ("peer", "host"),
)
"""Ops whose value is not computed before a run, whatever the operands."""
_OF_DEVICE = opcodes(lambda op: op.depends_on == "device")


@define(eq=False)
class BackwardSlice:
    """The backward slice of a program, by instruction and element of tuples."""

    module: Module
    parts: dict[Instruction, set[Part]] = field(factory=dict, init=False)
    collectives: set[Instruction] = field(factory=set, init=False)  # of the slice, or their starts
    requested: set[Instruction] = field(factory=set, init=False)  # collectives whose results are in other slices
    _wanted: dict[Computation, tuple[Instruction, ...]] = field(factory=dict, init=False)
    _callers: Callers = field(factory=Callers, init=False)
    _decides: dict[Computation, bool] = field(factory=dict, init=False)
    _nested: dict[Computation, bool] = field(factory=dict, init=False)
    _has_collective: dict[Computation, bool] = field(factory=dict, init=False)
    _has_loop_of_collectives: dict[Computation, bool] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        computations = reached(self.module.entry)
        self._callers.enter(computations)
        units = (i for computation in computations for i in computation.calls if i.opcode in UNITS)
        communicating = [unit for unit in units if any(map(communicates, unit.called))]
        self._add([(value, None) for unit in communicating for value, _ in deciders(unit)])

    @property
    def depends_on_device(self) -> bool:
        """Whether instructions of the slice, other than collectives, may differ between devices of the program."""
        return any(map(_depends_on_device, self.parts))

    def add_collectives(self, collectives: Iterable[Instruction]) -> None:
        """Add the operands of these collectives, whose results are in the slices of other programs."""
        new = {*collectives} - self.requested - self.parts.keys()
        self.requested |= new
        self._add([(collective, None) for collective in new])

    def _add(self, parts: list[tuple[Instruction, Part]]) -> None:
        while parts:
            instruction, part = parts.pop()
            if instruction not in self.parts and collective_in(instruction) is not None:
                self.collectives.add(instruction)
            known = self.parts.setdefault(instruction, set())
            if part not in known and None not in known:
                known.add(part)
                parts += self._sources(instruction, part)
        for cache in (self._wanted, self._nested, self._has_collective, self._has_loop_of_collectives):
            cache.clear()
        for computation in reached(self.module.entry):  # callees first
            self._decides[computation] = any(map(self._leads_to_decision, computation.instructions))

    def of(self, computation: Computation) -> tuple[Instruction, ...]:
        """The instructions of a computation to evaluate, in order: the slice, and those that lead to decisions."""
        if computation not in self._wanted:
            self._wanted[computation] = tuple(
                i
                for i in linear(computation) or ()
                if i.opcode != "parameter" and (i in self.parts or self._leads_to_decision(i))
            )
        return self._wanted[computation]

    def is_nested(self, computation: Computation) -> bool:
        """Whether the instructions to evaluate call computations."""
        if computation not in self._nested:
            self._nested[computation] = any(i.opcode in UNITS or i.opcode in CALLS for i in self.of(computation))
        return self._nested[computation]

    def has_collective(self, computation: Computation) -> bool:
        """Whether a collective is among the instructions to evaluate, in the computation or in what it calls."""
        if computation not in self._has_collective:
            wanted = self.of(computation)
            self._has_collective[computation] = any(
                i.opcode in MEETS or collective_in(i) is not None for i in wanted
            ) or any(
                self.has_collective(called)
                for i in wanted
                if i.opcode in UNITS or i.opcode in CALLS
                for called in i.called
            )
        return self._has_collective[computation]

    def has_loop_of_collectives(self, computation: Computation) -> bool:
        """Whether a loop with collectives is among the instructions to evaluate, in the computation or in its calls."""
        if computation not in self._has_loop_of_collectives:
            units = [i for i in self.of(computation) if i.opcode in UNITS or i.opcode in CALLS]
            self._has_loop_of_collectives[computation] = any(
                self.has_loop_of_collectives(called) or (i.opcode in LOOPS and self.has_collective(called))
                for i in units
                for called in i.called
            )
        return self._has_loop_of_collectives[computation]

    def _leads_to_decision(self, instruction: Instruction) -> bool:
        """Whether an instruction decides about communication, is requested by other programs, or calls one that is."""
        if instruction in self.requested:
            return True
        if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
            return True
        if instruction.opcode not in UNITS and instruction.opcode not in CALLS:
            return False
        return any(self._decides.get(called, False) for called in instruction.called)

    def _sources(self, instruction: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        """The values that an element of a value is computed from; of nested tuples the outermost element."""
        for value, path in self._behind(instruction, () if part is None else (part,)):
            yield value, path[0] if path else None

    def _behind(self, instruction: Instruction, path: Path) -> Iterator[Place]:
        opcode = instruction.opcode
        if opcode == "parameter":
            yield from self._callers.given(instruction, path)
        elif opcode in SAME and opcode not in IDENTITIES:
            yield instruction.operands[0], ()
        elif opcode in CALLS and collective_in(instruction) is None:
            yield from results_behind(instruction, path)
            if opcode == "async_start":
                yield from results_behind(instruction, ())
        elif opcode in UNITS:
            yield from deciders(instruction)
            yield from results_behind(instruction, () if opcode == "scan" else path)
        elif opcode not in NOTHING:
            yield from operands_behind(instruction, path)


def _depends_on_device(instruction: Instruction) -> bool:
    """Whether an instruction may differ between the devices of one program although its operands are equal."""
    return instruction.opcode in _OF_DEVICE or any(map(_depends_inside, instruction.called))


@remembered
def _depends_inside(computation: Computation) -> bool:
    return any(map(_depends_on_device, computation.instructions))


def backward_slices(program: GridProgram, identity: CollectiveIdentities) -> Mapping[Module, BackwardSlice]:
    """The slices of all programs; a collective in one slice is in the slices of all programs that take part in it."""
    slices = {device_class.module: BackwardSlice(device_class.module) for device_class in program.classes}
    if len(slices) == 1:
        return slices
    starts = {module: _starts_by_identity(module, identity) for module in slices}
    requested: set[Hashable] = set()
    while True:
        keys = {key for module in slices for key, some in starts[module].items() if some & slices[module].collectives}
        if keys <= requested:
            return slices
        requested |= keys
        for module, slice_ in slices.items():
            slice_.add_collectives(start for key in requested for start in starts[module].get(key, ()))


def _starts_by_identity(module: Module, identity: CollectiveIdentities) -> dict[Hashable, set[Instruction]]:
    starts: dict[Hashable, set[Instruction]] = {}
    for site in collectives_of(module.entry):
        starts.setdefault(identity.of(module, site), set()).add(site.instruction)
    return starts
