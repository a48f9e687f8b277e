"""Which small values are known before the run, so that a loop's trips or a branch are: the arithmetic of counters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import Shape, TupleShape

from ..graph import Computation, Instruction
from .analysis import Analysis, Key, Leaf, Reading, TooMuchError, flat, key_of, spread, way_of
from .effects import LOOPS, Path, communicates, remembered, steps
from .entering import UNITS
from .folding import element, known, stacked
from .scans import parted, results_of, slices_of, whole

BUDGET = 200_000
SILENT = 5_000  # instructions of a scan in which nothing communicates, so that only its results may matter


@define(eq=False)
class Constants(Analysis):
    """The walk of one device; a leaf is a NumPy scalar, a Vector of them, or None where only the run can tell.

    `turns` has what is decided at a place, each time that a run comes there; None where it may come there otherwise.
    """

    device: int
    num_partitions: int
    budget: int = BUDGET
    turns: dict[Key, list[int] | None] = field(factory=dict, init=False)
    _doubts: int = field(default=0, init=False)

    def form(self, computation: Computation, parameters: list[Reading], path: Path) -> Hashable | None:
        """A call that decides nothing, or of which what it decides is not counted turn by turn, with the same bits."""
        if self._doubts:
            return form_of(computation, way_of(path) if _decides(computation) else (), parameters)
        is_trip = path[-1].instruction.opcode in LOOPS  # of which each brings others
        return None if is_trip or _decides(computation) else form_of(computation, (), parameters)

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a is not None and b is not None and a == b else None

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        return None

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        super().decide(instruction, path, leaf)
        key = key_of(instruction, path)
        turns = self.turns.setdefault(key, [])
        if turns is not None:
            if leaf is None or self._doubts:
                self.turns[key] = None
            else:
                turns.append(int(leaf))

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """Trip by trip for as long as the condition is known; what is said of the loop is the number of its trips."""
        condition, body = steps(instruction)
        state, trips = operands[0], 0
        while self.budget > 0:
            holds = self.run(condition.computation, [state], (*path, condition))
            if holds is None:
                break
            if not holds:
                self.decide(instruction, path, trips)
                return state
            state, trips = self.run(body.computation, [state], (*path, body)), trips + 1
            self.budget -= len(body.computation.instructions) + len(condition.computation.instructions)
        state = self._any_trips(instruction, self.joined(operands[0], state), path)
        self.decide(instruction, path, None)
        return state

    def _any_trips(self, instruction: Instruction, state: Reading, path: Path) -> Reading:
        condition, body = steps(instruction)
        self._doubts += 1
        while True:
            self.run(condition.computation, [state], (*path, condition))
            following = self.joined(state, self.run(body.computation, [state], (*path, body)))
            if following == state:
                self._doubts -= 1
                return state
            state = following

    def counted(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        count, is_bound = slices_of(scan)
        return None if is_bound else count

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """Trip by trip, where that is worth it; how many there are is known at once."""
        (body,) = steps(instruction)
        count, (inputs, state) = self.counted(instruction, operands), parted(instruction, operands)
        self.decide(instruction, path, count)
        if not communicates(body.computation) and not any(leaf is not None for leaf in flat((*operands,))):
            return spread(None, instruction.shape)
        most = self.budget if communicates(body.computation) else min(self.budget, SILENT)
        if count is None or count * len(body.computation.instructions) > most:
            return self._any_slices(instruction, state, path)
        given = []
        for trip in range(count):
            self.budget -= len(body.computation.instructions)
            place = count - 1 - trip if instruction.attributes.is_reverse else trip
            slices = [element(each, place) for each in inputs]
            outputs, state = results_of(instruction, self.run(body.computation, [*slices, *state], (*path, body)))
            given.append(outputs)
        return whole(instruction, [*_stacked(instruction, given), *state])

    def _any_slices(self, instruction: Instruction, state: list[Reading], path: Path) -> Reading:
        (body,) = steps(instruction)
        unknown = [None] * (len(instruction.operands) - len(state))
        self._doubts += 1
        while True:
            root = self.run(body.computation, [*unknown, *state], (*path, body))
            following = [*map(self.joined, state, results_of(instruction, root)[1])]
            if following == state:
                self._doubts -= 1
                return whole(instruction, [*_stacked(instruction, []), *state])
            state = following

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The branch that is taken where that is known; what is said of the conditional is its number."""
        taken = [*steps(instruction)]
        number = None if operands[0] is None else branch_number(instruction, operands[0], len(taken))
        self.decide(instruction, path, number)
        if number is not None:
            return self.run(taken[number].computation, [operands[1 + number]], (*path, taken[number]))
        self._doubts += 1
        results = [self.run(step.computation, [o], (*path, step)) for step, o in zip(taken, operands[1:], strict=True)]
        self._doubts -= 1
        result = results[0]
        for each in results[1:]:
            result = self.joined(result, each)
        return result


def branch_number(conditional: Instruction, index: Any, count: int) -> int:
    """The branch that an index takes: of a pred the first where it is true, the last where it is out of range."""
    shape = conditional.operands[0].shape
    if isinstance(shape, Shape) and shape.dtype.kind == "pred":
        return 0 if index else 1
    return int(index) if 0 <= index < count else count - 1


def _stacked(scan: Instruction, given: Sequence[Sequence[Leaf]]) -> list[Leaf]:
    """The outputs of all trips, in the order of the slices; nothing is known of them where no trip was gone through."""
    shapes = scan.shape.elements if isinstance(scan.shape, TupleShape) else (scan.shape,)
    columns = [*zip(*(given[::-1] if scan.attributes.is_reverse else given), strict=True)]
    outputs = parted(scan, shapes)[0]
    return (
        [stacked(shape, column) for shape, column in zip(outputs, columns, strict=True)]
        if given
        else [None] * len(outputs)
    )


def constants(computation: Computation, device: int, num_partitions: int) -> Constants:
    """What is known on a device before it runs."""
    walk = Constants(known, device, num_partitions)
    with np.errstate(all="ignore"):
        try:
            walk.run(computation, [spread(None, p.shape) for p in computation.parameters])
        except TooMuchError:
            return Constants(known, device, num_partitions)
    return walk


@remembered
def _decides(computation: Computation) -> bool:
    """Whether there is a loop or a conditional in it, or in what it calls."""
    return any(i.opcode in UNITS or any(map(_decides, i.called)) for i in computation.instructions if i.called)


def form_of(computation: Computation, way: Hashable, parameters: list[Reading]) -> Hashable | None:
    """A computation called with these, by their bits: 0.0 and -0.0 are two; None where one is more than a scalar."""
    found: list[Any] = []
    for leaf in flat((*parameters,)):
        if leaf is not None and not isinstance(leaf, np.generic):
            return None
        found.append(leaf if leaf is None else (leaf.dtype, leaf.tobytes()))
    return computation, way, *found
