"""How long each instruction takes by a roofline: the longer of its operations and its bytes, each at full speed."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from shape_inference import Shape

from ..core.graph import Computation, Instruction
from ..costs.analysis import Analysis
from ..costs.operations import work_of_instruction
from ..costs.traffic import bytes_read, bytes_written
from .machines import Machine

PRODUCTS = frozenset({"dot", "convolution", "ragged_dot"})


@frozen
class Roofline:
    """The seconds of an instruction's operations at the peak of its element type, and of its bytes."""

    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory)

    @property
    def bound(self) -> str:
        """`compute` or `memory`, whichever takes longer."""
        return "compute" if self.compute > self.memory else "memory"


@define(eq=False)
class Durations:
    """The durations of one program's instructions on a machine."""

    analysis: Analysis
    machine: Machine
    _whole: dict[Computation, float] = field(factory=dict, init=False)

    def roofline(self, instruction: Instruction) -> Roofline:
        """The two terms of one execution of an instruction, without what it calls as a part of the program."""
        work = work_of_instruction(instruction, self.analysis.work_of)
        moved = sum(bytes_read(instruction)) + bytes_written(instruction)
        operations = work.flops + work.transcendentals
        compute = operations / self.machine.peak(_dtype(instruction)) if operations else 0.0
        return Roofline(compute, moved / self.machine.memory_bandwidth)

    def whole(self, instruction: Instruction) -> float:
        """The seconds of an instruction with all that it calls, loops by their trips."""
        own = self.roofline(instruction).seconds
        return own + sum(self._of(called) * times for called, times, _ in self.analysis.calls(instruction))

    def _of(self, computation: Computation) -> float:
        if computation not in self._whole:
            for each in computation.reachable(self._whole):
                self._whole[each] = sum(map(self.whole, each.instructions))
        return self._whole[computation]

    def body(self, computation: Computation) -> float:
        """The seconds of a computation that runs once."""
        return self._of(computation)


def _dtype(instruction: Instruction) -> str:
    """The element type whose peak counts: of a product that of its first operand, of a fusion that of its product."""
    product = instruction
    if instruction.opcode == "fusion":
        product = max(_products(instruction.attributes.calls), key=lambda each: _size(each), default=instruction)
    shape = product.operands[0].shape if product.opcode in PRODUCTS else product.shape
    return shape.dtype.name if isinstance(shape, Shape) else "f32"


def _products(computation: Computation) -> Iterator[Instruction]:
    return (each for each in computation.instructions if each.opcode in PRODUCTS)


def _size(instruction: Instruction) -> int:
    return instruction.shape.size if isinstance(instruction.shape, Shape) else 0
