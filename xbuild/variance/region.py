"""The region of a mesh under recording: its mesh, its builder, the channels that are taken, the types so far."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from attrs import define, field

from shape_inference import XbuildError, refuse

from ..core.builder import Builder, Value
from ..core.context import assigned
from ..core.graph import Computation, Instruction
from ..properties.mesh import Mesh
from ..properties.variances import Type
from .rules.site import Judgement
from .rules.walk import Walk


@define(eq=False)
class Region:
    """What collectives by axis name need to know; `builder` is the one that records now, the innermost."""

    mesh: Mesh
    walk: Walk
    parameters: tuple[Type, ...] = ()
    uses_partitions: bool = True
    channels: int = 0
    builders: list[Builder] = field(factory=list)
    types: dict[Instruction, Type] = field(factory=dict)

    def channel(self) -> int | None:
        """A channel id that no collective of the region has; none where devices are replicas."""
        if not self.uses_partitions:
            return None
        self.channels += 1
        return self.channels

    @property
    def builder(self) -> Builder:
        return self.builders[-1]


_current: ContextVar[Region | None] = ContextVar("xbuild_region", default=None)


def current(name: str) -> Region:
    """The region that is recorded; unbound_axis where there is none."""
    region = _current.get()
    if region is None:
        refuse(
            "unbound_axis",
            f"{name}: there is no mesh here, so that no axis has a name",
            "record it inside of a function given to xb.shard_map",
        )
    return region


def entered(region: Region) -> AbstractContextManager[Region | None]:
    """Inside, collectives by axis name mean this region."""
    return assigned(_current, region)


class RegionBuilder(Builder):
    """Records the program of a region; the outermost types each op at its call."""

    __slots__ = ("region",)

    region: Region

    @classmethod
    def of(cls, region: Region, name: str, parent: Builder | None = None) -> RegionBuilder:
        builder = cls(name, parent)
        builder.region = region
        region.builders.append(builder)
        return builder

    def sub_builder(self, name: str) -> Builder:
        return RegionBuilder.of(self.region, self._computation_names.unique(name), self)

    def record(self, *given: Any) -> Value:
        value = super().record(*given)
        if self.parent is None:
            try:
                self._enter(value.instruction)
            except XbuildError:
                self._instructions.pop()  # who catches the refusal may go on without the op
                raise
        return value

    def _enter(self, instruction: Instruction) -> None:
        region = self.region
        if instruction.opcode == "parameter":
            region.types[instruction] = region.parameters[instruction.attributes.number]
        else:
            operands = [region.types[each] for each in instruction.operands]
            found: Judgement = region.walk.judge(instruction, operands)
            region.types[instruction] = found.result

    def build(self, root: Value | None = None) -> Computation:
        computation = super().build(root)
        self.region.builders.remove(self)
        return computation


def type_of(value: Value) -> Type:
    """The type of a value that a region records: along which axes it varies, is unreduced, or reduced.

    Inside a loop or a branch types are not known before the loop or branch is recorded.
    Raises: unbound_axis outside of a region; invalid_operand for a value inside a loop or branch.
    """
    types: Mapping[Instruction, Type] = current("type_of").types
    if value.instruction not in types:
        refuse("invalid_operand", f"type_of: %{value.name} is inside a loop or branch, whose types are found with it")
    return types[value.instruction]
