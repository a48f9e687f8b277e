"""The communicating instructions of one program at one level, in order, with what each must come after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ..graph import Computation, Instruction
from .effects import COLLECTIVES, DONE_OF, FEEDS, START_OF, Path, Site, Step, acts, communicates, sites, steps
from .verdict import Order

Choose: TypeAlias = Callable[[Instruction, Path], int | None]
OrderOf: TypeAlias = Callable[[Computation], Order]

BOTH_HALVES = ("send", "recv", "send_done", "recv_done")


@frozen(eq=False)
class Item:
    """A place at which a device may have to wait; a unit is a loop or conditional that communicates inside."""

    site: Site
    kind: str

    @property
    def instruction(self) -> Instruction:
        return self.site.instruction


def kind_of(instruction: Instruction) -> str:
    """send, recv, send_done, recv_done, infeed, outfeed, meet, start, done, or unit."""
    opcode = instruction.opcode
    if opcode in BOTH_HALVES or opcode in FEEDS:
        return opcode
    if opcode in COLLECTIVES:
        return "meet"
    return "start" if opcode in DONE_OF else "done" if opcode in START_OF else "unit"


@frozen(eq=False, slots=False)
class Skeleton:
    """The items of a level in recorded or given order; `reach` is for each the set of items before it, as bits."""

    items: tuple[Item, ...]
    reach: tuple[int, ...]
    given: bool

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """The nearest items that each comes after: of its dependencies, or the one before it in a given order."""
        if self.given:
            return tuple((n - 1,) if n else () for n in range(len(self.items)))
        return tuple(_nearest(mask, self.reach) for mask in self.reach)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.items]
        for number, before in enumerate(self.before):
            for each in before:
                found[each].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def has_calls(self) -> bool:
        """Whether some of its items stand in a call that was entered, and others do not."""
        return any(item.site.path != self.items[0].site.path for item in self.items)

    @cached_property
    def is_chain(self) -> bool:
        """Whether the dependencies alone leave one order."""
        return all(mask == (1 << n) - 1 for n, mask in enumerate(self.reach))

    def depends(self, later: int, earlier: int) -> bool:
        return bool(self.reach[later] >> earlier & 1)


def _nearest(mask: int, reach: Sequence[int]) -> tuple[int, ...]:
    """The items of a set that no other of it comes after."""
    found = []
    while mask:
        latest = mask.bit_length() - 1
        found.append(latest)
        mask &= ~(reach[latest] | 1 << latest)
    return tuple(reversed(found))


def skeleton(computation: Computation, path: Path, order: OrderOf, choose: Choose, *, given: bool) -> Skeleton:
    """The items of a computation; calls, and conditionals whose branch is known, are entered."""
    walk = _Walk(order, choose)
    walk.enter(computation, path, 0)
    return Skeleton(tuple(walk.items), tuple(walk.reach), given)


def entered(instruction: Instruction, path: Path, choose: Choose) -> Step | None:
    """The one computation that a run of it comes to, where that is known and communicates."""
    if instruction.opcode not in ("call", "conditional") or not any(map(communicates, instruction.called)):
        return None
    branch = 0 if instruction.opcode == "call" else choose(instruction, path)
    if branch is None:
        return None
    step = [*steps(instruction)][branch]
    return step if communicates(step.computation) else None


@define
class _Walk:
    order: OrderOf
    choose: Choose
    items: list[Item] = field(factory=list)
    reach: list[int] = field(factory=list)
    _last: dict[object, int] = field(factory=dict)

    def enter(self, computation: Computation, path: Path, outside: int) -> None:
        value: dict[Instruction, int] = {}
        for instruction in self.order(computation):
            mask = outside
            for before in (*instruction.operands, *instruction.control):
                mask |= value.get(before, 0)
            value[instruction] = self._come_to(instruction, path, mask)

    def _come_to(self, instruction: Instruction, path: Path, mask: int) -> int:
        """Enter the items of an instruction; the items that its users come after."""
        first, step = len(self.items), entered(instruction, path, self.choose)
        if step is not None:
            self.enter(step.computation, (*path, step), mask)
            return mask | (1 << len(self.items)) - (1 << first)
        if not self._waits(instruction, path):
            return mask
        for queue in _queues(instruction):
            mask |= self._last.get(queue, 0)
            self._last[queue] = 1 << first
        self.items.append(Item(Site(path, instruction), kind_of(instruction)))
        self.reach.append(mask)
        return mask | 1 << first

    def _waits(self, instruction: Instruction, path: Path) -> bool:
        if acts(instruction):
            return True
        if instruction.opcode not in ("while", "conditional") or not any(map(communicates, instruction.called)):
            return False
        return instruction.opcode == "while" or self.choose(instruction, path) is None


def _queues(instruction: Instruction) -> tuple[object, ...]:
    """What keeps its recorded order beyond dependencies: each feed, each half of a channel, in loops too."""
    if instruction.opcode in FEEDS:
        return (instruction.opcode,)
    if instruction.opcode in ("send", "recv"):
        return ((instruction.opcode, instruction.attributes.channel_id),)
    if instruction.opcode in ("while", "conditional"):
        return tuple(
            dict.fromkeys(queue for c in instruction.called for site in sites(c) for queue in _queues(site.instruction))
        )
    return ()
