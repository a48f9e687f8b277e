"""Loops and trip numbers of events: a trip of a while begins with its condition, a trip of a scan with its body."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from ..core.graph import Instruction, Module, ModuleGroup
from ..properties.effects import LOOPS

if TYPE_CHECKING:
    from .data import Spot


@frozen
class Loop:
    """A loop around a spot: its name, the spot where trips begin, and its own spot, each -1 if never executed."""

    name: str
    condition: int
    itself: int


def loops_around(spots: Sequence[Spot], program: Module | ModuleGroup) -> list[tuple[Loop, ...]]:
    """For each spot the loops that it stands in, outermost first."""
    known = {(spot.path, spot.instruction): number for number, spot in enumerate(spots)}
    loops, owner = _loops(program)
    found: dict[tuple[int, tuple[str, ...]], tuple[Loop, ...]] = {}
    places = [(owner.get(spot.instruction, -1), spot.path) for spot in spots]
    for module, path in {*places}:
        ends = ((path[:n], label) for n, label in enumerate(path))
        pairs = ((before, each) for before, label in ends for each in loops.get((module, label), ()))
        around = (_loop(known, before, each) for before, each in pairs)
        found[module, path] = tuple(loop for loop in around if loop.condition >= 0)
    return [found[place] for place in places]


def _loop(known: dict[tuple[tuple[str, ...], Instruction], int], before: tuple[str, ...], loop: Instruction) -> Loop:
    inside = (*before, loop.name)
    seen = [known[inside, each] for each in loop.called[0].instructions if (inside, each) in known]
    return Loop(loop.name, min(seen, default=-1), known.get((before, loop), -1))


def _loops(program: Module | ModuleGroup) -> tuple[dict[tuple[int, str], list[Instruction]], dict[Instruction, int]]:
    """The loops of each module by name, and the number of the module of each instruction."""
    modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
    found: dict[tuple[int, str], list[Instruction]] = {}
    owner: dict[Instruction, int] = {}
    for number, module in enumerate(modules):
        for each in (i for computation in module.computations for i in computation.instructions):
            owner[each] = number
            if each.opcode in LOOPS:
                found.setdefault((number, each.name), []).append(each)
    return found, owner


def trip(conditions: Sequence[int], ends: Sequence[int], number: int) -> int:
    """The trip of an event, from 1, given the events of its device at which the condition began and the loop ended."""
    ended = bisect_left(ends, number)
    before = bisect_left(conditions, ends[ended - 1]) if ended else 0
    return max(1, bisect_right(conditions, number) - before)
