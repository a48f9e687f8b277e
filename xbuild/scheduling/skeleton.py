"""The communicating instructions of one program at one level, in order, with what each must come after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ..graph import Computation, Instruction
from .effects import (
    COLLECTIVES,
    DONE_OF,
    FEEDS,
    MEETS,
    START_OF,
    Path,
    Site,
    Step,
    acts,
    communicates,
    notable,
    sites,
    steps,
)
from .verdict import Order

Choose: TypeAlias = Callable[[Instruction, Path], int | None]
OrderOf: TypeAlias = Callable[[Computation], Order]

UNITS = ("while", "conditional")
ENTERED = ("call", "fusion", *UNITS)  # a loop of no trip by its condition, which is silent, of one trip by its body
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
    """The items of a level in recorded or given order, and what each comes after by its dependencies.

    `links` has the nearest items before each, by number; where these are many they stand behind a joint, a point of no
    item that only comes after others. Joints are numbered on from the items.
    """

    items: tuple[Item, ...]
    links: tuple[tuple[int, ...], ...]
    given: bool

    @property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """What each point comes after: its links, or in a given order the item before it."""
        if self.given:
            return tuple((n - 1,) if n else () for n in range(len(self.items)))
        return self.links

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        before = self.before
        found: list[list[int]] = [[] for _ in before]
        for number, earlier in enumerate(before):
            for each in earlier:
                found[each].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def has_calls(self) -> bool:
        """Whether some of its items stand in a call that was entered, and others do not."""
        return any(item.site.path != self.items[0].site.path for item in self.items)

    @cached_property
    def is_chain(self) -> bool:
        """Whether the dependencies alone leave one order: each item is linked to the one before it."""
        return all(n - 1 in self._linked(n) for n in range(1, len(self.items)))

    def _linked(self, number: int) -> Iterator[int]:
        """The items that a point is linked to, by joints, too."""
        stack = [*self.links[number]]
        while stack:
            each = stack.pop()
            if each < len(self.items):
                yield each
            else:
                stack += self.links[each]

    def depends(self, later: int, earlier: int) -> bool:
        """Whether an item comes after another by dependencies alone."""
        seen = {later}
        stack = [later]
        while stack:
            fresh = {each for each in self._linked(stack.pop()) if each >= earlier} - seen
            if earlier in fresh:
                return True
            seen |= fresh
            stack += fresh
        return False


def skeleton(computation: Computation, path: Path, order: OrderOf, choose: Choose, *, given: bool) -> Skeleton:
    """The items of a computation; calls, conditionals whose branch is known and loops of one trip are entered."""
    walk = _Walk(order, choose)
    walk.enter(computation, path, ())
    return Skeleton(tuple(walk.items), tuple(walk.links()), given)


def entered(instruction: Instruction, path: Path, choose: Choose) -> Step | None:
    """The one computation that a run of it comes to, where that is known and communicates."""
    if instruction.opcode not in ENTERED or not any(map(communicates, instruction.called)):
        return None
    branch = choose(instruction, path) if instruction.opcode in UNITS else 0
    if branch is None:
        return None
    step = [*steps(instruction)][branch]
    return step if communicates(step.computation) else None


Front: TypeAlias = tuple[int, ...]  # the nearest items before a place; of joint j the number -1 - j
MANY = 6


@define
class _Walk:
    order: OrderOf
    choose: Choose
    items: list[Item] = field(factory=list)
    before: list[Front] = field(factory=list)
    joints: dict[Front, int] = field(factory=dict)
    _last: dict[object, Front] = field(factory=dict)

    def links(self) -> Iterator[Front]:
        """What every item and then every joint comes after, joints numbered on from the items."""
        count = len(self.items)
        for front in (*self.before, *self.joints):
            yield front if all(n >= 0 for n in front) else tuple(n if n >= 0 else count - 1 - n for n in front)

    def enter(self, computation: Computation, path: Path, outside: Front) -> None:
        value: dict[Instruction, Front] = {}
        looked_at = frozenset(notable(computation))
        for instruction in self.order(computation):
            fronts = {front for each in instruction.operands if (front := value.get(each))}
            if instruction.control:
                fronts |= {front for each in instruction.control if (front := value.get(each))}
            front = self._joined({*fronts, outside}) if outside or len(fronts) > 1 else fronts.pop() if fronts else ()
            if instruction in looked_at:
                front = self._come_to(instruction, path, front)
            if front:
                value[instruction] = front

    def _come_to(self, instruction: Instruction, path: Path, front: Front) -> Front:
        """Enter the items of an instruction; what its users come after."""
        first, step = len(self.items), entered(instruction, path, self.choose)
        if step is not None:
            self.enter(step.computation, (*path, step), front)
            return self._joined((front, tuple(range(first, len(self.items)))))
        if not self._waits(instruction, path):
            return front
        for queue in _queues(instruction):
            front = self._joined((front, self._last.get(queue, ())))
            self._last[queue] = (first,)
        self.items.append(Item(Site(path, instruction), kind_of(instruction)))
        self.before.append(front)
        return (first,)

    def _joined(self, fronts: Iterable[Front]) -> Front:
        """All of these; where they are many, a joint that stands for them."""
        some = [front for front in fronts if front]
        if len(some) <= 1:
            return some[0] if some else ()
        found = tuple(sorted({each for front in some for each in front}))
        if len(found) <= MANY:
            return found
        return (-1 - self.joints.setdefault(found, len(self.joints)),)

    def _waits(self, instruction: Instruction, path: Path) -> bool:
        if acts(instruction):
            return True
        if instruction.opcode not in UNITS or not any(map(communicates, instruction.called)):
            return False
        return self.choose(instruction, path) is None


def _queues(instruction: Instruction) -> tuple[object, ...]:
    """What keeps its recorded order beyond dependencies: each feed, each half of a channel, in loops too.

    So does a collective with itself, where what holds it is called again.
    """
    if instruction.opcode in FEEDS:
        return (instruction.opcode,)
    if instruction.opcode in ("send", "recv"):
        return ((instruction.opcode, instruction.attributes.channel_id),)
    if instruction.opcode in MEETS or instruction.opcode == "async_start":
        return (instruction,)
    if instruction.opcode in UNITS:
        return tuple(
            dict.fromkeys(queue for c in instruction.called for site in sites(c) for queue in _queues(site.instruction))
        )
    return ()
