"""`Communication`: a collective that the partitioner inserted, what it moves, and why."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from shape_inference.escaping import in_line

from ....core.graph import Source
from ...axis import Axis
from ...sharding import Sharding
from .reason import Move, Reason


@frozen(eq=False)
class Communication:
    """A collective that the partitioner inserted, and why.

    `axes` are those of the mesh that it goes over, `bytes` what a device sends in one execution. `why` is the reason as
    a record, or its sentence where nothing more is known; `move` the array that is moved, and from which sharding to
    which.
    """

    name: str
    axes: tuple[Axis, ...]
    bytes: int
    why: Reason | str = field(repr=False)
    move: Move = field(repr=False)

    @property
    def opcode(self) -> str:
        """The op of the collective."""
        return self.move.opcode

    @property
    def value(self) -> str:
        """The instruction of the global program whose data is moved."""
        return self.move.value.name

    @property
    def source(self) -> Source | None:
        """The line that recorded that instruction."""
        return self.move.value.source

    @property
    def had(self) -> Sharding | None:
        """The sharding before all steps of the move; None where elements of neighbours, or numbers, are sent."""
        return self.move.had

    @property
    def needed(self) -> Sharding | None:
        """The sharding after all steps of the move."""
        return self.move.needed

    @property
    def reason(self) -> str:
        """Why it was inserted, in a sentence."""
        return self.why if isinstance(self.why, str) else in_line(self.why.sentence(self.move))

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(axis.name for axis in self.axes))
        return f"{self.name}: {self.opcode} over {names}, {self.bytes} bytes: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        facts = {"kind": "other"} if isinstance(self.why, str) else self.why.facts(self.move)
        return {
            "name": self.name,
            "op": self.opcode,
            "axes": list(dict.fromkeys(axis.name for axis in self.axes)),
            "bytes": self.bytes,
            "value": self.value,
            "reason": self.reason,
            "why": facts,
            "line": None if self.source is None else str(self.source),
        }
