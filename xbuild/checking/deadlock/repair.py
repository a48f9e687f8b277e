"""The smallest edit of a given schedule that makes it safe: moves of one instruction each, every one checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from attrs import frozen

from ...core.graph import Instruction
from ...properties.effects import talks
from ..model.program import Program, devices_text
from ..model.verdict import Move, Order, Orders, Repair
from .examine import Examination
from .run import ItemNumber, Run
from .stuck import Stuck

MOST_TRIED = 64  # each is a whole check
MOST_NODES = 400_000  # in all of these
SHOWN = 4

Examine = Callable[[Program], Examination]


@frozen(eq=False)
class _Edit:
    move: Move
    program: Program


def repair(program: Program, examination: Examination, free: Examination, examine: Examine) -> Repair | None:
    """Moves to a schedule that was checked and runs, or a whole order that was found; None if there is none."""
    if free.stuck or any(found.kind != "data_dependent" for found in free.found):
        return None
    moves: list[Move] = []
    given, budget = program, tries(examination, MOST_TRIED)
    while examination.stuck and budget > 0:
        best: tuple[_Edit, Examination] | None = None
        for edit in islice(_edits(program, examination.stuck[0]), budget):
            after, budget = examine(edit.program), budget - 1
            if _progress(after) > _progress(best[1] if best else examination):
                best = (edit, after)
            if not after.stuck:
                break
        if best is None:
            break
        program, examination = best[0].program, best[1]
        moves.append(best[0].move)
    if not examination.stuck and moves:
        orders = {device: each.orders for device, each in program.class_of.items() if each.orders}
        return Repair(_text(program, moves), tuple(moves), _entries(program), orders)
    whole = given.ordered(free.recorder.orders())
    return None if examine(whole).stuck else _whole(given, whole)


def tries(examination: Examination, most: int) -> int:
    """How often a check of this size may be done again."""
    nodes = sum(len(run.members) for run in examination.stuck)
    return max(1, min(most, MOST_NODES // (nodes + 1)))


def _progress(examination: Examination) -> float:
    """How far it runs: for ever where nothing is stuck."""
    return sum(run.done.count(True) for run in examination.stuck) if examination.stuck else float("inf")


def _edits(program: Program, run: Run) -> Iterator[_Edit]:
    """For each edge of the cycle: what is waited for, before that at which its device stands."""
    stuck = Stuck(run)
    seen: set[Move] = set()
    for edge in stuck.cycle(stuck.edges(stuck.blocked())):
        if edge.at != edge.partner:
            edit = _edit(program, run, edge.partner, edge.at)
            if edit is not None and edit.move not in seen:
                seen.add(edit.move)
                yield edit


def _edit(program: Program, run: Run, late: ItemNumber, early: ItemNumber) -> _Edit | None:
    each = program.class_of[late[0]]
    paths = [(*run.item(place).path,) for place in (late, early)]
    depth = next(
        (n for n, (a, b) in enumerate(zip(*paths, strict=False)) if a.instruction is not b.instruction),
        min(map(len, paths)),
    )
    moved, before = (
        path[depth].instruction if len(path) > depth else run.item(place).instruction
        for place, path in zip((late, early), paths, strict=True)
    )
    computation = paths[0][depth - 1].computation if depth else each.module.entry
    order = moved_before(each.order(computation), moved, before)
    if order is None:
        return None
    orders: dict[int, Orders] = {device: one.orders for device, one in program.class_of.items()}
    for device in each.devices:
        orders[device] = tuple({**dict(each.orders), computation: order}.items())
    return _Edit(Move(each.devices, moved, before), program.ordered(orders))


def moved_before(order: Order, moved: Instruction, before: Instruction) -> Order | None:
    """The order with one instruction, and what it needs, before another; None where others that talk would move."""
    place = {instruction: n for n, instruction in enumerate(order)}
    first = place[before]
    group: set[Instruction] = set()
    stack = [moved]
    while stack:
        instruction = stack.pop()
        if instruction not in group and place.get(instruction, -1) >= first:
            group.add(instruction)
            stack += (*instruction.operands, *instruction.control)
    if before in group or any(talks(instruction) for instruction in group - {moved}):
        return None
    kept = [instruction for instruction in order[first:] if instruction not in group]
    return (*order[:first], *(i for i in order[first:] if i in group), *kept)


def _text(program: Program, moves: list[Move]) -> str:
    parts = []
    for move in moves[:SHOWN]:
        on = f"on {devices_text(move.devices)} " * (len(move.devices) < len(program.devices))
        parts.append(f"{on}move {move.instruction.name} before {move.before.name}")
    more = (
        f", and {len(moves) - SHOWN} more moves of this kind (they are in repair.moves)" if len(moves) > SHOWN else ""
    )
    return ", ".join(parts) + more


def _entries(program: Program) -> dict[int, Order]:
    return {device: each.order(each.module.entry) for device, each in program.class_of.items()}


def _whole(given: Program, whole: Program) -> Repair:
    """The order that was found from scratch, where single moves do not lead there."""
    schedule, before = _entries(whole), _entries(given)
    changed = [device for device, order in schedule.items() if order != before[device]]
    order = [i.name for i in schedule[changed[0]] if talks(i)] if changed else []
    begins = f"runs {', '.join(order)}" if len(order) <= 2 * SHOWN else f"begins with {', '.join(order[: 2 * SHOWN])}"
    first = f": device {changed[0]} {begins}" if changed else ""
    text = f"run {devices_text(changed or schedule)} in another order (it is in repair.orders){first}"
    return Repair(text, (), schedule, {device: each.orders for device, each in whole.class_of.items() if each.orders})
