"""Live ranges: which values of a computation share memory, from when to when, and the bytes at each position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

from attrs import define, frozen

from ..core.graph import Instruction
from .buffers import Callee, Callees, Role, Values, calls_of


@define(eq=False)
class Buffer:
    """Memory that holds one value after the other, from position `start` to `end`.

    `counts` is False of memory that belongs to the caller, or is counted apart.
    """

    size: int
    start: int
    end: int
    values: list[int]
    counts: bool = True
    is_output: bool = False


@frozen
class MemoryFrame:
    """A computation with its memory: bytes at each position, what its callees take there, and what it is to a caller.

    `levels` are bytes of own buffers; `extra` the most that a callee takes besides.
    """

    name: str
    values: Values
    buffers: tuple[Buffer, ...]
    levels: tuple[int, ...]
    extra: tuple[int, ...]
    summary: Callee

    @property
    def order(self) -> tuple[Instruction, ...]:
        return self.values.order


def frame_of(
    name: str, values: Values, role: Role, callees: Callees, aliases: Mapping[int, int], unit: int
) -> MemoryFrame:
    """The memory of a computation; `aliases` gives the argument whose memory a part of the result takes.

    Temporary buffers are whole multiples of `unit` bytes.
    """
    assignment = _Assignment(values, role, aliases, unit)
    for value in range(len(values.born)):
        assignment.place(value)
    assignment.finish()
    levels = levels_of(assignment.buffers, len(values.order))
    extra = tuple(max((callees[each].peak for each in calls_of(i)), default=0) for i in values.order)
    peak = max(map(sum, zip(levels, extra, strict=True)), default=0)
    return MemoryFrame(
        name, values, tuple(assignment.buffers), levels, extra, Callee(peak, tuple(assignment.origins()))
    )


def levels_of(buffers: Iterable[Buffer], length: int) -> tuple[int, ...]:
    """The bytes at each position that buffers take together."""
    change = [0] * (length + 1)
    for buffer in buffers:
        if buffer.counts:
            change[buffer.start] += buffer.size
            change[buffer.end + 1] -= buffer.size
    return tuple(accumulate(change[:-1]))


class _Assignment:
    """Puts the values of a computation into buffers, in their order."""

    def __init__(self, values: Values, role: Role, aliases: Mapping[int, int], unit: int) -> None:
        self.values, self.role, self.unit = values, role, unit
        self.end = len(values.order) - 1
        self.buffers: list[Buffer] = []
        self.buffer_of: dict[int, Buffer] = {}
        self.places = {value: place for place, value in enumerate(values.arguments)}
        self.slots = self._slots(aliases)
        self.lines = self._lines()

    def _slots(self, aliases: Mapping[int, int]) -> dict[int, int]:
        """For parts of the result the argument in whose memory each has to be at the end."""
        if self.role == "loop":
            return dict(enumerate(self.values.arguments))
        return {part: self.values.arguments[place] for part, place in aliases.items()}

    def _lines(self) -> dict[int, int]:
        """For each value that becomes a part of the result, overwritten or not, that part."""
        found: dict[int, int] = {}
        for part, value in enumerate(self.values.result):
            current: int | None = value
            while current is not None and current not in found:
                found[current] = part
                current = self._before(current)
        return found

    def _before(self, value: int) -> int | None:
        """The value in whose memory this one can be written."""
        sizes, last, born = self.values.sizes, self.values.last, self.values.born[value]
        return next((c for c in self.values.sharing[value] if last[c] <= born and sizes[c] == sizes[value]), None)

    def place(self, value: int) -> None:
        """Put a value into a buffer that is free for it, or into a new one."""
        values = self.values
        size, born = -(-values.sizes[value] // self.unit) * self.unit, values.born[value]
        buffer = self._shared(value, born) or self._slot(value, born)
        if buffer is None:
            is_argument = value in self.places
            end = values.last[value] if not is_argument or self.role != "entry" else self.end
            buffer = Buffer(size, born, end, [], counts=not is_argument and size > 0)
            self.buffers.append(buffer)
        else:
            buffer.end = values.last[value]
        buffer.values.append(value)
        self.buffer_of[value] = buffer

    def _shared(self, value: int, born: int) -> Buffer | None:
        size = self.values.sizes[value]
        for candidate in self.values.sharing[value]:
            buffer = self.buffer_of[candidate]
            first = buffer.values[0]
            if self.values.sizes[candidate] == size and self._free(buffer) <= born and self._may_take(first, value):
                return buffer
        return None

    def _free(self, buffer: Buffer) -> int:
        """The position of the last reader of what a buffer holds."""
        return self.values.last[buffer.values[-1]]

    def _may_take(self, first: int, value: int) -> bool:
        """Whether a value may overwrite a buffer that began as `first`: an argument only where the result has to be."""
        if first not in self.places or self.role == "loop":
            return self.values.makers[first].opcode != "constant"
        part = self.lines.get(value)
        if self.role == "entry":
            return part is not None and self.slots.get(part) == first
        return part is not None and self.lines.get(first) == part

    def _slot(self, value: int, born: int) -> Buffer | None:
        part = self.lines.get(value)
        slot = self.slots.get(part) if part is not None else None
        if slot is None or slot == value or slot not in self.buffer_of:
            return None
        buffer = self.buffer_of[slot]
        return buffer if self._free(buffer) < born and self.values.sizes[slot] == self.values.sizes[value] else None

    def finish(self) -> None:
        """Settle where the parts of the result are at the end: with the caller, in their slots, or copied there."""
        held: set[int] = set()
        for part, value in enumerate(self.values.result):
            buffer = self.buffer_of[value]
            if self.role == "once":
                buffer.counts = False
            elif id(buffer) in held or self._is_elsewhere(part, buffer):
                self._copy(value)
            elif part not in self.slots:
                buffer.is_output, buffer.size = True, self.values.sizes[value]
            held.add(id(buffer))

    def _is_elsewhere(self, part: int, buffer: Buffer) -> bool:
        """Whether a part of the result is an argument or a constant, and has to be copied."""
        first = buffer.values[0]
        if first in self.places:
            return self.slots.get(part) != first
        return self.values.makers[first].opcode == "constant"

    def _copy(self, value: int) -> None:
        size = self.values.sizes[value]
        self.buffers.append(Buffer(size, self.end, self.end, [value], is_output=self.role == "entry"))

    def origins(self) -> list[tuple[int, bool] | None]:
        """For each part of the result the part of the arguments that it is, or that it may overwrite."""
        return [self._origin(value) for value in self.values.result]

    def _origin(self, value: int) -> tuple[int, bool] | None:
        first = self.buffer_of[value].values[0]
        return (self.places[first], first == value) if first in self.places else None
