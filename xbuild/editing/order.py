"""Order maintenance: insertion at any position of a sequence, and comparison of two positions in constant time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from ..core.graph import Instruction

_GAP = 1 << 256


class Order:
    """A sequence of instructions with ascending labels; an inserted one gets a label between its neighbours'."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self._items = list(instructions)
        self._labels: dict[Instruction, int] = {}
        self._relabel()

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._items)

    def __contains__(self, instruction: Instruction) -> bool:
        return instruction in self._labels

    def label(self, instruction: Instruction) -> int:
        """A number that ascends with the order; an insertion may change it."""
        return self._labels[instruction]

    def precedes(self, first: Instruction, second: Instruction) -> bool:
        return self._labels[first] < self._labels[second]

    def after(self, instruction: Instruction) -> Instruction | None:
        """The next instruction; None after the last instruction."""
        place = self._place(instruction) + 1
        return self._items[place] if place < len(self._items) else None

    def insert(self, instructions: Sequence[Instruction], before: Instruction | None = None) -> None:
        """Insert instructions, in their order, before the instruction `before`, or at the end."""
        place = len(self._items) if before is None else self._place(before)
        low = self._labels[self._items[place - 1]] if place else -_GAP
        high = low + _GAP * (len(instructions) + 1) if before is None else self._labels[before]
        if not place and before is not None:
            low = high - _GAP * (len(instructions) + 1)
        self._items[place:place] = instructions
        step = (high - low) // (len(instructions) + 1)
        if step:
            self._labels.update((each, low + step * n) for n, each in enumerate(instructions, 1))
        else:
            self._relabel()

    def remove(self, instructions: Iterable[Instruction]) -> None:
        gone = set(instructions)
        if len(gone) > 1:
            self._items = [each for each in self._items if each not in gone]
        else:
            for each in gone:
                del self._items[self._place(each)]
        for each in gone:
            del self._labels[each]

    def _place(self, instruction: Instruction) -> int:
        return bisect_left(self._items, self._labels[instruction], key=self._labels.__getitem__)

    def _relabel(self) -> None:
        self._labels = {each: n * _GAP for n, each in enumerate(self._items)}
