"""The order of a computation's instructions, and which of them use and need which.

Sections:

    The recorded order, fixed where an operand follows its user
    Users of a value, and what a value, a result or an effect needs
    Calls of `control_dep`, with which JAX states that one value is computed after another, as control predecessors
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter

from shape_inference import TupleShape

from ..core.diagnostics import refusal
from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from .effects import has_effect

# ----------------------------------------------------------------------------
# The recorded order, fixed where an operand follows its user


@remembered
def linear(computation: Computation) -> tuple[Instruction, ...] | None:
    """The recorded order, fixed where an operand follows its user; None if no order is possible."""
    if _is_linear(computation):
        return computation.instructions
    place = {instruction: n for n, instruction in enumerate(computation.instructions)}
    users, missing = predecessors(computation, place)
    ready = [n for n, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for user in users[order[-1]]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, user)
    return tuple(computation.instructions[n] for n in order) if len(order) == len(missing) else None


def _is_linear(computation: Computation) -> bool:
    """Whether each instruction follows its operands and control predecessors."""
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        if not seen.issuperset(instruction.operands):
            return False
        if instruction.control and not seen.issuperset(instruction.control):
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
    """The instructions in recorded order, fixed where an operand follows its user; refused if no order is possible."""
    order = linear(computation)
    if order is None:
        raise refusal("cycle", f"the instructions of {computation.name} depend on each other in a cycle")
    return order


# ----------------------------------------------------------------------------
# Users of a value, and what a value, a result or an effect needs

Before = Callable[[Instruction], Iterable[Instruction]]

operands_of: Before = attrgetter("operands")
"""The operands of an instruction, without its control predecessors."""


def users_of(computation: Computation) -> Mapping[Instruction, Sequence[Instruction]]:
    """For each instruction of a computation those that use its value, each once, in recorded order.

    >>> import xbuild as xb
    >>> square = xb.computation(xb.f32[2])(lambda x: x * x)
    >>> [(each.name, [user.name for user in users]) for each, users in users_of(square).items()]
    [('parameter.1', ['multiply.2']), ('multiply.2', [])]
    """
    found: dict[Instruction, list[Instruction]] = {instruction: [] for instruction in computation.instructions}
    for user in computation.instructions:
        for operand in dict.fromkeys(user.operands):
            found.setdefault(operand, []).append(user)
    return found


def predecessors_of(instruction: Instruction) -> tuple[Instruction, ...]:
    """The operands and the control predecessors of an instruction."""
    return instruction.operands + instruction.control


def needed_by(instructions: Iterable[Instruction], before: Before = predecessors_of) -> set[Instruction]:
    """These instructions, and all on which they depend: `before` returns the predecessors of one."""
    stack, found = [*instructions], set[Instruction]()
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += before(each)
    return found


def live_instructions(
    instructions: Iterable[Instruction],
    root: Instruction,
    before: Before = predecessors_of,
    is_kept: Callable[[Instruction], bool] = has_effect,
) -> set[Instruction]:
    """The instructions on which the root depends, or one that `is_kept`, by default for its effect."""
    return needed_by([root, *filter(is_kept, instructions)], before)


# ----------------------------------------------------------------------------
# Calls of `control_dep`, with which JAX states that one value is computed after another, as control predecessors

CONTROL_DEP = "control_dep"


def is_control_dependency(instruction: Instruction) -> bool:
    """Whether an instruction only orders its operands: the second is computed after the first."""
    return (
        instruction.opcode == "custom_call"
        and instruction.attributes.custom_call_target == CONTROL_DEP
        and len(instruction.operands) == 2
        and instruction.shape == TupleShape()
    )


def with_control_edges(computation: Computation) -> Computation:
    """The computation with a control predecessor in place of each `control_dep` call whose result nothing uses.

    Only for readers, which may change instructions since nothing else has seen the computation. The instructions follow
    their predecessors. Raises a refusal (cycle) if the calls contradict the operands or each other.

    Source: JAX, jax.experimental.control_deps; XLA, xla/service/control_dep_rewriter.cc.
    """
    used = {
        before for instruction in computation.instructions for before in (*instruction.operands, *instruction.control)
    }
    used.add(computation.root)
    calls = dict.fromkeys(i for i in computation.instructions if is_control_dependency(i) and i not in used)
    for call in calls:
        before, after = call.operands
        if before not in after.control and after.opcode != "parameter":
            object.__setattr__(after, "control", (*after.control, before))
    rest = tuple(i for i in computation.instructions if i not in calls)
    without = Computation(computation.name, rest, computation.root)
    return Computation(computation.name, ordered(without), computation.root)
