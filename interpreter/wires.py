"""Where devices pass values: a wire runs from one device to another on a channel, first sent first received."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from xbuild.graph import Module

from .replica import Device


@define(eq=False)
class Wire:
    """One direction of a channel between two devices: how many recvs are posted, what was sent and not yet taken.

    `sender` waits with its value for a recv to be posted, `receiver` for a value.
    """

    channel: int
    source: int
    target: int
    buffers: float
    posted: int = 0
    sent: int = 0
    values: deque[Any] = field(factory=deque)
    sender: tuple[Device, Any] | None = None
    receiver: Device | None = None

    @property
    def open(self) -> bool:
        """Whether a send may run: its recv is posted, or a buffer is free."""
        return self.sent < self.posted + self.buffers

    def put(self, value: Any) -> None:
        self.sent += 1
        self.values.append(value)


class Peers:
    """The device at the other end of each send and recv: by its pairs, or where the other program has the other half."""

    def __init__(self, modules: list[Module]) -> None:
        self._homes: dict[tuple[str, int], int] = {}
        if len({id(module) for module in modules}) == 1 and len(modules) > 1:
            return
        for device, module in enumerate(modules):
            for computation in module.entry.reachable():
                for i in computation.instructions:
                    if i.opcode in ("send", "recv"):
                        self._homes[i.opcode, i.attributes.channel_id] = device

    def target(self, attributes: Any, device: int) -> int | None:
        """Where a send of this device goes; None where it is no source."""
        return self._other(attributes, device, 0, "recv")

    def source(self, attributes: Any, device: int) -> int | None:
        """Where a recv of this device comes from; None where it is no target."""
        return self._other(attributes, device, 1, "send")

    def _other(self, attributes: Any, device: int, mine: int, half: str) -> int | None:
        pairs = attributes["source_target_pairs"]
        if pairs:
            return next((pair[1 - mine] for pair in pairs if pair[mine] == device), None)
        return self._homes.get((half, attributes["channel_id"]))
