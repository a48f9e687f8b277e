"""The instruction of the other program from which on no value is one of the first program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from attrs import define, field

from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import opcodes
from xbuild.properties.effects import LOOPS, MEETS, STRUCTURE

_FOLLOWED = MEETS | {"copy"}
_GIVEN = (STRUCTURE - {"constant"}) | opcodes(lambda op: op.calls in ("once", "branch", "loop"))
"""Ops that give values of others, or of the computations that they call."""

Users = Mapping[Instruction, list[Instruction]]


def users_of(computation: Computation) -> Users:
    """The instructions of a computation that take each as an operand."""
    found: dict[Instruction, list[Instruction]] = defaultdict(list)
    for instruction in computation.instructions:
        for operand in dict.fromkeys(instruction.operands):
            found[operand].append(instruction)
    return found


def needed(entry: Computation) -> set[Instruction]:
    """The instructions on which the results depend, in all computations that are called."""
    found: set[Instruction] = set()
    left = [entry.root]
    while left:
        instruction = left.pop()
        if instruction not in found:
            found.add(instruction)
            left += [*instruction.operands, *(each.root for each in instruction.called)]
    return found


@define(eq=False)
class Suspects:
    """Which instructions of a program lead to values that are known to be right.

    `right` are the instructions whose values the other program has.
    """

    right: set[Instruction]
    leading: set[Instruction] = field(factory=set)
    users: dict[Instruction, list[Instruction]] = field(factory=dict)

    def enter(self, computation: Computation, leads: bool = False) -> None:
        """Mark what leads to a right value; `leads`: whether the result of the computation does."""
        users = users_of(computation)
        self.users.update(users)
        for instruction in reversed(computation.instructions):
            after = users.get(instruction, ())
            is_root = leads and instruction is computation.root
            if is_root or instruction in self.right or any(each in self.leading for each in after):
                self.leading.add(instruction)
            for called in instruction.called:
                # of the many values that a loop carries some may be right, which says nothing of others
                self.enter(called, instruction in self.leading and instruction.opcode not in LOOPS)

    def first(self, order: Iterable[Instruction], among: set[Instruction]) -> Instruction | None:
        """The first instruction in an order that leads nowhere, of operands that do; after it, a collective of it."""
        for instruction in order:
            if instruction in among and self._is_suspect(instruction):
                return self._last(instruction, among)
        return None

    def _is_suspect(self, instruction: Instruction) -> bool:
        if instruction in self.leading or instruction.opcode in _GIVEN:
            return False
        return all(each in self.leading or each.opcode == "parameter" for each in instruction.operands)

    def _last(self, instruction: Instruction, among: set[Instruction]) -> Instruction:
        after = [each for each in self.users.get(instruction, ()) if each in among]
        if len(after) == 1 and after[0].opcode in _FOLLOWED and after[0] not in self.leading:
            return self._last(after[0], among)
        return instruction
