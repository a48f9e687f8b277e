"""Every order in which the instructions of a computation may run, as far as others see it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from attrs import frozen

from ..program import Computation, Instruction, Program
from ..values import compiled
from .machine import Orders

POSTS = frozenset({"recv", "all-reduce-start", "all-gather-start", "collective-permute-start", "async-start"})


@frozen(eq=False)
class Choice:
    """Orders to try; `is_every`: they are all, `is_some`: where any order runs, one of them does."""

    orders: list[tuple[Orders, ...]]
    is_every: bool
    is_some: bool


def choices(program: Program, most: int) -> Choice:
    """The order given; or every legal one, or where those are more than `most`, those that post early, or some.

    What is posted early (a recv, a start) waits for nobody and only lets others go on: where any order runs to
    completion, the same with its posts moved up does. Of programs of several modules each device has an order of its
    own.
    """
    if program.is_given:
        return Choice([({},) * program.devices], True, True)
    for is_early in (False, True):
        found = _product(program, most, is_early=is_early)
        if len(found) <= most:
            return Choice(found, not is_early, True)
    return Choice(found[:most], False, False)


def _product(program: Program, most: int, *, is_early: bool) -> list[tuple[Orders, ...]]:
    entries = program.entries[:1] if program.is_one else program.entries
    each = [_of_entry(entry, most, is_early=is_early) for entry in entries]
    rows = itertools.islice(itertools.product(*each), most + 1)
    return [row * program.devices if program.is_one else row for row in rows]


def _of_entry(entry: Computation, most: int, *, is_early: bool) -> list[Orders]:
    computations = [each for each in entry.reached() if each.effects]
    lists = [
        [compiled(each, order) for order in itertools.islice(linear(each, is_early=is_early), most + 1)]
        for each in computations
    ]
    rows = itertools.islice(itertools.product(*lists), most + 1)
    return [dict(zip(computations, row, strict=True)) for row in rows]


def linear(computation: Computation, *, is_early: bool = False) -> Iterator[list[Instruction]]:
    """The orders of what others see, each with everything else where it is first needed."""
    seen = [each for each in computation.instructions if each.effects]
    before = _before(computation)
    for order in _extensions(seen, before, is_early=is_early):
        yield _filled(computation, order)


def _before(computation: Computation) -> dict[Instruction, frozenset[Instruction]]:
    """For each instruction those with effects that must have run; items of the infeed come in their order."""
    found: dict[Instruction, frozenset[Instruction]] = {}
    fed: frozenset[Instruction] = frozenset()
    for each in computation.instructions:
        needs = (*each.operands, *each.control)
        found[each] = frozenset().union(*(found[n] | ({n} if n.effects else set()) for n in needs))
        if _feeds(each):
            found[each] |= fed
            fed |= {each}
    return found


def _feeds(instruction: Instruction) -> bool:
    return instruction.opcode == "infeed" or any(_feeds(i) for c in instruction.inner for i in c.instructions)


def _extensions(
    left: list[Instruction], before: dict[Instruction, frozenset[Instruction]], *, is_early: bool
) -> Iterator[list[Instruction]]:
    if not left:
        yield []
        return
    remaining = frozenset(left)
    ready = [each for each in left if not before[each] & remaining]
    if is_early and (post := next((each for each in ready if each.opcode in POSTS), None)):
        ready = [post]
    for first in ready:
        rest = [each for each in left if each is not first]
        yield from ([first, *others] for others in _extensions(rest, before, is_early=is_early))


def _filled(computation: Computation, order: list[Instruction]) -> list[Instruction]:
    done = dict[Instruction, None]()

    def place(instruction: Instruction) -> None:
        if instruction not in done:
            for each in (*instruction.operands, *instruction.control):
                place(each)
            done[instruction] = None

    for each in (*order, *computation.instructions):
        place(each)
    return [*done]
