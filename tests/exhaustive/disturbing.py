"""A given order in which neighbours that may have changed places."""

from __future__ import annotations

from .program import Computation, Instruction
from .scene import Drawing


def disturb(drawing: Drawing, entries: list[Computation]) -> None:
    """In a given order, now and then, two neighbours change places that may."""
    while drawing.is_given and drawing.chance(min(drawing.wild + 0.05, 0.3)):
        entry = drawing.rng.choice(entries)
        computation = drawing.rng.choice([*entry.reached()])
        effects = [each for each in computation.instructions if each.effects]
        if len(effects) > 1:
            place = drawing.rng.randrange(len(effects) - 1)
            _moved_up(computation, effects[place + 1], effects[place])


def _moved_up(computation: Computation, later: Instruction, before: Instruction) -> None:
    """Move an instruction (with what it needs) before another, unless it needs that."""
    needed = dict[Instruction, None]()

    def need(instruction: Instruction) -> None:
        for each in (*instruction.operands, *instruction.control):
            need(each)
        needed[instruction] = None

    need(later)
    if before in needed:
        return
    at = computation.instructions.index(before)
    first = [each for each in computation.instructions[:at] if each not in needed]
    rest = [each for each in computation.instructions[at:] if each not in needed]
    kept = [each for each in computation.instructions[:at] if each in needed]
    moved = [each for each in computation.instructions[at:] if each in needed]
    order = {each: n for n, each in enumerate(computation.instructions)}
    computation.instructions[:] = [*sorted((*first, *kept), key=order.__getitem__), *moved, *rest]
    computation.renumber()
    computation.code = None
