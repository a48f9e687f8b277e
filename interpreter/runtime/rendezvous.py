"""Where devices meet: a collective waits for every member of its group, and is computed once."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from xbuild.core.op import OPS
from xbuild.properties.effects import base_of

from ..compiler.requests import Request
from ..kernels.values import scalars, zeros
from ..rules.tables import compute


@define(eq=False)
class Rendezvous:
    """A run of one collective in one group: who has come, with what, who waits, what each gets.

    `is_named`: whether a group of the collective names these devices, and not just stands for one that none names.
    """

    request: Request
    group: tuple[int, ...]
    is_named: bool = True
    values: dict[int, tuple[Any, ...]] = field(factory=dict)
    parked: set[int] = field(factory=set)
    given: dict[int, Any] | None = None
    _missing: tuple[int, tuple[int, ...]] = (-1, ())

    def join(self, device: int, values: tuple[Any, ...]) -> bool:
        """Bring a device's operands; True where it was the last to come."""
        self.values[device] = values
        return len(self.values) == len(self.group)

    @property
    def missing(self) -> tuple[int, ...]:
        """Who has not come; one object for all who ask while nobody comes."""
        if self._missing[0] != len(self.values):
            self._missing = len(self.values), tuple(device for device in self.group if device not in self.values)
        return self._missing[1]

    def take(self, device: int) -> Any:
        """What a member gets, which it asks for once."""
        assert self.given is not None
        return self.given.pop(device)

    def results(self) -> dict[int, Any]:
        """What each member gets, rank-0 arrays as scalars; of a broadcast a device in no group gets zeros."""
        collective, shape = self.request.collective, self.request.result_shape
        assert collective is not None
        opcode = base_of(collective)
        if opcode == "collective_broadcast" and not self.is_named:
            return {device: zeros(shape) for device in self.group}
        brought: Any = [self.values[device] for device in self.group]
        columns = zip(*brought, strict=True) if OPS[opcode].is_flat else (brought,)
        given = compute[opcode](*columns, **self._attributes())
        shared: dict[int, Any] = {}
        for value in given:
            shared.setdefault(id(value), scalars(value, shape))
        return {device: shared[id(value)] for device, value in zip(self.group, given, strict=True)}

    def _attributes(self) -> dict[str, Any]:
        """Without what only a start has."""
        return {key: value for key, value in self.request.attributes.items() if key != "context_shapes"}
