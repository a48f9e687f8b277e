"""Repairs that a level offers: one instruction after another by a control edge, and what each of them gives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from .items import Board, Item
from .states import States

MOST_REPAIRS = 12


@frozen
class Repair:
    """A repair in words, and the board with it."""

    words: str
    board: Board


def edges(board: Board) -> Iterator[Repair]:
    """Every control edge between two items of a device that dependencies leave in either order."""
    seen: set[tuple[str, str]] = set()
    for device, items in board.items.items():
        for first, earlier in enumerate(items):
            for second, later in enumerate(items):
                if first != second and not _is_before(items, second, first) and not _is_before(items, first, second):
                    names = earlier.instruction.name, later.instruction.name
                    if not board.is_common_order or names not in seen:
                        seen.add(names)
                        where = "on all devices" if board.is_common_order else f"on device {device}"
                        yield Repair(f"{where} {names[0]} before {names[1]}", _with_edge(board, device, first, second))


def _is_before(items: tuple[Item, ...], first: int, second: int) -> bool:
    """Whether an item comes before another by dependencies; the sets of bits have all items before."""
    return bool(items[second].before >> first & 1)


def _with_edge(board: Board, device: int, first: int, second: int) -> Board:
    """The board with an item after another on a device, or on all devices of one program."""
    changed = [*board.items] if board.is_common_order else [device]
    return evolve(
        board,
        items={d: _ordered(items, first, second) if d in changed else items for d, items in board.items.items()},
    )


def _ordered(items: tuple[Item, ...], first: int, second: int) -> tuple[Item, ...]:
    """The items with one after another, and so all that come after the one after all that come before the other."""
    earlier = items[first].before | 1 << first
    return tuple(
        evolve(item, before=item.before | earlier) if n == second or item.before >> second & 1 else item
        for n, item in enumerate(items)
    )


def outcome(repair: Repair) -> dict[str, Any]:
    """The repair for the page: its words, whether nothing hangs with it, and else the moves of a shortest hang."""
    states = States(repair.board).explore()
    path = _to_hang(states)
    return {"words": repair.words, "moves": path, "is_right": path is None}


def _to_hang(states: States) -> list[list[int]] | None:
    """The moves to the nearest state that hangs; None where there is none."""
    came: dict[int, tuple[int, tuple[int, int]]] = {}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        if not states.moves[number] and not states.is_end(number):
            return _way(came, number)
        for move, after in states.moves[number].items():
            if after and after not in came:
                came[after] = number, move
                waiting.append(after)
    return None


def _way(came: dict[int, tuple[int, tuple[int, int]]], number: int) -> list[list[int]]:
    moves: list[list[int]] = []
    while number:
        number, move = came[number]
        moves.append([*move])
    return moves[::-1]
