"""Backward slice of an instruction: the instructions that lead to its value, through calls, to the parameters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from shape_inference import TupleShape
from xbuild.core.graph import Instruction

if TYPE_CHECKING:
    from ..runtime.replica import Standing

LONGEST = 12

ChainLink: TypeAlias = tuple[Instruction, int, tuple[int, ...]]
"""An instruction, its call depth, and the tuple index of the element in question."""

_PASSING = frozenset({"tuple", "get_tuple_element"})


def chain_of(standing: Standing) -> tuple[tuple[Instruction, ...], int]:
    """The nearest instructions of the backward slice, parameters first, and the number of instructions left out."""
    start: ChainLink = standing.instruction, len(standing.path) - 1, ()
    seen, waiting, found = {start}, deque([start]), dict[Instruction, None]()
    while waiting:
        step = waiting.popleft()
        if _is_told(*step[:2]):
            found.setdefault(step[0])
        for source in _sources(step, standing):
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    nearest = set(list(found)[:LONGEST])
    return tuple(i for i in _in_order(start, standing) if i in nearest), max(0, len(found) - LONGEST)


def _in_order(start: ChainLink, standing: Standing) -> dict[Instruction, None]:
    """All instructions of the backward slice of a step, in topological order."""
    entered, order, stack = {start}, dict[Instruction, None](), [(start, _sources(start, standing))]
    while stack:
        sources = stack[-1][1]
        following = next((source for source in sources if source not in entered), None)
        if following is None:
            order.setdefault(stack.pop()[0][0])
        else:
            entered.add(following)
            stack.append((following, _sources(following, standing)))
    return order


def _is_told(instruction: Instruction, depth: int) -> bool:
    if instruction.opcode == "parameter":
        return depth == 0
    return instruction.opcode != "constant" and instruction.opcode not in _PASSING


def _sources(step: ChainLink, standing: Standing) -> Iterator[ChainLink]:
    instruction, depth, picks = step
    operands = instruction.operands
    if instruction.opcode == "parameter" and depth:
        yield from _given(instruction.attributes.number, standing, depth - 1, picks)
    elif instruction.opcode == "get_tuple_element":
        yield operands[0], depth, (instruction.attributes.index, *picks)
    elif instruction.opcode == "tuple" and picks:
        yield operands[picks[0]], depth, picks[1:]
    elif instruction.opcode == "while":
        yield operands[0], depth, picks
    else:
        yield from ((operand, depth, ()) for operand in operands)


def _given(number: int, standing: Standing, depth: int, picks: tuple[int, ...]) -> Iterator[ChainLink]:
    """The operands that a caller passes to a parameter; from a loop's second trip on, also the body's result."""
    caller = standing.path[depth]
    operands = caller.instruction.operands
    if caller.branch is not None:
        operands = (operands[1 + caller.branch],)
    elif caller.instruction.opcode in ("call", "fusion", "map", "scan"):
        operands = (operands[number],)
    yield from ((operand, depth, picks) for operand in operands)
    if (standing.trips[depth] or 0) > 1:
        yield from _handed_on(caller.instruction, number, depth + 1, picks)


def _handed_on(loop: Instruction, number: int, depth: int, picks: tuple[int, ...]) -> Iterator[ChainLink]:
    """The result of the previous trip that becomes a parameter; in a scan only carries have one."""
    root = loop.called[-1].root
    if loop.opcode == "while":
        yield root, depth, picks
    elif loop.opcode == "scan" and number >= len(loop.operands) - loop.attributes.num_carries:
        from_end = number - len(loop.operands)
        where = (len(root.shape.elements) + from_end,) if isinstance(root.shape, TupleShape) else ()
        yield root, depth, (*where, *picks)
