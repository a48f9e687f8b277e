"""Sums over devices made later and together: after what makes their operand smaller, and once for several addends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import evolve

from ..core.graph import Computation, Instruction
from .rules.linearity import is_sum, is_zero
from .rules.marks import mark_of
from .writing import with_called

_PASSED = frozenset({"reshape", "transpose", "negate"})
"""What a sum goes past without a change of what is sent; a reduction makes that less."""


def gathered_sums(computation: Computation) -> Computation:
    """The program with each psum that one reduction, or one addition of two such sums, takes put after that.

    A sum of devices commutes with a sum of elements, and the sum of two sums is one. Loops and branches alike.
    """
    done: dict[Computation, Computation] = {}
    for each in computation.reachable():
        done[each] = _Pass(each, done).computation()
    return done[computation]


class _Pass:
    """One computation under way: what stands for each of its instructions, and who takes each."""

    def __init__(self, computation: Computation, done: Mapping[Computation, Computation]) -> None:
        self.before, self.done = computation, done
        self.users = Counter(operand for each in computation.instructions for operand in each.operands)
        self.users[computation.root] += 1
        self.controlling = {before for each in computation.instructions for before in each.control}
        self.new: dict[Instruction, Instruction] = {}
        self.free: set[Instruction] = set()
        self.kept: dict[Instruction, None] = {}

    def computation(self) -> Computation:
        for each in self.before.instructions:
            renewed = self._renewed(each)
            sum_after = self._sunk(each, renewed)
            self.new[each] = sum_after if sum_after is not None else self._add(renewed)
            if self.users[each] == 1 and each not in self.controlling and _is_sum_of_devices(self.new[each]):
                self.free.add(self.new[each])
        if all(old is now for old, now in self.new.items()):
            return self.before
        return Computation(self.before.name, self.kept, self.new[self.before.root])

    def _add(self, instruction: Instruction) -> Instruction:
        self.kept[instruction] = None
        return instruction

    def _renewed(self, each: Instruction) -> Instruction:
        operands = tuple(self.new[operand] for operand in each.operands)
        control = tuple(self.new[before] for before in each.control)
        called = [self.done[region] for region in each.called]
        same = (*operands, *control, *called) == (*each.operands, *each.control, *each.called)
        attributes = with_called(each, called) if called else each.attributes
        return each if same else evolve(each, operands=operands, control=control, attributes=attributes)

    def _sunk(self, old: Instruction, each: Instruction) -> Instruction | None:
        """The sum over devices of the op on what was summed, in place of the op on sums; None where it stays."""
        sums = [operand for operand in each.operands if operand in self.free]
        if not sums or each.control or old in self.controlling or len({mark_of(s) for s in sums}) > 1:
            return None
        if each.opcode == "add":
            together = len(sums) == 2 and sums[0] is not sums[1]
        else:
            together = each.opcode in _PASSED or _is_plain_reduction(each)
        return self._after(each, sums) if together else None

    def _after(self, each: Instruction, sums: list[Instruction]) -> Instruction:
        for taken in sums:
            del self.kept[taken]
        inside = {taken: taken.operands[0] for taken in sums}
        local = self._add(evolve(each, operands=tuple(inside.get(operand, operand) for operand in each.operands)))
        return self._add(evolve(sums[0], operands=(local,), shape=local.shape))


def _is_sum_of_devices(instruction: Instruction) -> bool:
    mark = mark_of(instruction)
    return mark is not None and mark.op == "psum" and instruction.opcode == "all_reduce" and not instruction.control


def _is_plain_reduction(instruction: Instruction) -> bool:
    """Whether it adds up one operand, from zero."""
    if instruction.opcode != "reduce" or len(instruction.operands) != 2:
        return False
    return is_sum(instruction.called[0]) and is_zero(instruction.operands[1])
