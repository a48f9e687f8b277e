"""Requests: what a plan yields for an op that needs another device or the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from shape_inference import AnyShape, refuse
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import START_OF, TRANSFERS, base_of, collective_in, is_in_place, start_of
from xbuild.properties.host import rendezvous_of

from ..rules.lines import Path
from ..rules.region import Region

if TYPE_CHECKING:
    from .emit import Emitter
    from .expressions import Expr


@frozen(slots=False, eq=False)
class Request:
    """The op that asks, its call path, its attributes with regions as functions; of a start those of its collective."""

    instruction: Instruction
    path: Path
    attributes: Mapping[str, Any]

    @cached_property
    def collective(self) -> Instruction | None:
        """The collective that it comes to or starts."""
        return collective_in(self.instruction)

    @property
    def is_start(self) -> bool:
        """Whether the device goes on at once, and waits at the done."""
        return self.collective is not self.instruction or self.instruction.opcode != base_of(self.instruction)

    @property
    def result_shape(self) -> AnyShape:
        """What each member of a collective gets in the end."""
        found = self.collective or self.instruction
        pair = found.opcode in ("all_gather_start", "collective_permute_start")
        return found.shape.elements[1] if pair else found.shape  # type: ignore[union-attr]

    @cached_property
    def key(self) -> tuple[tuple[int, int | None], ...]:
        """What tells its place from every other: the instructions on the way and the branches taken."""
        return tuple((id(place.instruction), place.branch) for place in self.path)

    @cached_property
    def transfer(self) -> Instruction:
        """The send or recv that it is or completes."""
        found = start_of(self.instruction) if self.instruction.opcode in START_OF else self.instruction
        return found or self.instruction

    @cached_property
    def rendezvous(self) -> str | None:
        """The name of the host function at the other end of a transfer, where that is a Python function."""
        transfer = self.transfer
        return rendezvous_of(transfer) if transfer.opcode in TRANSFERS else None

    @cached_property
    def targets(self) -> dict[int, int]:
        """The device that each source of its pairs sends to."""
        return dict(self.attributes["source_target_pairs"])

    @cached_property
    def sources(self) -> dict[int, int]:
        """The device that each target of its pairs gets from."""
        return {target: source for source, target in self.attributes["source_target_pairs"]}


def emit_request(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """The line that yields a request and takes the answer apart."""
    return emitter.evaluated(instruction.shape, asked(emitter, instruction, operands, path), path)


def asked(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> str:
    """The expression that yields a request."""
    from .expressions import spell

    options = emitter.options
    attributes = attributes_of(instruction, options.sequential, options.flushed)
    request = emitter.bind("q", Request(instruction, path, attributes))
    return f"yield {request}, {spell(tuple(operands))}"


def attributes_of(instruction: Instruction, sequential: bool, flushed: bool) -> dict[str, Any]:
    """The attributes of a request, with computations as functions; of a start those of its collective."""
    asked_for = collective_in(instruction) or instruction
    if is_in_place(asked_for):
        refuse(
            "invalid_attribute",
            f"%{instruction.name}: a collective-permute in place (slice_sizes) is read, checked and drawn, and has no "
            "values here",
            "a collective-permute of the slice and a dynamic-update-slice of what it gives have values",
        )
    return {
        key: Region.of(value, sequential, flushed=flushed) if isinstance(value, Computation) else value
        for key, value in asked_for.attribute_values().items()
    }
