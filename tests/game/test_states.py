"""Every state of every level: whether it can still end is what the check says of all orders that lead on from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import xbuild as xb
from tests.support.hostile import nested_loops
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.game import level_of
from xbuild.game.level import Board, Case, Item
from xbuild.game.levels import ShippedLevel, in_order
from xbuild.game.repairing import possible_edges, repairs_of

LEVELS = {each.name: each for each in in_order()}
FREE = [name for name, each in LEVELS.items() if isinstance(each.make(), ModuleGroup)]
MOST = 400


def orders(items: tuple[Item, ...], begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every order of the items of a device that keeps what comes before what."""
    if len(begun) == len(items):
        yield begun
    bits = sum(1 << n for n in begun)
    for n, item in enumerate(items):
        if n not in begun and not item.before & ~bits:
            yield from orders(items, (*begun, n))


def whole(module: Module, items: tuple[Item, ...], order: tuple[int, ...]) -> list[Instruction]:
    """An order of all instructions of a module in which its items stand in this order."""
    placed: dict[Instruction, None] = {}

    def place(each: Instruction) -> None:
        if each not in placed:
            for needed in (*each.operands, *each.control):
                place(needed)
            placed[each] = None

    for n in order:
        place(items[n].instruction)
    for each in module.entry.instructions:
        place(each)
    return [*placed]


def judged(entry: ShippedLevel, board: Board) -> dict[tuple[tuple[int, ...], ...], bool]:
    """For each combination of orders of the devices whether the check says that it runs to the end."""
    program = entry.make()
    assert isinstance(program, ModuleGroup)
    found = {}
    for chosen in itertools.product(*(orders(items) for items in board.items.values())):
        items = level_items(entry, program)
        schedule = {
            device: [each.name for each in whole(program.modules[device], items[device], order)]
            for device, order in zip(board.items, chosen, strict=True)
        }
        verdict = xb.check(program, schedule, send_buffers=entry.send_buffers, infeed=entry.infeed)
        found[chosen] = verdict.kind == "ok"
    return found


def level_items(entry: ShippedLevel, program: ModuleGroup) -> dict[int, tuple[Item, ...]]:
    level = level_of(program, send_buffers=entry.send_buffers, infeed=entry.infeed)
    return dict(level.cases[0].board.items)


def reached(case: Case, chosen: tuple[tuple[int, ...], ...]) -> set[int]:
    """The states that the devices come through, in whatever turns, where each keeps its order."""
    devices = [*case.board.items]
    found, waiting = {0}, [0]
    while waiting:
        number = waiting.pop()
        for (device, item), after in case.states.moves[number].items():
            at = devices.index(device)
            if chosen[at][case.states.states[number][at][0].bit_count()] == item and after not in found:
                found.add(after)
                waiting.append(after)
    return found


@pytest.mark.parametrize("name", FREE)
def test_every_state_is_judged_as_the_check_judges_its_orders(name: str) -> None:
    entry = LEVELS[name]
    (case,) = entry.level().cases
    count = 1
    for items in case.board.items.values():
        count *= sum(1 for _ in itertools.islice(orders(items), MOST))
    if count > MOST:
        pytest.skip(f"{count} combinations of orders")
    verdicts = judged(entry, case.board)
    ways = {chosen: reached(case, chosen) for chosen in verdicts}
    for number, (can_end, can_hang) in enumerate(zip(case.can_end, case.can_hang, strict=True)):
        through = [ends for chosen, ends in verdicts.items() if number in ways[chosen]]
        assert can_end == any(through), number
        assert can_hang == (not all(through)), number


@pytest.mark.parametrize("name", LEVELS)
def test_the_first_state_is_judged_as_the_program_is(name: str) -> None:
    entry = LEVELS[name]
    level = entry.level()
    verdict = xb.check(entry.make(), send_buffers=entry.send_buffers, infeed=entry.infeed)
    ends = [case.can_end[0] for case in level.cases]
    wanted = {"ok": all(ends), "depends": any(ends) and not all(ends)}
    assert wanted.get(verdict.kind, not any(ends))


@pytest.mark.parametrize("name", LEVELS)
def test_a_run_ends_where_the_recorded_order_does(name: str) -> None:
    """The interpreter, run without the check, ends or stops as the orders of the level say."""
    entry = LEVELS[name]
    level, program = entry.level(), entry.make()
    if level.can_end and level.can_hang:
        return
    inputs = [[[1.0, 2.0]]] * program.num_devices
    feed = {device: [[1.0, 1.0]] * n for device, n in (entry.infeed or {}).items()}
    limits = {"send_buffers": entry.send_buffers, "infeed": feed or None, "check": False}
    if level.can_end:
        xb.execute(program, inputs, **limits)  # type: ignore[arg-type]
        return
    if len(level.cases) > 1:  # the data decide
        inputs = [[[1.0, 2.0]], [[-1.0, -2.0]]]
    with pytest.raises(xb.Stopped):
        xb.execute(program, inputs, **limits)  # type: ignore[arg-type]


def test_levels_go_from_easy_to_repairs() -> None:
    every = in_order()
    assert [each.number for each in every] == [*range(1, len(every) + 1)]
    assert len(every) >= 20
    assert all(each.is_repair for each in every[-3:])


@pytest.mark.parametrize("name", [name for name, each in LEVELS.items() if each.is_repair])
def test_a_repair_is_right_where_the_check_says_that_every_order_runs(name: str) -> None:
    entry = LEVELS[name]
    (case,) = entry.level().cases
    offered = [*possible_edges(case.board)]
    repairs = repairs_of(case.board)
    assert [each.words for each in repairs] == [words for words, _ in offered]
    rights = []
    for repair in repairs:
        verdicts = judged(entry, repair.case.board)
        assert repair.is_right == all(verdicts.values())
        rights.append(repair.is_right)
    assert any(rights)
    assert not all(rights)


@pytest.mark.parametrize("name", FREE)
def test_in_a_program_with_a_right_edge_every_order_finishes(name: str) -> None:
    """Every repair of every level, also of those that do not ask for one: the moves of the repaired board decide."""
    (case,) = LEVELS[name].level().cases
    for repair in repairs_of(case.board):
        states = repair.case.states
        stops = [number for number, moves in enumerate(states.moves) if not moves]
        assert stops
        assert repair.is_right == all(map(states.is_end, stops))
        assert repair.is_right == (all(repair.case.can_end) and not any(repair.case.can_hang))


def test_what_has_no_game_is_refused() -> None:
    alone = xb.computation(xb.f32[2])(
        lambda x: xb.send_done(xb.send(x, xb.create_token(x.builder), channel_id=1), channel_id=1)
    )
    with pytest.raises(xb.XbuildError, match="the check refuses the structure of this program, so it cannot be played"):
        level_of(xb.Module("alone", alone, num_replicas=2))

    def many(x: xb.Value) -> xb.Value:
        return xb.tuple_(*[xb.all_reduce(x, xb.add, channel_id=n) for n in range(1, 9)])

    group = xb.ModuleGroup([xb.Module(f"m{n}", xb.computation(xb.f32[2])(many)) for n in range(2)])
    with pytest.raises(xb.XbuildError) as refused:
        level_of(group)
    assert refused.value.kind == "too_many_states"


@pytest.mark.slow
def test_a_program_that_communicates_without_end_is_refused() -> None:
    with pytest.raises(xb.XbuildError, match="more than 100,000 steps") as refused:
        level_of(xb.parse_hlo(nested_loops()))
    assert refused.value.kind == "too_many_states"
