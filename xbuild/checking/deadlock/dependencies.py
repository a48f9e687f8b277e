"""Dependencies between the items of a level: a walk that keeps for each value the nearest items before it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...properties.effects import UNITS, Path, notable
from ...properties.sites import sites
from ...properties.waiting import in_sequence
from ..model.flattening import Choose, OrderOf, flattened_step, is_item

Front: TypeAlias = tuple[int, ...]  # the nearest items before a place; of joint j the number -1 - j
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
        looked_at = frozenset(notable(computation))
        for instruction in self.order(computation):
            fronts = {front for each in instruction.operands if (front := value.get(each))}
            if instruction.control:
                fronts |= {front for each in instruction.control if (front := value.get(each))}
            front = self._united({*fronts, outside}) if outside or len(fronts) > 1 else fronts.pop() if fronts else ()
            if instruction in looked_at:
                front = self._visit(instruction, path, front)
            if front:
                value[instruction] = front

    def _visit(self, instruction: Instruction, path: Path, front: Front) -> Front:
        """Enter the items of an instruction; the front that its users come after."""
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
        """The union of fronts; where it is large, a joint that stands for it."""
        some = [front for front in fronts if front]
        if len(some) <= 1:
            return some[0] if some else ()
        found = tuple(sorted({each for front in some for each in front}))
        if len(found) <= MANY:
            return found
        return (-1 - self.joints.setdefault(found, len(self.joints)),)


def _sequences(item: Instruction) -> Iterable[Hashable]:
    """The sequences in which an item keeps its recorded order beyond dependencies; of a unit those inside it."""
    if item.opcode not in UNITS:
        own = in_sequence(item)
        return () if own is None else (own,)
    found = (in_sequence(site.instruction) for called in item.called for site in sites(called))
    return dict.fromkeys(sequence for sequence in found if sequence is not None)
