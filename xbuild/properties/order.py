"""The order of a computation's instructions: the recorded order, mended where an operand stands after its user."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from ..core.diagnostics import refusal
from ..core.graph import Computation, Instruction
from ..core.memos import remembered


@remembered
def linear(computation: Computation) -> tuple[Instruction, ...] | None:
    """The recorded order, mended where an operand stands after its user; None where no order is possible."""
    if _is_linear(computation):
        return computation.instructions
    place = {instruction: n for n, instruction in enumerate(computation.instructions)}
    users, missing = predecessors(computation, place)
    ready = [n for n, count in enumerate(missing) if not count]
    heapify(ready)
    found = []
    while ready:
        found.append(heappop(ready))
        for user in users[found[-1]]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, user)
    return tuple(computation.instructions[n] for n in found) if len(found) == len(missing) else None


def _is_linear(computation: Computation) -> bool:
    """Whether each instruction stands after its operands and control predecessors."""
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        if not seen.issuperset(instruction.operands) or not seen.issuperset(instruction.control):
            return False
        seen.add(instruction)
    return True


def predecessors(computation: Computation, place: Mapping[Instruction, int]) -> tuple[list[list[int]], list[int]]:
    """The users of each instruction by number, and how many operands and control predecessors each instruction has."""
    users: list[list[int]] = [[] for _ in computation.instructions]
    missing = [0] * len(users)
    for number, instruction in enumerate(computation.instructions):
        for before in {*instruction.operands, *instruction.control} & place.keys():
            users[place[before]].append(number)
            missing[number] += 1
    return users, missing


def ordered(computation: Computation) -> tuple[Instruction, ...]:
    """The instructions in their order, mended where an operand stands after its user; refused where there is none."""
    found = linear(computation)
    if found is None:
        raise refusal("cycle", f"the instructions of {computation.name} need each other in a cycle")
    return found
