"""The backward slice of predicates, indices and trip counts around communication: the instructions to evaluate.

Slices go through calls, loops and branches and, in tuples, element by element.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction, Module
from ...core.op import opcodes
from ...properties.effects import IDENTITIES, LOOPS, UNITS, collective_in, communicates, steps
from ...properties.order import linear
from ...properties.sites import collectives_of, reached
from ..model.program import Program
from ..model.scans import split_carries
from ..structure.collective_matching import CollectiveIdentities

Part: TypeAlias = int | None  # an element of a tuple; None for all of it

SAME = opcodes(
    lambda op: op.is_identity or (op.half != "none" and op.needs == "nobody" and op.calls == "nothing"),
)
"""Ops that give the value of their first operand, at once or when a pair is complete."""
CALLS = opcodes(lambda op: op.calls in ("once", "wrapped"))
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
    requested: set[Instruction] = field(factory=set, init=False)  # collectives whose results are in other slices
    _wanted: dict[Computation, tuple[Instruction, ...]] = field(factory=dict, init=False)
    _callers: dict[Computation, list[tuple[Instruction, int]]] = field(factory=dict, init=False)
    _decides: dict[Computation, bool] = field(factory=dict, init=False)
    _homes: dict[Instruction, list[Computation]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        decided: list[tuple[Instruction, Part]] = []
        for computation in reached(self.module.entry):
            for parameter in computation.parameters:
                self._homes.setdefault(parameter, []).append(computation)
            for instruction in computation.instructions:
                for number, called in enumerate(instruction.called):
                    self._callers.setdefault(called, []).append((instruction, number))
                if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
                    decided += _deciders(instruction)
        self._need(decided)

    @property
    def collectives(self) -> frozenset[Instruction]:
        """The collectives of the slice, or their starts."""
        return frozenset(i for i in self.parts if collective_in(i) is not None)

    @property
    def depends_on_device(self) -> bool:
        """Whether instructions of the slice, beside collectives, may differ between devices of the program."""
        return any(map(_depends_on_device, self.parts))

    def also(self, collectives: Iterable[Instruction]) -> None:
        """Add the operands of these collectives, whose results are in the slices of other programs."""
        new = {*collectives} - self.requested - self.parts.keys()
        self.requested |= new
        self._need([(each, None) for each in new])

    def _need(self, parts: list[tuple[Instruction, Part]]) -> None:
        while parts:
            instruction, part = parts.pop()
            known = self.parts.setdefault(instruction, set())
            if part not in known and None not in known:
                known.add(part)
                parts += self._sources(instruction, part)
        self._wanted.clear()
        for computation in reached(self.module.entry):  # callees first
            self._decides[computation] = any(map(self._leads, computation.instructions))

    def of(self, computation: Computation) -> tuple[Instruction, ...]:
        """The instructions of a computation to evaluate, in order: the slice, and what leads to decisions."""
        if computation not in self._wanted:
            self._wanted[computation] = tuple(
                i for i in linear(computation) or () if i.opcode != "parameter" and (i in self.parts or self._leads(i))
            )
        return self._wanted[computation]

    def _leads(self, instruction: Instruction) -> bool:
        """Whether an instruction decides about communication, is requested by other programs, or calls such ones."""
        if instruction in self.requested:
            return True
        if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
            return True
        if instruction.opcode not in UNITS and instruction.opcode not in CALLS:
            return False
        return any(self._decides.get(called, False) for called in instruction.called)

    def _sources(self, instruction: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        """The values that an element of a value is computed from."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "parameter":
            yield from self._given(instruction, part)
        elif opcode == "tuple" and part is not None:
            yield operands[part], None
        elif opcode == "get_tuple_element":
            yield operands[0], instruction.attributes.index
        elif opcode in SAME:
            yield operands[0], part if opcode in IDENTITIES else None
        elif opcode in CALLS and collective_in(instruction) is None:
            yield from ((called.root, part) for called in instruction.called)
            if opcode == "async_start":
                yield from ((called.root, None) for called in instruction.called)
        elif opcode in UNITS:
            yield from self._of_unit(instruction, part)
        elif opcode not in NOTHING:
            yield from ((operand, None) for operand in operands)

    def _of_unit(self, unit: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        yield from _deciders(unit)
        if unit.opcode == "while":
            yield unit.operands[0], part
        if unit.opcode == "scan":
            yield from ((operand, None) for operand in split_carries(unit, unit.operands)[1])
            yield from ((called.root, None) for called in unit.called)
            return
        bodies = unit.called if unit.opcode == "conditional" else (_body(unit),)
        yield from ((body.root, part) for body in bodies)

    def _given(self, parameter: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        """The operands of callers that a parameter stands for, and the root of a loop body for its next trip."""
        number = parameter.attributes.number
        for computation in self._homes.get(parameter, ()):
            for caller, region in self._callers.get(computation, ()):
                if caller.opcode == "conditional":
                    yield caller.operands[1 + region], part
                elif caller.opcode == "while":
                    yield caller.operands[0], part
                    yield _body(caller).root, part
                elif caller.opcode == "scan":
                    yield caller.operands[number], part
                    yield computation.root, None
                elif caller.opcode in CALLS:
                    yield caller.operands[number], part


def _body(loop: Instruction) -> Computation:
    *_, body = steps(loop)
    return body.computation


def _deciders(unit: Instruction) -> Iterator[tuple[Instruction, Part]]:
    """The value that decides a unit: the index of a conditional, the condition of a while."""
    if unit.opcode == "conditional":
        yield unit.operands[0], None
    elif unit.opcode in LOOPS:
        condition, *_ = steps(unit)
        if unit.opcode == "while":
            yield condition.computation.root, None


def _depends_on_device(instruction: Instruction) -> bool:
    """Whether an instruction may differ between the devices of one program though its operands are equal."""
    return instruction.opcode in _OF_DEVICE or any(map(_depends_inside, instruction.called))


def _depends_inside(computation: Computation) -> bool:
    return any(map(_depends_on_device, computation.instructions))


def backward_slices(program: Program, identity: CollectiveIdentities) -> Mapping[Module, BackwardSlice]:
    """The slices of all programs; a collective in one slice is in the slices of all programs that take part in it."""
    found = {each.module: BackwardSlice(each.module) for each in program.classes}
    if len(found) == 1:
        return found
    sites = {module: _by_identity(module, identity) for module in found}
    wanted: set[Hashable] = set()
    while True:
        known = {key for module in found for key, each in sites[module].items() if each & found[module].collectives}
        if known <= wanted:
            return found
        wanted |= known
        for module, slice_ in found.items():
            slice_.also(i for key in wanted for i in sites[module].get(key, ()))


def _by_identity(module: Module, identity: CollectiveIdentities) -> dict[Hashable, set[Instruction]]:
    found: dict[Hashable, set[Instruction]] = {}
    for site in collectives_of(module.entry):
        found.setdefault(identity.of(module, site), set()).add(site.instruction)
    return found
