"""The grid of all devices: one thread resumes them in order and answers their requests until none can continue."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define, field

from shape_inference import TupleShape
from xbuild.checking import Verdict
from xbuild.checking.model.program import Extent
from xbuild.core.callbacks import PENDING
from xbuild.core.graph import Module
from xbuild.properties.device_groups import group_of, is_member

from ..compiler.requests import Request
from ..kernels.values import read, zeros
from ..rules.denormals import as_user
from ..rules.limits import check_time
from .device import Device
from .ends import check_match, check_transfer, log, stuck
from .host import Callbacks, Host, HostCall, is_with_host
from .meetings import ChannelState, Peers, Rendezvous, RendezvousKeys, Sent
from .report import Report

PARKED = object()
SMALL = 16
Outfeed = Callable[[int, Any], None]


@define(eq=False, repr=False, slots=False)
class Grid:
    """The state of a run: ready devices, rendezvous that are not complete, channels, infeeds and the outfeed."""

    devices: Sequence[Device]
    infeeds: Mapping[int, Iterator[Any]]
    outfeed: Outfeed | None
    send_buffers: float
    extent: Extent = (1, 1, False)
    ready: deque[tuple[Device, Any]] = field(factory=deque)
    open_rendezvous: dict[Any, Rendezvous] = field(factory=dict)
    channels: dict[tuple[int, int, int], ChannelState] = field(factory=dict)
    logs: Mapping[int, deque[Request]] = field(factory=lambda: defaultdict(log))
    running: Device | None = None
    callbacks: Callbacks = field(factory=Callbacks)
    groups: dict[int, tuple[tuple[int, ...], int]] = field(factory=dict)  # by id(group)
    numbers: dict[tuple[int, ...], int] = field(factory=dict)

    @cached_property
    def peers(self) -> Peers:
        return Peers(self._modules())

    @cached_property
    def host(self) -> Host:
        return Host(self.callbacks)

    @cached_property
    def rendezvous_keys(self) -> RendezvousKeys:
        return RendezvousKeys(self._modules())

    def _modules(self) -> list[Module]:
        return [device.module for device in self.devices]

    def stuck_report(self, verdict: Verdict | None) -> Report:
        """The report of a run in which no device can continue."""
        return stuck(self, verdict)

    def mismatch_report(self, error: BaseException) -> Report | None:
        """The report of a run in which two calls met that do not fit; None here: only a runtime pairs such calls."""
        return None

    def waits_of(self, device: Device) -> tuple[str, tuple[int, ...]] | None:
        """What a parked device waits for, and for which devices; None if its request says so."""
        return None

    def run(self, arguments: Sequence[tuple[Any, ...]]) -> None:
        """Start every device, and resume ready devices until none is ready and no call is pending."""
        for device, values in zip(self.devices, arguments, strict=True):
            self.running = device
            device.start(values)
            if not device.ended:
                self.ready.append((device, None))
        while self.ready or self.callbacks.pending:
            if not self.ready:
                self.running = None
                self._wait_for_callbacks()
            self.running, answer = self.ready.popleft()
            self._drive(self.running, answer)
        self.running = None

    def _wait_for_callbacks(self) -> None:
        """Wait until the user's functions return, and make ready the devices that waited for them."""
        for call, answer in self.callbacks.wait():
            self.ready.extend(
                self.host.distribute(call, answer) if isinstance(call, HostCall) else ((call.device, answer),)
            )

    def _drive(self, device: Device, answer: Any) -> None:
        """Resume a device until it must wait or has ended."""
        while answer is not PARKED:
            check_time()
            try:
                request, values = device.resume(answer)
            except StopIteration as stop:
                device.finish(stop.value)
                return
            device.waiting = request
            answer = self._serve(device, request, values)

    def _serve(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        opcode = request.instruction.opcode
        if request.collective is not None:
            return self._meet(device, request, values)
        return _SERVED[opcode](self, device, request, values)

    def _meet(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        """Join a rendezvous: the device is parked, or continues with the rendezvous as the value of its start."""
        collective = request.collective
        assert collective is not None
        group = group_of(collective, device.number, *self.extent)
        key = self.rendezvous_keys.key_of(device.module, request), self._group_key(group)
        if key not in self.open_rendezvous:
            self.open_rendezvous[key] = Rendezvous(request, group, is_member(collective, device.number, *self.extent))
        rendezvous = self.open_rendezvous[key]
        if rendezvous.request.instruction is not request.instruction:
            check_match(self, device.number, request, next(iter(rendezvous.values)), rendezvous.request)
        self.logs[device.number].append(request)
        if not request.is_start:
            rendezvous.parked.add(device.number)
        if rendezvous.join(device.number, values):
            del self.open_rendezvous[key]
            self._conclude(device, request, rendezvous)
        return rendezvous if request.is_start else PARKED

    def _group_key(self, group: tuple[int, ...]) -> Hashable:
        """A key for each distinct group: a small group is its own key; a large group is hashed once and numbered."""
        if len(group) <= SMALL:
            return group
        known = self.groups.get(id(group))
        if known is None:
            known = self.groups[id(group)] = group, self.numbers.setdefault(group, len(self.numbers))
        return known[1]

    def _conclude(self, device: Device, request: Request, rendezvous: Rendezvous) -> None:
        """Make the parked members of a complete rendezvous ready, with their results."""
        results = rendezvous.outcome = rendezvous.results()
        if device.ledger is not None:
            operands = {member: rendezvous.values[member] for member in rendezvous.group}
            device.ledger.check_collective(request, operands, results, device)
        for member in rendezvous.group:
            if member in rendezvous.parked:
                self.ready.append((self.devices[member], rendezvous.take(member)))
        rendezvous.values.clear()

    def _done(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        """The result of a started collective; the device is parked until all members have started it."""
        rendezvous: Rendezvous = values[0]
        if rendezvous.outcome is not None:
            return rendezvous.take(device.number)
        rendezvous.parked.add(device.number)
        return PARKED

    def _send(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        if is_with_host(request):
            self.ready.extend(self.host.send(device, request, values[0]))
            return None, request.attributes["channel_id"], None
        channel = self._channel(request, device.number, self.peers.target(request, device.number))
        if channel is None:
            return None, 0, None
        sent = request, values[0]
        if not channel.open:
            channel.sender = device, sent
            return PARKED
        self._put(channel, sent)
        return channel, channel.channel, None

    def _recv(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        if is_with_host(request):
            return None, request.attributes["channel_id"], None
        source = self.peers.source(request, device.number)
        channel = None if source is None else self._channel(request, source, device.number)
        if channel is None:
            return None, 0, None
        channel.posted += 1
        if channel.sender is not None and channel.open:
            (sender, sent), channel.sender = channel.sender, None
            self._put(channel, sent)
            self.ready.append((sender, (channel, channel.channel, None)))
        return channel, channel.channel, None

    def _put(self, channel: ChannelState, sent: Sent) -> None:
        channel.put(sent)
        if channel.receiver is not None:
            (receiver, request), channel.receiver = channel.receiver, None
            self.ready.append((receiver, (self._take(channel, request), None)))

    def _take(self, channel: ChannelState, request: Request) -> Any:
        """Take the next value of a channel, and remove the channel if it is idle afterwards."""
        sent, value = channel.values.popleft()
        check_transfer(channel.source, sent, channel.target, request)
        if channel.is_idle:
            self.channels.pop(channel.key, None)
        return value

    def _recv_done(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        channel = values[0][0]
        if is_with_host(request):
            value = self.host.receive(device, request.attributes["channel_id"])
            return PARKED if value is PENDING else (value, None)
        if channel is None:
            return zeros(request.instruction.shape.elements[0]), None  # type: ignore[union-attr]
        if channel.values:
            return self._take(channel, request), None
        channel.receiver = device, request
        return PARKED

    def _send_done(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        return None

    def _infeed(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        shape = request.attributes["shape"]
        if shape == TupleShape():
            return (), None
        with as_user():
            try:
                item = next(self.infeeds[device.number])
            except StopIteration:
                return PARKED
            return read(item, shape, f"infeed item of device {device.number}"), None

    def _outfeed(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        if self.outfeed is not None:
            with as_user():
                self.outfeed(device.number, values[0])
        return None

    def _call(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        answer = self.callbacks.call(device, request, values)
        return PARKED if answer is PENDING else answer

    def _channel(self, request: Request, source: int, target: int | None) -> ChannelState | None:
        if target is None:
            return None
        key = request.attributes["channel_id"], source, target
        if key not in self.channels:
            self.channels[key] = ChannelState(key, self.send_buffers)
        return self.channels[key]


_SERVED: dict[str, Callable[[Grid, Device, Request, tuple[Any, ...]], Any]] = {
    "send": Grid._send,
    "send_done": Grid._send_done,
    "recv": Grid._recv,
    "recv_done": Grid._recv_done,
    "infeed": Grid._infeed,
    "outfeed": Grid._outfeed,
    "custom_call": Grid._call,
    "all_gather_done": Grid._done,
    "all_reduce_done": Grid._done,
    "async_done": Grid._done,
    "collective_permute_done": Grid._done,
}
