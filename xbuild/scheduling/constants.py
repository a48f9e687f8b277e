"""Which small values are known before the run, so that a loop's trips or a branch are: the arithmetic of counters."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import RuleTable, Shape

from ..graph import Computation, Instruction
from .analysis import Analysis, Key, Leaf, Reading, key_of, spread
from .effects import Path, steps

known = RuleTable("known")

BUDGET = 200_000


@define(eq=False)
class Constants(Analysis):
    """The walk of one device; a leaf is a NumPy scalar, or None where only the run can tell.

    `turns` has what is decided at a place, each time that a run comes there; None where it may come there otherwise.
    """

    device: int
    num_partitions: int
    budget: int = BUDGET
    turns: dict[Key, list[int] | None] = field(factory=dict, init=False)
    _doubts: int = field(default=0, init=False)

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


def constants(computation: Computation, device: int, num_partitions: int) -> Constants:
    """What is known on a device before it runs."""
    walk = Constants(known, device, num_partitions)
    with np.errstate(all="ignore"):
        walk.run(computation, [spread(None, p.shape) for p in computation.parameters])
    return walk


def _is_small(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and not shape.dims and shape.dtype.kind in ("signed", "unsigned", "pred")


def _folding(function: Callable[..., Any]) -> Callable[..., Leaf]:
    def fold(of: Constants, instruction: Instruction, *operands: Leaf) -> Leaf:
        if not _is_small(instruction) or any(operand is None for operand in operands):
            return None
        return instruction.shape.dtype.dtype.type(function(*operands))  # type: ignore[union-attr]

    return fold


_FOLDED: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "negate": lambda x: x * -1,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "convert": lambda x: x,
}
for _opcode, _function in _FOLDED.items():
    known.enter(_opcode, _folding(_function))

_COMPARISONS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _dividing(function: Callable[..., Any]) -> Callable[..., Leaf]:
    """Of whole numbers, toward zero; what a zero divides only the run can tell."""
    fold = _folding(lambda lhs, rhs: function(int(lhs), int(rhs)))

    def divide(of: Constants, instruction: Instruction, lhs: Leaf, rhs: Leaf) -> Leaf:
        is_told = lhs is not None and rhs is not None and rhs != 0 and not (rhs == -1 and lhs < 0)
        return fold(of, instruction, lhs, rhs) if is_told else None

    return divide


def _quotient(lhs: int, rhs: int) -> int:
    whole = abs(lhs) // abs(rhs)
    return whole if (lhs < 0) == (rhs < 0) else -whole


known.enter("divide", _dividing(_quotient))
known.enter("remainder", _dividing(lambda lhs, rhs: lhs - rhs * _quotient(lhs, rhs)))


@known
def constant(of: Constants, instruction: Instruction) -> Leaf:
    return instruction.attributes.literal[()] if _is_small(instruction) else None


@known
def replica_id(of: Constants, instruction: Instruction) -> Leaf:
    return np.uint32(of.device // of.num_partitions)


@known
def partition_id(of: Constants, instruction: Instruction) -> Leaf:
    return np.uint32(of.device % of.num_partitions)


@known
def compare(of: Constants, instruction: Instruction, lhs: Leaf, rhs: Leaf) -> Leaf:
    if lhs is None or rhs is None:
        return None
    return np.bool_(_COMPARISONS[instruction.attributes.direction](lhs, rhs))


@known
def select(of: Constants, instruction: Instruction, pred: Leaf, on_true: Reading, on_false: Reading) -> Reading:
    if pred is None:
        return of.joined(on_true, on_false)
    return on_true if pred else on_false
