"""Facts of a device: for each conditional the branches that may be taken, for each loop the trip counts."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from shape_inference import Shape

from ...core.graph import Instruction
from .analysis import Key
from .lattice import Leaf, bounds_of, possible

MOST_WAYS = 64  # trip counts of one site


@define(eq=False)
class Facts:
    """The decisions of a device by site.

    `decides` has all branches or trip counts that are possible; `turns` has them in the order in which a run makes
    them. None stands for unknown decisions.
    """

    decides: dict[Key, frozenset[int] | None] = field(factory=dict)
    turns: dict[Key, list[int] | None] = field(factory=dict)

    def add(self, place: Key, ways: frozenset[int] | None, is_repeated: bool) -> None:
        known = self.decides.get(place, frozenset())
        both = None if ways is None or known is None else known | ways
        self.decides[place] = None if both is not None and len(both) > MOST_WAYS else both
        turns = self.turns.setdefault(place, [])
        if turns is not None and ways is not None and len(ways) == 1 and not is_repeated:
            turns.extend(ways)
        else:
            self.turns[place] = None


def branch_number(conditional: Instruction, index: Any, count: int) -> int:
    """The branch that an index takes: of a pred the first where it is true, the last where it is out of range."""
    if _is_pred(conditional):
        return 0 if index else 1
    return int(index) if 0 <= index < count else count - 1


def _is_pred(conditional: Instruction) -> bool:
    shape = conditional.operands[0].shape
    return isinstance(shape, Shape) and shape.dtype.kind == "pred"


def ways_of(conditional: Instruction, index: Leaf, count: int) -> frozenset[int]:
    """The branches that may be taken."""
    if possible(index):
        return frozenset(branch_number(conditional, each, count) for each in possible(index))
    bounds = bounds_of(index, conditional.operands[0].shape)
    if bounds is None or _is_pred(conditional):
        return frozenset(range(count))
    inside = range(max(bounds[0], 0), min(bounds[1], count - 1) + 1)
    return frozenset((*inside, *([count - 1] if bounds[0] < 0 or bounds[1] >= count else [])))
