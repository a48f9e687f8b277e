"""The skeleton of a program at one level: its items in order, with their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from attrs import frozen

from ...core.graph import Computation
from ...properties.effects import UNITS, Path, notable
from ...properties.sites import Site, sites_of
from ..model.flattening import Choose, OrderOf, flattened_step, is_item
from .dependencies import DependencyWalk, Front


@frozen(eq=False, slots=False)
class Skeleton:
    """The items of a level in recorded or given order: communicating instructions and units."""

    items: tuple[Site, ...]
    given: bool
    _find_dependencies: Callable[[], Iterable[Front]]

    @cached_property
    def dependencies(self) -> tuple[Front, ...]:
        """The nearest items before each item by dependencies, by number; found only where the recorded order fails.

        Where these are many a joint, a point without an item, stands for them. Joints are numbered on from the items.
        """
        return tuple(self._find_dependencies())

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """The predecessors of each point: its links, or in a given order the item before it."""
        if self.given:
            return tuple((n - 1,) if n else () for n in range(len(self.items)))
        return self.dependencies

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        before = self.before
        found: list[list[int]] = [[] for _ in before]
        for number, earlier in enumerate(before):
            for each in earlier:
                found[each].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def units(self) -> tuple[int, ...]:
        """The numbers of the items that are loops or conditionals."""
        return tuple([n for n, item in enumerate(self.items) if item.instruction.opcode in UNITS])

    @cached_property
    def has_calls(self) -> bool:
        """Whether some items stand in a flattened call, and others do not."""
        return any(item.path != self.items[0].path for item in self.items)

    @cached_property
    def is_chain(self) -> bool:
        """Whether dependencies leave one order: each item is linked to the one before it."""
        return all(n - 1 in self._direct_dependencies(n) for n in range(1, len(self.items)))

    def _direct_dependencies(self, number: int) -> Iterator[int]:
        """The items that a point is linked to, directly or through joints."""
        stack = [*self.dependencies[number]]
        while stack:
            each = stack.pop()
            if each < len(self.items):
                yield each
            else:
                stack += self.dependencies[each]

    def depends(self, later: int, earlier: int) -> bool:
        """Whether an item comes after another by dependencies."""
        seen = {later}
        stack = [later]
        while stack:
            fresh = {each for each in self._direct_dependencies(stack.pop()) if each >= earlier} - seen
            if earlier in fresh:
                return True
            seen |= fresh
            stack += fresh
        return False


def skeleton(computation: Computation, path: Path, order: OrderOf, choose: Choose, *, given: bool) -> Skeleton:
    """The items of a computation; calls, conditionals whose branch is known and loops of one trip are entered."""
    return Skeleton(
        tuple(_items(computation, path, order, choose)),
        given,
        lambda: DependencyWalk(order, choose).dependencies(computation, path),
    )


def _items(computation: Computation, path: Path, order: OrderOf, choose: Choose) -> Iterable[Site]:
    if not path and order(computation) is computation.instructions:
        found = sites_of(computation)
        if not any(site.path for site in found):
            return found
    return _flattened(computation, path, order, choose)


def _flattened(computation: Computation, path: Path, order: OrderOf, choose: Choose) -> Iterator[Site]:
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
