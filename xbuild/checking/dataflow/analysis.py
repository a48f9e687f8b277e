"""Forward dataflow analysis of a program: a walk through its calls, with a table of transfer functions.

Replication (which devices hold one value), value numbering (which values of several programs are equal) and the
sharing of values by the interpreter run on this engine. Each states itself what a loop, a scan and a conditional do:
replication iterates the state of a loop to a fixpoint inside its walk, value numbering walks a body once and refines
between walks.

Constant propagation has its own walk. Its devices are coroutines that stop at collectives until the others have
arrived, it visits only a backward slice, and it walks loops trip by trip; an engine with all of that would be larger
than both walks together. Ranges are part of its lattice, not an analysis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from attrs import define, field

from shape_inference import AnyShape, RuleTable
from shape_inference.trees import fill, flatten, map_leaves

from ...core.graph import Computation, Instruction
from ...process.limits import ask
from ...process.progress import over
from ...properties.effects import IDENTITIES, PLAIN_CALLS, Path, steps
from ...properties.order import linear
from ...properties.sites import Key, site_key

Leaf: TypeAlias = Any  # the fact for one array or token; never a tuple
Reading: TypeAlias = Any  # a leaf, or a tuple of readings for a tuple


class TooMuchError(Exception):
    """The analysis would visit more than `most` instructions; nested calls can reach exponentially many."""


@define(eq=False)
class DataflowAnalysis(ABC):
    """An analysis with the transfer functions `rules`; `decision_facts` has one for each predicate, index or count."""

    most: ClassVar[int] = 3_000_000
    rules: RuleTable
    decision_facts: dict[Key, Leaf] = field(factory=dict, init=False)
    work: int = field(default=0, init=False)

    @abstractmethod
    def join(self, a: Leaf, b: Leaf) -> Leaf:
        """The join of two facts: what holds of a value that is described by either."""

    @abstractmethod
    def trip_count_fact(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        """The fact for the number of trips of a scan."""

    @abstractmethod
    def default_fact(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """The fact for the result of an op without a rule, by the facts of its operands."""

    def run(self, computation: Computation, parameters: list[Reading], path: Path = ()) -> Reading:
        """The reading of the root, given those of the parameters.

        Raises TooMuchError beyond `most` instructions.
        """
        return self._run(computation, parameters, path)

    def _run(self, computation: Computation, parameters: list[Reading], path: Path) -> Reading:
        self.work += len(computation.instructions)
        if self.work > self.most:
            raise TooMuchError
        ask()
        known: dict[Instruction, Reading] = dict(zip(computation.parameters, parameters, strict=True))
        for instruction in over(linear(computation) or (), "following values", "instructions"):
            if instruction not in known:
                known[instruction] = self._read(instruction, [known[o] for o in instruction.operands], path)
        return known[computation.root]

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        opcode = instruction.opcode
        if opcode in WALK_RULES:
            return WALK_RULES[opcode](self, instruction, operands, path)
        if opcode in self.rules:
            return self.rules[opcode](self, instruction, *operands)
        if opcode in IDENTITIES:
            return operands[0]
        return self.fill_shape(
            self.default_fact(instruction, [leaf for o in operands for leaf in flatten(o)]), instruction.shape
        )

    def fill_shape(self, leaf: Leaf, shape: AnyShape) -> Reading:
        """The reading of a result all of whose leaves have one fact."""
        return fill(shape, leaf)

    def build_tuple(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        return (*operands,)

    def take_element(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        return operands[0][instruction.attributes.index]

    def run_call(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        step = next(steps(instruction))
        return self.run(step.computation, operands, (*path, step))

    @abstractmethod
    def run_while(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after any number of trips of a while."""

    @abstractmethod
    def run_scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of a scan after all of its trips."""

    @abstractmethod
    def run_conditional(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of a conditional, whichever branch is taken."""

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        """Join the fact for a predicate, index or trip count into that of its site."""
        key = site_key(instruction, path)
        self.decision_facts[key] = self.join(self.decision_facts[key], leaf) if key in self.decision_facts else leaf

    def join_readings(self, a: Reading, b: Reading) -> Reading:
        return map_leaves(self.join, a, b)


WALK_RULES: dict[str, Callable[[DataflowAnalysis, Instruction, list[Reading], Path], Reading]] = {
    "tuple": lambda analysis, *of: analysis.build_tuple(*of),
    "get_tuple_element": lambda analysis, *of: analysis.take_element(*of),
    **dict.fromkeys(PLAIN_CALLS, lambda analysis, *of: analysis.run_call(*of)),
    "while": lambda analysis, *of: analysis.run_while(*of),
    "scan": lambda analysis, *of: analysis.run_scan(*of),
    "conditional": lambda analysis, *of: analysis.run_conditional(*of),
}
