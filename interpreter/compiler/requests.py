"""Requests that a plan yields when it needs another device, and the expressions of which plans consist."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from shape_inference import AnyShape, TupleShape, refuse
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import START_OF, TRANSFERS, base_of, collective_in, is_in_place, rendezvous_of, start_of

from ..rules.region import AppliedComputation
from .lines import Path

if TYPE_CHECKING:
    from .emit import Emitter


# ----------------------------------------------------------------------------
# Expressions of a plan: a value is the Python text of a leaf, or a tuple of expressions.

Expr: TypeAlias = str | tuple["Expr", ...]


def spell(expr: Expr) -> str:
    """The expression as Python."""
    return expr if isinstance(expr, str) else f"({''.join(f'{spell(part)}, ' for part in expr)})"


def target(expr: Expr) -> str:
    """The expression as the left side of an assignment; tokens are assigned to `_`."""
    if isinstance(expr, str):
        return "_" if expr == "None" else expr
    return f"({''.join(f'{target(part)}, ' for part in expr)})" if expr else "_"


# ----------------------------------------------------------------------------
# Requests: a plan yields a request at each op that needs another device, the host or a custom call.


@frozen(slots=False, eq=False)
class Request:
    """The instruction of a request, its call path and its attributes; a start has those of its collective."""

    instruction: Instruction
    path: Path
    attributes: Mapping[str, Any]

    @cached_property
    def collective(self) -> Instruction | None:
        """The collective that the instruction is or starts."""
        return collective_in(self.instruction)

    @property
    def is_start(self) -> bool:
        """Whether the instruction is a start: the device continues at once, and waits at the done."""
        return self.collective is not self.instruction or self.instruction.opcode != base_of(self.instruction)

    @property
    def result_shape(self) -> AnyShape:
        """The shape of the value that each member of the collective gets."""
        collective = self.collective or self.instruction
        is_pair = collective.opcode in ("all_gather_start", "collective_permute_start")
        return collective.shape.elements[1] if is_pair else collective.shape  # type: ignore[union-attr]

    @cached_property
    def key(self) -> tuple[tuple[int, int | None], ...]:
        """The identity of the call path: its instructions and the branches taken."""
        return tuple((id(place.instruction), place.branch) for place in self.path)

    @cached_property
    def transfer(self) -> Instruction:
        """The send or recv that the instruction is or completes."""
        start = start_of(self.instruction) if self.instruction.opcode in START_OF else self.instruction
        return start or self.instruction

    @cached_property
    def rendezvous(self) -> str | None:
        """The name of the Python host function at the other end of a transfer; None if the other end is a device."""
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
    shape = instruction.shape
    if instruction.opcode in TRANSFERS and isinstance(shape, TupleShape):
        context = shape.elements[1]  # the first element represents a channel, whatever is transferred on it
        shape = TupleShape((context, *shape.elements[1:]))
    return emitter.assign_result(shape, request_text(emitter, instruction, operands, path), path)


def request_text(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> str:
    """The expression that yields a request."""

    options = emitter.options
    attributes = attributes_of(instruction, options.sequential, options.flushed)
    request = emitter.bind("q", Request(instruction, path, attributes))
    return f"yield {request}, {spell(tuple(operands))}"


def attributes_of(instruction: Instruction, sequential: bool, flushed: bool) -> dict[str, Any]:
    """The attributes of a request, with computations as functions; a start has those of its collective."""
    collective = collective_in(instruction) or instruction
    if is_in_place(collective):
        refuse(
            "invalid_attribute",
            f"%{instruction.name}: xbuild can read, check and draw an in-place collective-permute (slice_sizes), "
            "but cannot run it",
            "permute the slice with an ordinary collective-permute, then write the result with a dynamic-update-slice",
        )
    return {
        key: AppliedComputation.of(value, sequential, flushed=flushed) if isinstance(value, Computation) else value
        for key, value in collective.attribute_values().items()
    }
