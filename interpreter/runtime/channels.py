"""Channels between devices: each carries values from one device to another in order, first sent first received."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from xbuild.core.graph import Module

from ..compiler.requests import Request
from .replica import Device


@define(eq=False)
class ChannelState:
    """One direction of a channel: the number of posted recvs, and the values that were sent and not yet received.

    `key` is (channel, source, target). `sender` is the device that waits, with its value, until a recv is posted;
    `receiver` is the device that waits for a value.
    """

    key: tuple[int, int, int]
    buffers: float
    posted: int = 0
    sent: int = 0
    values: deque[Any] = field(factory=deque)
    sender: tuple[Device, Any] | None = None
    receiver: Device | None = None

    @property
    def channel(self) -> int:
        return self.key[0]

    @property
    def source(self) -> int:
        return self.key[1]

    @property
    def target(self) -> int:
        return self.key[2]

    @property
    def is_idle(self) -> bool:
        """Whether every posted recv has received its value, and neither device waits."""
        return not self.values and self.sent == self.posted and self.sender is None and self.receiver is None

    @property
    def open(self) -> bool:
        """Whether a send may run: its recv is posted, or a buffer is free."""
        return self.sent < self.posted + self.buffers

    def put(self, value: Any) -> None:
        self.sent += 1
        self.values.append(value)


class Peers:
    """The peer of each send and recv, by source-target pairs, or else the device whose program has the other half."""

    def __init__(self, modules: list[Module]) -> None:
        self._homes: dict[tuple[str, int], int] = {}
        if all(module is modules[0] for module in modules):
            return
        for device, module in enumerate(modules):
            for computation in module.entry.reachable():
                for i in computation.instructions:
                    if i.opcode in ("send", "recv"):
                        self._homes[i.opcode, i.attributes.channel_id] = device

    def target(self, request: Request, device: int) -> int | None:
        """The device to which this device's send goes; None where this device is no source."""
        return request.targets.get(device) if request.targets else self._home("recv", request)

    def source(self, request: Request, device: int) -> int | None:
        """The device from which this device's recv gets its value; None where this device is no target."""
        return request.sources.get(device) if request.sources else self._home("send", request)

    def _home(self, half: str, request: Request) -> int | None:
        return self._homes.get((half, request.attributes["channel_id"]))
