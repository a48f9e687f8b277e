"""What communication hangs on: a backward slice from each predicate and index that decides about it.

Slices go through calls, loops and branches and, in tuples, element by element; what no such decision needs is not
computed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction, Module
from ...properties.effects import LOOPS, collective_in, communicates, steps
from ...properties.order import linear
from ...properties.sites import collectives_of, reached
from ..model.flattening import UNITS
from ..model.program import Program
from ..model.scans import parted
from ..structure.meetings import Identities

Part: TypeAlias = int | None  # an element of a tuple; None for all of it

SAME = frozenset({
    "copy", "opt_barrier", "add_dependency", "domain", "copy_start", "copy_done", "async_update", "async_done",
    "all_gather_done", "all_reduce_done", "collective_permute_done",
})  # fmt: skip
CALLS = frozenset({"call", "fusion", "async_start"})
NOTHING = frozenset({
    "parameter", "send", "recv", "send_done", "recv_done", "infeed", "outfeed", "rng", "rng_bit_generator",
    "rng_get_and_update_state", "custom_call", "after_all",
})  # fmt: skip
_ASKS = frozenset({"replica_id", "partition_id"})


@define(eq=False)
class BackwardSlice:
    """The slice of a program."""

    module: Module
    parts: dict[Instruction, set[Part]] = field(factory=dict, init=False)
    asked: set[Instruction] = field(factory=set, init=False)  # collectives of which others need the result
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
        """The collectives, or their starts, of which the result is needed."""
        return frozenset(i for i in self.parts if collective_in(i) is not None)

    @property
    def asks(self) -> bool:
        """Whether devices that run the program may differ in what is needed, but for collectives."""
        return any(map(_asks, self.parts))

    def also(self, collectives: Iterable[Instruction]) -> None:
        """Need the operands of these collectives, of which other programs need the result."""
        new = {*collectives} - self.asked - self.parts.keys()
        self.asked |= new
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
        """What of a computation is to be gone through, in order: what is needed, and what leads to decisions."""
        if computation not in self._wanted:
            self._wanted[computation] = tuple(
                i for i in linear(computation) or () if i.opcode != "parameter" and (i in self.parts or self._leads(i))
            )
        return self._wanted[computation]

    def _leads(self, instruction: Instruction) -> bool:
        """Whether it decides about communication, is asked for by others, or calls what is such."""
        if instruction in self.asked:
            return True
        if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
            return True
        if instruction.opcode not in UNITS and instruction.opcode not in CALLS:
            return False
        return any(self._decides.get(called, False) for called in instruction.called)

    def _sources(self, instruction: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        """What a part of a value is made of."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "parameter":
            yield from self._given(instruction, part)
        elif opcode == "tuple" and part is not None:
            yield operands[part], None
        elif opcode == "get_tuple_element":
            yield operands[0], instruction.attributes.index
        elif opcode in SAME:
            yield operands[0], part if opcode in ("copy", "opt_barrier", "add_dependency", "domain") else None
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
            yield from ((operand, None) for operand in parted(unit, unit.operands)[1])
            yield from ((called.root, None) for called in unit.called)
            return
        bodies = unit.called if unit.opcode == "conditional" else (_body(unit),)
        yield from ((body.root, part) for body in bodies)

    def _given(self, parameter: Instruction, part: Part) -> Iterator[tuple[Instruction, Part]]:
        """What callers give for a parameter, and what a loop hands on to its next trip."""
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
    """What decides of a unit: an index, or a condition."""
    if unit.opcode == "conditional":
        yield unit.operands[0], None
    elif unit.opcode in LOOPS:
        condition, *_ = steps(unit)
        if unit.opcode == "while":
            yield condition.computation.root, None


def _asks(instruction: Instruction) -> bool:
    """Whether the devices of one program may have different values of it, with the same operands."""
    return instruction.opcode in _ASKS or any(map(_asks_inside, instruction.called))


def _asks_inside(computation: Computation) -> bool:
    return any(map(_asks, computation.instructions))


def needed(program: Program, identity: Identities) -> Mapping[Module, BackwardSlice]:
    """The slices of all programs; of a collective that one needs, all others need their part."""
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


def _by_identity(module: Module, identity: Identities) -> dict[Hashable, set[Instruction]]:
    found: dict[Hashable, set[Instruction]] = {}
    for site in collectives_of(module.entry):
        found.setdefault(identity.of(module, site), set()).add(site.instruction)
    return found
