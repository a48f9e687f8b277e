"""What a plan yields where an op needs another device or the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from xbuild.graph import Computation, Instruction

from .lines import Path
from .region import Region

if TYPE_CHECKING:
    from .emit import Emitter, Expr


@frozen(slots=False, eq=False)
class Request:
    """The op that asks, its call path, its attributes with regions as functions."""

    instruction: Instruction
    path: Path
    attributes: Mapping[str, Any]

    @cached_property
    def key(self) -> tuple[tuple[int, int | None], ...]:
        """What tells its place from every other: the instructions on the way and the branches taken."""
        return tuple((id(place.instruction), place.branch) for place in self.path)

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
    from .emit import spell

    sequential = emitter.options.sequential
    attributes = {
        key: Region.of(value, sequential) if isinstance(value, Computation) else value
        for key, value in instruction.attribute_values().items()
    }
    asked = emitter.bind("q", Request(instruction, path, attributes))
    return emitter.evaluated(instruction.shape, f"yield {asked}, {spell(tuple(operands))}", path)
