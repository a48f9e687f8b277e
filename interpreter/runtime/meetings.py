"""Where devices meet: rendezvous of collectives, and channels of sends and recvs.

Sections:

    Keys by which the collectives of several devices meet
    Rendezvous of collectives
    Channels: values from one device to another, first sent, first received
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, field

from xbuild.checking.model.program import program_of
from xbuild.checking.structure.collective_matching import collective_identities
from xbuild.core.graph import Module, ModuleGroup
from xbuild.core.op import OPS
from xbuild.properties.effects import base_of

from ..compiler.requests import Request
from ..kernels.values import scalars, zeros
from ..rules import compute

if TYPE_CHECKING:
    from .device import Device

# ----------------------------------------------------------------------------
# Keys by which the collectives of several devices meet in one rendezvous.


class RendezvousKeys:
    """Keys of collectives: the call path if all devices run one program, else a channel id, the names or an alignment.

    Two collectives match if their keys are equal, whatever the order of arrival; the check for deadlock uses the same
    rule.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self._is_one_program = len(set(modules)) == 1
        self._identities = collective_identities(program_of(ModuleGroup(modules)))

    def key_of(self, module: Module, request: Request) -> Any:
        if self._is_one_program:
            return request.key
        aligned = self._identities.aligned.get((module, request.key))
        if aligned is not None:
            return aligned
        channel = request.attributes["channel_id"]
        if channel in self._identities.unique[module]:
            return channel
        return tuple((place.instruction.name, place.branch) for place in request.path)


# ----------------------------------------------------------------------------
# Rendezvous of collectives: a rendezvous waits for every member of its group, then computes the results once.


@define(eq=False)
class Rendezvous:
    """One execution of a collective in one group: the operands of the members that have arrived, and the results.

    `is_named` is False if no group of the collective contains these devices.
    """

    request: Request
    group: tuple[int, ...]
    is_named: bool = True
    values: dict[int, tuple[Any, ...]] = field(factory=dict)
    parked: set[int] = field(factory=set)
    outcome: dict[int, Any] | None = None
    _missing: tuple[int, tuple[int, ...]] = (-1, ())

    def join(self, device: int, values: tuple[Any, ...]) -> bool:
        """Add a device's operands; True if the device is the last member to arrive."""
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
        assert self.outcome is not None
        return self.outcome.pop(device)

    def results(self) -> dict[int, Any]:
        """The result of each member, rank-0 arrays as scalars; zeros if no group of a broadcast has these devices."""
        collective, shape = self.request.collective, self.request.result_shape
        assert collective is not None
        opcode = base_of(collective)
        if opcode == "collective_broadcast" and not self.is_named:
            return {device: zeros(shape) for device in self.group}
        operands: Any = [self.values[device] for device in self.group]
        columns = zip(*operands, strict=True) if OPS[opcode].is_flat else (operands,)
        values = compute[opcode](*columns, **self._attributes())
        shared: dict[int, Any] = {}
        for value in values:
            shared.setdefault(id(value), scalars(value, shape))
        return {device: shared[id(value)] for device, value in zip(self.group, values, strict=True)}

    def _attributes(self) -> dict[str, Any]:
        """The attributes of the collective, without those that only a start has."""
        return {key: value for key, value in self.request.attributes.items() if key != "context_shapes"}


# ----------------------------------------------------------------------------
# Channels: values from one device to another, first sent, first received.


Sent: TypeAlias = tuple[Request, Any]


@define(eq=False)
class ChannelState:
    """One direction of a channel: the number of posted recvs, and what was sent but not yet received.

    `key` is (channel, source, target). `sender` is the device that waits, with what it sends, until a recv is posted;
    `receiver` is the device that waits for a value, at its request. What is sent is a request with its value.
    """

    key: tuple[int, int, int]
    buffers: float
    posted: int = 0
    sent: int = 0
    values: deque[Sent] = field(factory=deque)
    sender: tuple[Device, Sent] | None = None
    receiver: tuple[Device, Request] | None = None

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

    def put(self, sent: Sent) -> None:
        self.sent += 1
        self.values.append(sent)


class Peers:
    """The peer of each send and recv: by source-target pairs, or else the device whose program has the other half."""

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
        """The device to which this device's send goes; None if this device is not a source."""
        return request.targets.get(device) if request.targets else self._home("recv", request)

    def source(self, request: Request, device: int) -> int | None:
        """The device from which this device's recv gets its value; None if this device is not a target."""
        return request.sources.get(device) if request.sources else self._home("send", request)

    def _home(self, half: str, request: Request) -> int | None:
        return self._homes.get((half, request.attributes["channel_id"]))
