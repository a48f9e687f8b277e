"""Tables of the partitioner: what it does with an op, which attributes become local, how partial results are joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import Shape
from shape_inference.rules import RuleTable
from shape_inference.types import Dims

from ....core.builder import Value
from ....core.graph import Instruction
from ...axis import count
from ...sharding import Sharding
from .assignments import Assignment, Site
from .frame import Frame
from .layouts import Tree, local_dims

special = RuleTable("partition")
"""opcode -> rule(frame, instruction): the parts of an instruction's value, where its sharding rule does not tell."""

local_attributes = RuleTable("local attributes")
"""opcode -> rule(cut): the attributes that are others in the program of a device."""

joining = RuleTable("joining")
"""opcode -> rule(instruction): how partial results of cut reduction factors are joined; None where they cannot be."""

preparing = RuleTable("preparing")
"""opcode -> rule(frame, cut, operands): operands changed before the op, such as masked padding."""

finishing = RuleTable("finishing")
"""opcode -> rule(frame, cut, operands, value): the result of a device before partial results are joined."""

recording = RuleTable("recording")
"""opcode -> rule(frame, cut, operands): the result of a device by other ops; None where the op itself gives it."""

adapted = RuleTable("adapted")
"""opcode -> rule(instruction, rule): the rule by which an op is cut, where it is not the one that propagates."""

gathering = RuleTable("gathering")
"""opcode -> rule(instruction, factor): whether results along a reduction factor are gathered and reduced once more."""

gathered = RuleTable("gathered")
"""opcode -> rule(frame, cut, values): the results of such an op from the results of parts that devices hold."""

halos = RuleTable("halo")
"""opcode -> rule(cut): by operand and dimension what devices want of it, where it is cut and its elements move."""

Joined: TypeAlias = "Callable[..., Any] | None"


@frozen
class Cut:
    """How an instruction is cut: the assignment, and the shardings of operands and results that follow."""

    instruction: Instruction
    site: Site
    assignment: Assignment
    operands: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]

    def operand_dims(self, number: int) -> Dims:
        """The extents of a device's part of an operand."""
        return _local(self.operands[number], self.instruction.operands[number].shape)

    def result_dims(self, number: int = 0) -> Dims:
        """The extents of a device's part of a result."""
        shape = self.instruction.shape
        return _local(self.results[number], shape if isinstance(shape, Shape) else shape.elements[number])  # type: ignore[union-attr]

    def is_uneven(self, factor: int) -> bool:
        """Whether the parts of a factor have padding at the end."""
        return bool(self.site.rule.factors[factor].size % count(self.assignment[factor]))

    def uneven_reductions(self) -> list[int]:
        """Cut reduction factors whose parts have padding."""
        factors = enumerate(self.site.rule.factors)
        return [number for number, factor in factors if factor.kind == "reduction" and self.is_uneven(number)]


def _local(sharding: Sharding | None, shape: Any) -> Dims:
    assert isinstance(shape, Shape)
    assert sharding is not None
    return local_dims(sharding, shape.dims)


PartRule: TypeAlias = Callable[[Frame, Instruction], Tree]
Operands: TypeAlias = list[Value]
