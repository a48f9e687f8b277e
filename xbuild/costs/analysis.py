"""The walk over a program: what each instruction costs at each execution, and how often it is executed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from attrs import frozen

from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..properties.trip_counts import noted_trips, trips_of
from .operations import work_of_instruction
from .traffic import bytes_read, bytes_written
from .work import NO_WORK, Work


@frozen
class InstructionCost:
    """The cost of an instruction of a computation: of one execution, and how often a device executes it.

    `work` holds the operations, `read` bytes of each operand, `written` bytes of the result. `times` counts the
    executions; a loop whose trips are not known counts as one trip, and `is_known` is False inside it.
    """

    instruction: Instruction
    computation: Computation
    work: Work
    read: tuple[int, ...]
    written: int
    times: int
    is_known: bool

    @property
    def bytes(self) -> int:
        """Bytes that one execution reads and writes."""
        return sum(self.read) + self.written


class Analysis:
    """The costs of an entry computation and of all that it calls; of a conditional the branch with the most work."""

    def __init__(self, entry: Computation) -> None:
        self.entry = entry
        self._work: dict[Computation, Work] = {}
        self._totals: dict[Computation, tuple[int, int]] = {}

    def work_of(self, computation: Computation) -> Work:
        """The Work of one execution of a computation."""
        if computation not in self._work:
            for each in computation.reachable(self._work):
                self._work[each] = self._sum(each)
        return self._work[computation]

    def _sum(self, computation: Computation) -> Work:
        return sum((self._work_at(each) for each in computation.instructions), NO_WORK)

    def _work_at(self, instruction: Instruction) -> Work:
        """The Work of an instruction with that of the computations that it calls."""
        own = work_of_instruction(instruction, self.work_of)
        return sum((self.work_of(called) * times for called, times, _ in self.calls(instruction)), own)

    def calls(self, instruction: Instruction) -> Iterator[tuple[Computation, int, bool]]:
        """The computations that an instruction runs as a whole, how often each, and whether that is known."""
        how = OPS[instruction.opcode].properties.calls
        if how == "branch":
            yield max(instruction.called, key=self._expense), 1, True
        elif how == "loop":
            trips = trips_of_loop(instruction)
            for called in instruction.called:
                extra = instruction.opcode == "while" and called is instruction.attributes.condition
                yield called, (trips if trips is not None else 1) + (extra and trips is not None), trips is not None
        elif how in ("once", "wrapped") and instruction.opcode != "fusion":
            yield from ((called, 1, True) for called in instruction.called)

    def _expense(self, branch: Computation) -> tuple[int, int, int]:
        work = self.work_of(branch)
        return work.flops, work.transcendentals, len(branch.instructions)

    def rows(self) -> Iterator[InstructionCost]:
        """The cost of every instruction that is executed, callers before what they call."""
        times: dict[Computation, int] = defaultdict(int, {self.entry: 1})
        known: dict[Computation, bool] = defaultdict(lambda: True)
        for computation in reversed(self.entry.reachable()):
            for instruction in computation.instructions if times[computation] else ():
                yield self._row(instruction, computation, times[computation], known[computation])
                for called, count, is_known in self.calls(instruction):
                    times[called] += times[computation] * count
                    known[called] &= is_known and known[computation]

    def _row(self, instruction: Instruction, computation: Computation, times: int, known: bool) -> InstructionCost:
        work = work_of_instruction(instruction, self.work_of)
        return InstructionCost(
            instruction, computation, work, bytes_read(instruction), bytes_written(instruction), times, known
        )


def trips_of_loop(loop: Instruction) -> int | None:
    """How often a loop runs: as constants tell, the extent of a scan, or what a compiler noted; None if unknown."""
    if loop.opcode == "scan":
        return _length(loop)
    found = trips_of(loop)
    return found.count if found is not None else noted_trips(loop)


def _length(scan: Instruction) -> int:
    attributes = scan.attributes
    if attributes.length is not None:
        return attributes.length  # type: ignore[no-any-return]
    return scan.operands[0].shape.dims[attributes.dimension]  # type: ignore[union-attr, no-any-return]
