"""One step back from a value, or an element of a tuple, to what it comes from: operands, callers, results of calls.

A place is a value, or by a path an element of nested tuples; the empty path is the whole value. Everything that follows
values back (the slice that the check evaluates, reasons for differences, chains of findings) takes its steps from here,
and decides which ops to pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from attrs import define, field

from shape_inference.trees import Path

from ..core.graph import Computation, Instruction, Module, Source
from ..core.op import opcodes
from .effects import IDENTITIES, steps
from .sites import reached
from .trip_counts import split_carries

Place: TypeAlias = tuple[Instruction, Path]

CALLS = opcodes(lambda op: op.calls in ("once", "wrapped"))
"""Ops that run what they call once, on their operands."""


def operands_behind(instruction: Instruction, path: Path) -> Iterator[Place]:
    """The operands that a place comes from: the element of a tuple, the same place of an identity's operand."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "tuple" and path:
        yield operands[path[0]], path[1:]
    elif opcode == "get_tuple_element":
        yield operands[0], (instruction.attributes.index, *path)
    elif opcode in IDENTITIES:
        yield operands[0], path
    else:
        yield from ((operand, ()) for operand in operands)


def results_behind(caller: Instruction, path: Path) -> Iterator[Place]:
    """What the result of a call, conditional or loop is: roots of its callees, and without a trip the initial state."""
    if caller.opcode == "while":
        yield caller.operands[0], path
    elif caller.opcode == "scan":
        yield from ((operand, ()) for operand in split_carries(caller, caller.operands)[1])
    yield from ((step.computation.root, path) for step in steps(caller) if step.role != "while condition")


def deciders(unit: Instruction) -> Iterator[Place]:
    """What decides a conditional or while: the index, the root of the condition."""
    if unit.opcode == "conditional":
        yield unit.operands[0], ()
    elif unit.opcode == "while":
        yield unit.attributes.condition.root, ()


def nearest_source(value: Instruction | None, module: Module) -> Source | None:
    """The line of a value, or that of the nearest user or operand in its computation with a line."""
    if value is None or value.source is not None:
        return None if value is None else value.source
    users: dict[Instruction, list[Instruction]] = {}
    for computation in reached(module.entry):
        for each in computation.instructions:
            for operand in each.operands:
                users.setdefault(operand, []).append(each)
    queue, seen = deque([value]), {value}
    while queue:
        each = queue.popleft()
        if each.source is not None:
            return each.source
        around = [other for other in (*users.get(each, ()), *each.operands) if other not in seen]
        seen.update(around)
        queue.extend(around)
    return None


@define(eq=False)
class Callers:
    """The instructions that call each computation, with the number of the computation among those that they call."""

    sites: dict[Computation, list[tuple[Instruction, int]]] = field(factory=dict, init=False)
    _homes: dict[Instruction, list[Computation]] = field(factory=dict, init=False)

    def enter(self, computations: Iterable[Computation]) -> None:
        for computation in computations:
            for parameter in computation.parameters:
                self._homes.setdefault(parameter, []).append(computation)
            for instruction in computation.calls:
                for number, called in enumerate(instruction.called):
                    self.sites.setdefault(called, []).append((instruction, number))

    def given(self, parameter: Instruction, path: Path) -> Iterator[Place]:
        """What callers pass for a parameter, and what the body of a loop returns for its next trip."""
        number = parameter.attributes.number
        for computation in self._homes.get(parameter, ()):
            for caller, region in self.sites.get(computation, ()):
                if caller.opcode == "conditional":
                    yield caller.operands[1 + region], path
                elif caller.opcode == "while":
                    yield caller.operands[0], path
                    yield caller.attributes.body.root, path
                elif caller.opcode == "scan":
                    yield caller.operands[number], path
                    yield computation.root, ()
                elif caller.opcode in CALLS:
                    yield caller.operands[number], path
