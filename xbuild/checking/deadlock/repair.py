"""Repair of a given schedule: the fewest moves of single instructions after which it runs, each move checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from attrs import frozen

from ...core.graph import Instruction
from ...process.progress import over
from ...properties.effects import communicates_anywhere
from ..model.program import GridProgram, Order, Orders, devices_text
from ..model.verdict import Move, Repair
from .level_run import ItemNumber, LevelRun
from .levels import LevelStage
from .stuck import Stuck

MOST_TRIED = 64  # repairs, each a run of all levels
MOST_NODES = 400_000  # of all these runs
SHOWN = 4

Examine = Callable[[GridProgram], LevelStage]


@frozen(eq=False)
class _Edit:
    move: Move
    program: GridProgram


def find_repair(program: GridProgram, levels: LevelStage, free: LevelStage, examine: Examine) -> Repair | None:
    """Moves to a schedule that was checked and runs, or a whole order that was found; None if neither exists."""
    if free.stuck or any(finding.kind != "data_dependent" for finding in free.found):
        return None
    moves: list[Move] = []
    original, budget = program, most_tries(levels, MOST_TRIED)
    while levels.stuck and budget > 0:
        best: tuple[_Edit, LevelStage] | None = None
        for edit in over(islice(_edits(program, levels.stuck[0]), budget), "trying repairs"):
            after, budget = examine(edit.program), budget - 1
            if _progress(after) > _progress(best[1] if best else levels):
                best = (edit, after)
            if not after.stuck:
                break
        if best is None:
            break
        program, levels = best[0].program, best[1]
        moves.append(best[0].move)
    if not levels.stuck and moves:
        orders = {device: each.orders for device, each in program.class_of.items() if each.orders}
        return Repair(_moves_text(program, moves), tuple(moves), _entry_orders(program), orders)
    reordered = original.with_orders(free.recorder.orders())
    return None if examine(reordered).stuck else _repair_by_order(original, reordered)


def most_tries(levels: LevelStage, most: int) -> int:
    """How often a check of this size may be repeated."""
    nodes = sum(len(run.members) for run in levels.stuck)
    return max(1, min(most, MOST_NODES // (nodes + 1)))


def _progress(levels: LevelStage) -> float:
    """How many nodes of the stuck levels are done; infinite if none is stuck."""
    return sum(run.done.count(True) for run in levels.stuck) if levels.stuck else float("inf")


def _edits(program: GridProgram, run: LevelRun) -> Iterator[_Edit]:
    """For each edge of the cycle the move of the awaited item before the item at which its device stops."""
    stuck = Stuck(run)
    seen: set[Move] = set()
    for edge in stuck.cycle(stuck.edges(stuck.blocked())):
        if edge.at != edge.partner:
            edit = _edit(program, run, edge.partner, edge.at)
            if edit is not None and edit.move not in seen:
                seen.add(edit.move)
                yield edit


def _edit(program: GridProgram, run: LevelRun, late: ItemNumber, early: ItemNumber) -> _Edit | None:
    device_class = program.class_of[late[0]]
    paths = [(*run.item(place).path,) for place in (late, early)]
    depth = next(
        (n for n, (a, b) in enumerate(zip(*paths, strict=False)) if a.instruction is not b.instruction),
        min(map(len, paths)),
    )
    moved, before = (
        path[depth].instruction if len(path) > depth else run.item(place).instruction
        for place, path in zip((late, early), paths, strict=True)
    )
    computation = paths[0][depth - 1].computation if depth else device_class.module.entry
    order = move_before(device_class.order(computation), moved, before)
    if order is None:
        return None
    orders: dict[int, Orders] = {device: other.orders for device, other in program.class_of.items()}
    for device in device_class.devices:
        orders[device] = tuple({**dict(device_class.orders), computation: order}.items())
    return _Edit(Move(device_class.devices, moved, before), program.with_orders(orders))


def move_before(order: Order, moved: Instruction, before: Instruction) -> Order | None:
    """The order with one instruction and its dependencies before another; None if other communication would move."""
    place = {instruction: n for n, instruction in enumerate(order)}
    first = place[before]
    group: set[Instruction] = set()
    stack = [moved]
    while stack:
        instruction = stack.pop()
        if instruction not in group and place.get(instruction, -1) >= first:
            group.add(instruction)
            stack += (*instruction.operands, *instruction.control)
    if before in group or any(communicates_anywhere(instruction) for instruction in group - {moved}):
        return None
    rest = [instruction for instruction in order[first:] if instruction not in group]
    return (*order[:first], *(i for i in order[first:] if i in group), *rest)


def _moves_text(program: GridProgram, moves: list[Move]) -> str:
    parts = []
    for move in moves[:SHOWN]:
        on = f"on {devices_text(move.devices)} " * (len(move.devices) < len(program.devices))
        parts.append(f"{on}move {move.instruction.name} before {move.before.name}")
    more = f", and {len(moves) - SHOWN} more moves (see repair.moves)" if len(moves) > SHOWN else ""
    return ", ".join(parts) + more


def _entry_orders(program: GridProgram) -> dict[int, Order]:
    return {device: each.order(each.module.entry) for device, each in program.class_of.items()}


def _repair_by_order(original: GridProgram, reordered: GridProgram) -> Repair:
    """The repair by a new order, if single moves do not lead to one that runs."""
    schedule, before = _entry_orders(reordered), _entry_orders(original)
    changed = [device for device, order in schedule.items() if order != before[device]]
    order = [i.name for i in schedule[changed[0]] if communicates_anywhere(i)] if changed else []
    begins = f"runs {', '.join(order)}" if len(order) <= 2 * SHOWN else f"begins with {', '.join(order[: 2 * SHOWN])}"
    first = f": device {changed[0]} {begins}" if changed else ""
    text = f"change the order on {devices_text(changed or schedule)} (see repair.orders){first}"
    return Repair(
        text, (), schedule, {device: each.orders for device, each in reordered.class_of.items() if each.orders}
    )
