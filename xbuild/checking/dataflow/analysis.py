"""Forward dataflow analysis of a program: a walk through calls, loops and branches with a table of transfer functions.

`replication` (which devices hold one value), `cross_device_values` (which values of several programs are equal) and
the sharing of values by the interpreter are analyses of this kind; constant propagation has a walk of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from attrs import define, field

from shape_inference import AnyShape, RuleTable, TupleShape

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import IDENTITIES, PLAIN_CALLS, Path, steps
from ...properties.order import linear
from ..model.scans import scan_result, split_carries, trip_results

Leaf: TypeAlias = Any  # the fact for one array or token; never a tuple
Reading: TypeAlias = Any  # a leaf, or a tuple of readings for a tuple
Key: TypeAlias = tuple[Any, ...]

_UNKNOWN = object()


class TooMuchError(Exception):
    """The analysis would visit more than `most` instructions; nested calls can reach exponentially many."""


def path_key(path: Path) -> Key:
    """A key of a path of calls."""
    return (*((id(step.instruction), step.role) for step in path),)


def key_of(instruction: Instruction, path: Path) -> Key:
    """A key of an instruction and the path of calls that leads to it."""
    return (*path_key(path), id(instruction))


@define(eq=False)
class Analysis(ABC):
    """An analysis with the transfer functions `rules`; `decides` has a fact for each predicate, index or count."""

    most: ClassVar[int] = 3_000_000
    rules: RuleTable
    decides: dict[Key, Leaf] = field(factory=dict, init=False)
    work: int = field(default=0, init=False)

    @abstractmethod
    def join(self, a: Leaf, b: Leaf) -> Leaf:
        """The join of two facts: what holds of a value that is described by either."""

    @abstractmethod
    def counted(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        """The fact for the number of trips of a scan."""

    @abstractmethod
    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """The fact for the result of an op without a rule, by the facts of its operands."""

    def run(self, computation: Computation, parameters: list[Reading], path: Path = ()) -> Reading:
        """The reading of the root, by that of the parameters.

        Raises TooMuchError beyond `most` instructions.
        """
        return self._run(computation, parameters, path)

    def _run(self, computation: Computation, parameters: list[Reading], path: Path) -> Reading:
        self.work += len(computation.instructions)
        if self.work > self.most:
            raise TooMuchError
        ask()
        known: dict[Instruction, Reading] = dict(zip(computation.parameters, parameters, strict=True))
        for instruction in linear(computation) or ():
            if instruction not in known:
                known[instruction] = self._read(instruction, [known[o] for o in instruction.operands], path)
        return known[computation.root]

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        opcode = instruction.opcode
        if opcode in BY_THE_WALK:
            return BY_THE_WALK[opcode](self, instruction, operands, path)
        if opcode in self.rules:
            return self.rules[opcode](self, instruction, *operands)
        if opcode in IDENTITIES:
            return operands[0]
        return self.spread(self.default(instruction, [leaf for o in operands for leaf in flat(o)]), instruction.shape)

    def spread(self, leaf: Leaf, shape: AnyShape) -> Reading:
        """The reading of a result whose leaves all have one fact."""
        return spread(leaf, shape)

    def tupled(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        return (*operands,)

    def element(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        return operands[0][instruction.attributes.index]

    def call(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        step = next(steps(instruction))
        return self.run(step.computation, operands, (*path, step))

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after any number of trips: the fixpoint of joining with the state after one more trip."""
        condition, body = steps(instruction)
        state = operands[0]
        while True:
            holds = self.run(condition.computation, [state], (*path, condition))
            following = self.joined(state, self.run(body.computation, [state], (*path, body)))
            if following == state:
                break
            state = following
        self.decide(instruction, path, holds)
        return self.mapped(state, lambda leaf: self.join(leaf, holds))

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The results after any number of trips, joined with the fact for their number."""
        (body,) = steps(instruction)
        count = self.counted(instruction, operands)
        self.decide(instruction, path, count)
        slices, carries = split_carries(instruction, operands)
        while True:
            root = self.run(body.computation, [*slices, *carries], (*path, body))
            outputs, following = trip_results(instruction, root)
            joined = [*map(self.joined, carries, following)]
            if joined == carries:
                break
            carries = joined
        return self.mapped(scan_result(instruction, [*outputs, *carries]), lambda leaf: self.join(leaf, count))

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The join of the results of all branches and of the fact for the index."""
        index = operands[0]
        self.decide(instruction, path, index)
        results = [
            self.run(s.computation, [o], (*path, s)) for s, o in zip(steps(instruction), operands[1:], strict=True)
        ]
        result = results[0]
        for each in results[1:]:
            result = self.joined(result, each)
        return self.mapped(result, lambda leaf: self.join(leaf, index))

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        """Join the fact for a predicate, index or trip count into those kept for its site."""
        key = key_of(instruction, path)
        self.decides[key] = self.join(self.decides[key], leaf) if key in self.decides else leaf

    def joined(self, a: Reading, b: Reading) -> Reading:
        if isinstance(a, tuple):
            return tuple(self.joined(x, y) for x, y in zip(a, b, strict=True))
        return self.join(a, b)

    def mapped(self, reading: Reading, change: Callable[[Leaf], Leaf]) -> Reading:
        return tuple(self.mapped(each, change) for each in reading) if isinstance(reading, tuple) else change(reading)


BY_THE_WALK: dict[str, Callable[[Analysis, Instruction, list[Reading], Path], Reading]] = {
    "tuple": lambda analysis, *of: analysis.tupled(*of),
    "get_tuple_element": lambda analysis, *of: analysis.element(*of),
    **dict.fromkeys(PLAIN_CALLS, lambda analysis, *of: analysis.call(*of)),
    "while": lambda analysis, *of: analysis.loop(*of),
    "scan": lambda analysis, *of: analysis.scan(*of),
    "conditional": lambda analysis, *of: analysis.branches(*of),
}


def flat(reading: Reading) -> list[Leaf]:
    return [leaf for each in reading for leaf in flat(each)] if isinstance(reading, tuple) else [reading]


def spread(leaf: Leaf, shape: AnyShape) -> Reading:
    """The same leaf for every leaf of a shape."""
    return tuple(spread(leaf, element) for element in shape.elements) if isinstance(shape, TupleShape) else leaf
