"""Which trip of which loop an event belongs to: a trip begins where the loop's condition does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from ..graph import Instruction, Module, ModuleGroup

if TYPE_CHECKING:
    from .data import Spot


@frozen
class Loop:
    """A loop around a spot: its name, and the spots where its condition begins and of itself, -1 where never seen."""

    name: str
    condition: int
    itself: int


def loops_around(spots: Sequence[Spot], program: Module | ModuleGroup) -> list[tuple[Loop, ...]]:
    """For each spot the loops that it stands in, outermost first."""
    known = {(spot.path, spot.instruction): number for number, spot in enumerate(spots)}
    whiles: dict[str, list[Instruction]] = {}
    for instruction in _whiles(program):
        whiles.setdefault(instruction.name, []).append(instruction)
    found: dict[tuple[str, ...], tuple[Loop, ...]] = {}
    for path in {spot.path for spot in spots}:
        ends = ((path[:n], label) for n, label in enumerate(path))
        pairs = ((before, each) for before, label in ends for each in whiles.get(label, ()))
        loops = (_loop(known, before, each) for before, each in pairs)
        found[path] = tuple(loop for loop in loops if loop.condition >= 0)
    return [found[spot.path] for spot in spots]


def _loop(known: dict[tuple[tuple[str, ...], Instruction], int], before: tuple[str, ...], loop: Instruction) -> Loop:
    inside = (*before, loop.name)
    seen = [known[inside, each] for each in loop.attributes.condition.instructions if (inside, each) in known]
    return Loop(loop.name, min(seen, default=-1), known.get((before, loop), -1))


def _whiles(program: Module | ModuleGroup) -> Iterator[Instruction]:
    modules = [program] if isinstance(program, Module) else dict.fromkeys(program.modules.values())
    for module in modules:
        for computation in module.computations:
            yield from (each for each in computation.instructions if each.opcode == "while")


def trip(conditions: Sequence[int], ends: Sequence[int], number: int) -> int:
    """The trip, from 1, of an event, of the events at which the condition began and the loop ended, all of a device."""
    ended = bisect_left(ends, number)
    before = bisect_left(conditions, ends[ended - 1]) if ended else 0
    return max(1, bisect_right(conditions, number) - before)
