"""Places of instructions in a program's HLO text, which reorders computations and expands some instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

from ..core.graph import Computation, Instruction, Module
from ..text.spelling.expansion import expansion

RowNumber: TypeAlias = tuple[int, int]
"""The number of a computation, and the row in it."""


@frozen(eq=False)
class Places:
    """For each instruction the place of its result and, where it is a collective, that of the collective itself."""

    result: Mapping[Instruction, RowNumber]
    met: Mapping[Instruction, RowNumber]

    @staticmethod
    def of(program: Module, read: Module) -> Places:
        """The places of a program in the module that was read from its text."""
        number = {computation: place for place, computation in enumerate(read.computations)}
        found = Places({}, {})
        stack, seen = [(program.entry, read.entry)], {program.entry}
        while stack:
            ours, theirs = stack.pop()
            for instruction, result, met in _rows(ours, theirs):
                found.result[instruction] = number[theirs], result  # type: ignore[index]
                found.met[instruction] = number[theirs], met  # type: ignore[index]
                for pair in zip(instruction.called, theirs.instructions[met].called, strict=False):
                    if pair[0] not in seen:
                        seen.add(pair[0])
                        stack.append(pair)
        return found


def _rows(ours: Computation, theirs: Computation) -> Iterator[tuple[Instruction, int, int]]:
    parts = [expansion(each) for each in ours.instructions]
    if [part.opcode for each in parts for part in each] != [each.opcode for each in theirs.instructions]:
        yield from _wrapped(ours, theirs)
        return
    row = 0
    for instruction, several in zip(ours.instructions, parts, strict=True):
        met = next((n for n, part in enumerate(several) if part.opcode == instruction.opcode), 0)
        yield instruction, row + len(several) - 1, row + met
        row += len(several)


def _wrapped(ours: Computation, theirs: Computation) -> Iterator[tuple[Instruction, int, int]]:
    """The places in a computation that an async-start wraps: HLO text writes only its root, after its parameters."""
    row = {instruction: place for place, instruction in enumerate(theirs.instructions)}
    for mine, other in [(ours.root, theirs.root), *zip(ours.parameters, theirs.parameters, strict=False)]:
        yield mine, row[other], row[other]
