"""The walk over a program that gives each value its type and finds where a cast is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import XbuildError

from ...core.graph import Computation, Instruction
from ...properties.mesh import Mesh
from ...properties.order import ordered
from ...properties.variances import Type
from .site import Judgement, Site, dressed, variance

Casts: TypeAlias = Literal["all", "operands", "none"]


@frozen(eq=False)
class Typed:
    """A computation with the type of each value; `judged` has, for each, what its operands need."""

    computation: Computation
    parameters: tuple[Type, ...]
    judged: dict[Instruction, Judgement]
    root: Type

    def type_of(self, instruction: Instruction) -> Type:
        return self.judged[instruction].result


@define(eq=False)
class Walk:
    """Types by the rules of every op, on one mesh; a called computation is typed once for each types of its arguments.

    `casts` says what may be cast unasked: operands of ops ("operands"), also what enters loops and branches ("all"),
    or nothing ("none"). `frees_constants`, for derivatives: a constant beside a reduced value is cast to reduced, and a
    cotangent that is one value on all devices is cast where one that varies is taken.
    """

    mesh: Mesh
    num_replicas: int
    num_partitions: int
    casts: Casts = "all"
    frees_constants: bool = False
    _known: dict[tuple[Computation, tuple[Type, ...]], Typed] = field(factory=dict, init=False)

    def computation(self, computation: Computation, parameters: Sequence[Type]) -> Typed:
        """The computation with parameters of these types; refuses what an op of it refuses."""
        key = computation, tuple(parameters)
        if key not in self._known:
            self._known[key] = self._typed(*key)
        return self._known[key]

    def _typed(self, computation: Computation, parameters: tuple[Type, ...]) -> Typed:
        judged: dict[Instruction, Judgement] = {}
        for instruction in ordered(computation):
            if instruction.opcode == "parameter":
                judged[instruction] = Judgement((), parameters[instruction.attributes.number])
            else:
                judged[instruction] = self.judge(instruction, [judged[o].result for o in instruction.operands])
        return Typed(computation, parameters, judged, judged[computation.root].result)

    def judge(self, instruction: Instruction, operands: Sequence[Type]) -> Judgement:
        """What an instruction makes of operands of these types."""
        site = Site(self, instruction, tuple(operands))
        try:
            found = variance[instruction.opcode](site)
        except XbuildError as error:
            raise dressed(site, error) from None
        assert isinstance(found, Judgement)
        return found
