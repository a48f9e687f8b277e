"""The page of a level: one HTML file with all states and repairs, on which a reader moves the devices."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from attrs import evolve, frozen

from shape_inference.escaping import filled, in_html, in_json, policy

from ..core.graph import Instruction
from .level import Board, Case, Item, Level, States

# ----------------------------------------------------------------------------
# Repairs that a level offers: control edges between two instructions, and the outcome of each.

MOST_REPAIRS = 12


@frozen
class ShownRepair:
    """A repair in words, and the repaired board."""

    words: str
    board: Board


def possible_repairs(board: Board) -> Iterator[ShownRepair]:
    """Yield every control edge between two items of a device that dependencies leave in either order."""
    seen: set[tuple[str, str]] = set()
    for device, items in board.items.items():
        for first, earlier in enumerate(items):
            for second, later in enumerate(items):
                if first != second and not _is_before(items, second, first) and not _is_before(items, first, second):
                    names = earlier.instruction.name, later.instruction.name
                    if not board.is_common_order or names not in seen:
                        seen.add(names)
                        where = "on all devices" if board.is_common_order else f"on device {device}"
                        yield ShownRepair(
                            f"{names[0]} before {names[1]} {where}", _with_edge(board, device, first, second)
                        )


def _is_before(items: tuple[Item, ...], first: int, second: int) -> bool:
    """Whether dependencies put one item before another; the sets of bits include all earlier items."""
    return bool(items[second].before >> first & 1)


def _with_edge(board: Board, device: int, first: int, second: int) -> Board:
    """The board with an edge between two items on a device, or on all devices if they run one program."""
    changed = [*board.items] if board.is_common_order else [device]
    return evolve(
        board,
        items={d: _ordered(items, first, second) if d in changed else items for d, items in board.items.items()},
    )


def _ordered(items: tuple[Item, ...], first: int, second: int) -> tuple[Item, ...]:
    """The items with an edge between two of them, which also orders their predecessors and successors."""
    earlier = items[first].before | 1 << first
    return tuple(
        evolve(item, before=item.before | earlier) if n == second or item.before >> second & 1 else item
        for n, item in enumerate(items)
    )


def repair_outcome(repair: ShownRepair) -> dict[str, Any]:
    """The repair for the page: its words, whether it prevents every hang, and if not, the moves of a shortest hang."""
    states = States(repair.board).explore()
    path = _to_hang(states)
    return {"words": repair.words, "moves": path, "is_right": path is None}


def _to_hang(states: States) -> list[list[int]] | None:
    """The moves to the nearest state that hangs; None if no state hangs."""
    came: dict[int, tuple[int, tuple[int, int]]] = {}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        if not states.moves[number] and not states.is_end(number):
            return _moves_to(came, number)
        for move, after in states.moves[number].items():
            if after and after not in came:
                came[after] = number, move
                waiting.append(after)
    return None


def _moves_to(came: dict[int, tuple[int, tuple[int, int]]], number: int) -> list[list[int]]:
    moves: list[list[int]] = []
    while number:
        number, move = came[number]
        moves.append([*move])
    return moves[::-1]


# ----------------------------------------------------------------------------
# The page of a level: one HTML file with all states, on which a reader moves the devices.


@frozen
class Telling:
    """The texts of a page: its title, what the level shows, and whether the reader repairs the program."""

    title: str
    text: str = ""
    is_repair: bool = False


def level_page(level: Level, telling: Telling | None = None) -> str:
    """The page of a level as HTML, in one file that needs no network.

    >>> import xbuild as xb
    >>> from xbuild.game import level_of
    >>> total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    >>> level_page(level_of(total)).splitlines()[0]
    '<!doctype html>'
    """
    telling = telling or Telling(level.name)
    script = _asset("game.js")
    parts = {
        "policy": policy(script),
        "title": in_html(telling.title),
        "text": "".join(f"<p>{in_html(each)}</p>" for each in telling.text.split("\n\n") if each.strip()),
        "plain": "".join(map(_plain, level.cases)),
        "style": _asset("game.css"),
        "data": in_json(_data(level, telling)),
        "script": script,
    }
    return filled(_asset("game.html"), parts)


def _plain(case: Case) -> str:
    """The text of a case for readers without JavaScript: the instructions of each device, and how the case can end."""
    ends = {(True, False): "Every order finishes.", (True, True): "Some orders finish, and others hang.",
            (False, True): "Every order hangs."}[case.can_end[0], case.can_hang[0]]  # fmt: skip
    rows = (
        f"<dt>device {device}</dt>" + "".join(f"<dd>{in_html(_item(item.instruction))}</dd>" for item in items)
        for device, items in case.board.items.items()
    )
    words = f"With {case.words}: " if case.words else ""
    return f"<p>{in_html(words)}{ends}</p><dl>{''.join(rows)}</dl>"


def _item(instruction: Instruction) -> str:
    return f"{instruction.opcode.replace('_', '-')} {instruction.name}"


def _data(level: Level, telling: Telling) -> dict[str, Any]:
    found = level.to_dict()
    if telling.is_repair:
        found["repairs"] = [
            repair_outcome(repair) for repair in [*possible_repairs(level.cases[0].board)][:MOST_REPAIRS]
        ]
    return found


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
