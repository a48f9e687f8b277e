"""The skeleton of a program at one level: its items in order, and the dependencies between them.

Sections:

    Callees that are flattened into the caller's level, and items of a level
    DependencyWalk: a walk that records for each value the nearest items before it
    Skeleton: the items of a level with their dependencies
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Instruction
from ...process.limits import ask
from ...properties.effects import FOLLOWED, UNITS, CallStep, Path, communicates, communicates_itself, notable, steps
from ...properties.sites import Site, sites, sites_of
from ...properties.waiting import sequences_of
from ..model.program import Order

# ----------------------------------------------------------------------------
# Callees that are flattened into the caller's level, and items of a level

Choose: TypeAlias = Callable[[Instruction, Path], int | None]
OrderOf: TypeAlias = Callable[[Computation], Order]


def flattened_step(instruction: Instruction, path: Path, choose: Choose) -> CallStep | None:
    """The call that is flattened: the one computation that runs, if it is known and communicates.

    A loop without a trip runs its silent condition, if it has one; a loop of one trip runs its body.
    """
    if instruction.opcode not in FOLLOWED or not any(map(communicates, instruction.called)):
        return None
    branch = choose(instruction, path) if instruction.opcode in UNITS else 0
    if branch is None:
        return None
    every = [*[None] * (instruction.opcode == "scan"), *steps(instruction)]
    step = every[branch]
    return step if step is not None and communicates(step.computation) else None


def is_item(instruction: Instruction, path: Path, choose: Choose) -> bool:
    """Whether an instruction is an item: it communicates, or is a loop or conditional whose decision is unknown."""
    if communicates_itself(instruction):
        return True
    if instruction.opcode not in UNITS or not any(map(communicates, instruction.called)):
        return False
    return choose(instruction, path) is None


# ----------------------------------------------------------------------------
# DependencyWalk: a walk that records for each value the nearest items before it

Front: TypeAlias = tuple[int, ...]  # the nearest items before a place; joint j has the number -1 - j
MANY = 6


@define
class DependencyWalk:
    """A walk over the items of a level, as `skeleton` finds them."""

    order: OrderOf
    choose: Choose
    before: list[Front] = field(factory=list)
    joints: dict[Front, int] = field(factory=dict)
    _last: dict[Hashable, Front] = field(factory=dict)

    def dependencies(self, computation: Computation, path: Path) -> Iterator[Front]:
        """The predecessors of every item and then of every joint; joints are numbered on from the items."""
        self.enter(computation, path, ())
        count = len(self.before)
        for front in (*self.before, *self.joints):
            yield front if all(n >= 0 for n in front) else tuple(n if n >= 0 else count - 1 - n for n in front)

    def enter(self, computation: Computation, path: Path, outside: Front) -> None:
        value: dict[Instruction, Front] = {}
        ask()
        looked_at = frozenset(notable(computation))
        for instruction in self.order(computation):
            front, others = outside, None
            for before in (
                (*instruction.operands, *instruction.control) if instruction.control else instruction.operands
            ):
                other = value.get(before)
                if other and other is not front:
                    if front:
                        others = {other} if others is None else others | {other}
                    else:
                        front = other
            if others is not None:
                front = self._united({front, *others})
            if instruction in looked_at:
                front = self._visit(instruction, path, front)
            if front:
                value[instruction] = front

    def _visit(self, instruction: Instruction, path: Path, front: Front) -> Front:
        """Enter the items of an instruction, and return the front that its users come after."""
        first, step = len(self.before), flattened_step(instruction, path, self.choose)
        if step is not None:
            self.enter(step.computation, (*path, step), front)
            return self._united((front, tuple(range(first, len(self.before)))))
        if not is_item(instruction, path, self.choose):
            return front
        for sequence in _sequences(instruction):
            front = self._united((front, self._last.get(sequence, ())))
            self._last[sequence] = (first,)
        self.before.append(front)
        return (first,)

    def _united(self, fronts: Iterable[Front]) -> Front:
        """The union of fronts; a joint in its place if it is large."""
        nonempty = [front for front in fronts if front]
        if len(nonempty) <= 1:
            return nonempty[0] if nonempty else ()
        union = tuple(sorted({item for front in nonempty for item in front}))
        if len(union) <= MANY:
            return union
        return (-1 - self.joints.setdefault(union, len(self.joints)),)


def _share_a_sequence(one: Instruction, other: Instruction) -> bool:
    return not {*_sequences(one)}.isdisjoint(_sequences(other))


def _sequences(item: Instruction) -> Iterable[Hashable]:
    """The sequences in which an item keeps its recorded order beyond dependencies; for a unit, those inside it."""
    if item.opcode not in UNITS:
        return sequences_of(item)
    inside = (site.instruction for called in item.called for site in sites(called))
    return dict.fromkeys(sequence for each in inside for sequence in sequences_of(each))


# ----------------------------------------------------------------------------
# Skeleton: the items of a level with their dependencies


@frozen(eq=False, slots=False)
class Skeleton:
    """The items of a level in recorded or given order: communicating instructions and units."""

    items: tuple[Site, ...]
    given: bool
    _path: Path
    _order: Callable[[], Order]
    _find_dependencies: Callable[[], Iterable[Front]]

    @cached_property
    def dependencies(self) -> tuple[Front, ...]:
        """The nearest items before each item by dependencies, by number; computed only if the recorded order fails.

        Many of them are replaced by a joint, a point without an item. Joints are numbered after the items.
        """
        return tuple(self._find_dependencies())

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """The predecessors of each point: its dependencies, or in a given order the item before it."""
        if self.given:
            return tuple((n - 1,) if n else () for n in range(len(self.items)))
        return self.dependencies

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        before = self.before
        after: list[list[int]] = [[] for _ in before]
        for number, earlier in enumerate(before):
            for predecessor in earlier:
                after[predecessor].append(number)
        return tuple(map(tuple, after))

    @cached_property
    def units(self) -> tuple[int, ...]:
        """The numbers of the items that are loops or conditionals."""
        return tuple([n for n, item in enumerate(self.items) if item.instruction.opcode in UNITS])

    @cached_property
    def has_calls(self) -> bool:
        """Whether some items are in a flattened call, and others are not."""
        return any(item.path != self.items[0].path for item in self.items)

    @cached_property
    def is_chain(self) -> bool:
        """Whether dependencies leave one order: each item depends on the one before it."""
        if all(item.path is self._path for item in self.items):
            return self._is_chain_in(self._order())
        return all(n - 1 in self._direct_dependencies(n) for n in range(1, len(self.items)))

    def _is_chain_in(self, order: Order) -> bool:
        """The same for items that are all in the level's own computation, without finding the dependencies of each."""
        latest: dict[Instruction, int] = {}  # the last item that a value comes after
        number, previous = 0, None
        following = iter([item.instruction for item in self.items])
        item = next(following, None)
        for instruction in order:
            last = -1
            for before in (
                (*instruction.operands, *instruction.control) if instruction.control else instruction.operands
            ):
                if (found := latest.get(before, -1)) > last:
                    last = found
            if instruction is item:
                if previous is not None and last < number - 1 and not _share_a_sequence(previous, instruction):
                    return False
                last, number, previous, item = number, number + 1, instruction, next(following, None)
            if last >= 0:
                latest[instruction] = last
        return True

    def _direct_dependencies(self, number: int) -> Iterator[int]:
        """The items that a point depends on, directly or through joints."""
        stack = [*self.dependencies[number]]
        while stack:
            each = stack.pop()
            if each < len(self.items):
                yield each
            else:
                stack += self.dependencies[each]

    def depends(self, later: int, earlier: int) -> bool:
        """Whether an item depends on an earlier one."""
        seen = {later}
        stack = [later]
        while stack:
            ask()
            fresh = {each for each in self._direct_dependencies(stack.pop()) if each >= earlier} - seen
            if earlier in fresh:
                return True
            seen |= fresh
            stack += fresh
        return False


def skeleton(computation: Computation, path: Path, order: OrderOf, choose: Choose, *, given: bool) -> Skeleton:
    """The items of a computation; calls, conditionals with a known branch and loops of one trip are entered."""
    return Skeleton(
        tuple(_items(computation, path, order, choose)),
        given,
        path,
        lambda: order(computation),
        lambda: DependencyWalk(order, choose).dependencies(computation, path),
    )


def _items(computation: Computation, path: Path, order: OrderOf, choose: Choose) -> Iterable[Site]:
    if not path and order(computation) is computation.instructions:
        found = sites_of(computation)
        if not any(site.path for site in found):
            return found
    return _flattened(computation, path, order, choose)


def _flattened(computation: Computation, path: Path, order: OrderOf, choose: Choose) -> Iterator[Site]:
    ask()
    looked_at, found = notable(computation), order(computation)
    if found is not computation.instructions:
        members = frozenset(looked_at)
        looked_at = tuple(i for i in found if i in members)
    for instruction in looked_at:
        step = flattened_step(instruction, path, choose)
        if step is not None:
            yield from _flattened(step.computation, (*path, step), order, choose)
        elif is_item(instruction, path, choose):
            yield Site(path, instruction)
