"""Where devices meet: a collective waits for every member of its group, and is computed once."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from .requests import Request
from .rules import compute
from .values import scalars


@define(eq=False)
class Meeting:
    """A run of one collective in one group: who has come, with what."""

    request: Request
    group: tuple[int, ...]
    values: dict[int, tuple[Any, ...]] = field(factory=dict)

    def join(self, device: int, values: tuple[Any, ...]) -> bool:
        """Bring a device's operands; True where it was the last to come."""
        self.values[device] = values
        return len(self.values) == len(self.group)

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(device for device in self.group if device not in self.values)

    def results(self) -> dict[int, Any]:
        """What each member gets, rank-0 arrays as scalars."""
        instruction = self.request.instruction
        rule, brought = compute[instruction.opcode], [self.values[device] for device in self.group]
        given = rule(brought, **self.request.attributes)
        shared: dict[int, Any] = {}
        for value in given:
            shared.setdefault(id(value), scalars(value, instruction.shape))
        return {device: shared[id(value)] for device, value in zip(self.group, given, strict=True)}
