"""Requests: a plan yields a request at each op that needs another device, the host or a custom call."""

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
    """The instruction of a request, its call path, and its attributes; a start has those of its collective."""

    instruction: Instruction
    path: Path
    attributes: Mapping[str, Any]

    @cached_property
    def collective(self) -> Instruction | None:
        """The collective that the instruction is or starts."""
        return collective_in(self.instruction)

    @property
    def is_start(self) -> bool:
        """Whether the instruction is a start: the device goes on at once, and waits at the done."""
        return self.collective is not self.instruction or self.instruction.opcode != base_of(self.instruction)

    @property
    def result_shape(self) -> AnyShape:
        """The shape of the value that each member of the collective gets."""
        found = self.collective or self.instruction
        pair = found.opcode in ("all_gather_start", "collective_permute_start")
        return found.shape.elements[1] if pair else found.shape  # type: ignore[union-attr]

    @cached_property
    def key(self) -> tuple[tuple[int, int | None], ...]:
        """The identity of the call path: its instructions and the branches taken."""
        return tuple((id(place.instruction), place.branch) for place in self.path)

    @cached_property
    def transfer(self) -> Instruction:
        """The send or recv that the instruction is or completes."""
        found = start_of(self.instruction) if self.instruction.opcode in START_OF else self.instruction
        return found or self.instruction

    @cached_property
    def rendezvous(self) -> str | None:
        """The name of the Python host function at the other end of a transfer; None where the other end is a device."""
        transfer = self.transfer
        return rendezvous_of(transfer) if transfer.opcode in TRANSFERS else None

    @cached_property
    def targets(self) -> dict[int, int]:
        """The target device of each source device in the source-target pairs."""
        return dict(self.attributes["source_target_pairs"])

    @cached_property
    def sources(self) -> dict[int, int]:
        """The source device of each target device in the source-target pairs."""
        return {target: source for source, target in self.attributes["source_target_pairs"]}


def emit_request(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit the line that yields a request and unpacks the answer."""
    return emitter.evaluated(instruction.shape, request_text(emitter, instruction, operands, path), path)


def request_text(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> str:
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
