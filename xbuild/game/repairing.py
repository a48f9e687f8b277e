"""The repairs that a level offers: control edges between two items of a device, and the repaired program as a case."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from .level import Board, Case, Item, explored

MOST_REPAIRS = 12


@frozen
class ShownRepair:
    """A repair in words, and the repaired program with all its states."""

    words: str
    case: Case

    @property
    def is_right(self) -> bool:
        """Whether the repair prevents every hang."""
        return not self.case.can_hang[0]


def repairs_of(board: Board) -> list[ShownRepair]:
    """The repairs that a level offers: the first of the possible ones."""
    offered = [*possible_edges(board)][:MOST_REPAIRS]
    return [ShownRepair(words, explored(repaired, "")) for words, repaired in offered]


def possible_edges(board: Board) -> Iterator[tuple[str, Board]]:
    """Yield every control edge between two items of a device that dependencies leave in either order: words, board."""
    seen: set[tuple[str, str]] = set()
    for device, items in board.items.items():
        for first, earlier in enumerate(items):
            for second, later in enumerate(items):
                if first != second and not _is_before(items, second, first) and not _is_before(items, first, second):
                    names = earlier.instruction.name, later.instruction.name
                    if not board.is_common_order or names not in seen:
                        seen.add(names)
                        where = "on all devices" if board.is_common_order else f"on device {device}"
                        yield f"{names[0]} before {names[1]} {where}", _with_edge(board, device, first, second)


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
