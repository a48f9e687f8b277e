"""Rendezvous of collectives: a rendezvous waits for every member of its group, then computes the results once."""

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
    """One execution of a collective in one group: the operands of the members that have arrived, and the results.

    `is_named` is False where no group of the collective names these devices.
    """

    request: Request
    group: tuple[int, ...]
    is_named: bool = True
    values: dict[int, tuple[Any, ...]] = field(factory=dict)
    parked: set[int] = field(factory=set)
    given: dict[int, Any] | None = None
    _missing: tuple[int, tuple[int, ...]] = (-1, ())

    def join(self, device: int, values: tuple[Any, ...]) -> bool:
        """Add a device's operands; True where the device is the last member to arrive."""
        self.values[device] = values
        return len(self.values) == len(self.group)

    @property
    def missing(self) -> tuple[int, ...]:
        """The members that have not arrived; the property returns the same tuple until another member arrives."""
        if self._missing[0] != len(self.values):
            self._missing = len(self.values), tuple(device for device in self.group if device not in self.values)
        return self._missing[1]

    def take(self, device: int) -> Any:
        """Remove and return the result of a member."""
        assert self.given is not None
        return self.given.pop(device)

    def results(self) -> dict[int, Any]:
        """The result of each member, rank-0 arrays as scalars; a broadcast that names no group gives zeros."""
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
        """The attributes of the collective, without those that only a start has."""
        return {key: value for key, value in self.request.attributes.items() if key != "context_shapes"}
