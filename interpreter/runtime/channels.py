"""Where devices pass values: a channel runs from one device to another by its channel id, first sent first received."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from xbuild.core.graph import Module

from ..compiler.requests import Request
from .replica import Device


@define(eq=False)
class ChannelState:
    """One direction of a channel: how many recvs are posted, what was sent and not yet taken.

    `key` is (channel, source, target).

    `sender` waits with its value for a recv to be posted, `receiver` for a value.
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
        """Whether every recv that is posted has its value, and nobody waits."""
        return not self.values and self.sent == self.posted and self.sender is None and self.receiver is None

    @property
    def open(self) -> bool:
        """Whether a send may run: its recv is posted, or a buffer is free."""
        return self.sent < self.posted + self.buffers

    def put(self, value: Any) -> None:
        self.sent += 1
        self.values.append(value)


class Peers:
    """The device at the other end of each send and recv: by its pairs, or where another program has the other half."""

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
        """Where a send of this device goes; None where it is no source."""
        return request.targets.get(device) if request.targets else self._home("recv", request)

    def source(self, request: Request, device: int) -> int | None:
        """Where a recv of this device comes from; None where it is no target."""
        return request.sources.get(device) if request.sources else self._home("send", request)

    def _home(self, half: str, request: Request) -> int | None:
        return self._homes.get((half, request.attributes["channel_id"]))
