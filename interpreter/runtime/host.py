"""The host's side of a run: host functions take the values that devices send, and devices receive the results."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import define, field

from shape_inference.escaping import in_line
from xbuild.core.callbacks import PENDING
from xbuild.properties.host import HostFunction, host_function_of, rendezvous_of

from ..compiler.requests import Request
from ..custom_calls import CustomCallError
from ..kernels.values import read
from ..rules.denormals import as_user
from .callbacks import Callbacks, PendingCall, copied, read_only
from .workers import file_of

if TYPE_CHECKING:
    from .replica import Device

Woken = list[tuple["Device", Any]]


@define(eq=False)
class HostCall(PendingCall):
    """One call of a host function for one device."""

    function: HostFunction = field(kw_only=True)

    @property
    def what(self) -> str:
        name, number = self.request.instruction.name, self.device.number
        return f"the host function {in_line(self.function.label)!r}, to which {name} sends on device {number},"

    def _file(self) -> str | None:
        return file_of(self.function.function)

    def _invoke(self) -> Any:
        with as_user():
            return self.function.function([read_only(value) for value in self.values])

    def _checked(self, result: Any) -> Any:
        receives = self.function.receives
        label = f"result {{}} of the host function {in_line(self.function.label)!r} for device {self.device.number}"
        with as_user():
            return [
                copied(read(value, shape, label.format(n)))
                for n, (value, shape) in enumerate(zip(result, receives.values(), strict=True))
            ]


@define(eq=False)
class Host:
    """The host's state: operands that devices have sent, calls in order, results that are not yet received."""

    callbacks: Callbacks
    operands: dict[tuple[int, int], deque[Any]] = field(factory=lambda: defaultdict(deque))
    results: dict[tuple[int, int], deque[Any]] = field(factory=lambda: defaultdict(deque))
    receivers: dict[tuple[int, int], Device] = field(factory=dict)
    calls: dict[int, deque[HostCall]] = field(factory=lambda: defaultdict(deque))

    def send(self, device: Device, request: Request, value: Any) -> Woken:
        """Take an operand from a replica's first core; the last operand of a round begins the call of the function."""
        if device.partition_id:
            return []
        function, number = function_of(request), device.number
        self.operands[number, request.attributes["channel_id"]].append(value)
        queues = [self.operands[number, channel] for channel in function.sends]
        if not all(queues):
            return []
        values = tuple(queue.popleft() for queue in queues)
        call = HostCall(device, request, values, self.callbacks.bell, function=function)
        self.calls[number].append(call)
        return self._begun(call) if len(self.calls[number]) == 1 else []

    def receive(self, device: Device, channel: int) -> Any:
        """The next result on a channel; PENDING where the device must wait for a result."""
        key = device.number, channel
        if self.results[key]:
            return self.results[key].popleft()
        self.receivers[key] = device
        return PENDING

    def returned(self, call: HostCall, results: list[Any]) -> Woken:
        """Distribute the results of a call, and begin the device's next call; gives the devices that can go on."""
        number = call.device.number
        woken: Woken = []
        for channel, value in zip(call.function.receives, results, strict=True):
            for core in range(number, number + call.device.module.num_partitions):
                woken += self._given(core, channel, value)
        self.calls[number].popleft()
        if self.calls[number]:
            woken += self._begun(self.calls[number][0])
        return woken

    def _given(self, number: int, channel: int, value: Any) -> Woken:
        """Give a result to the device that waits for it, or keep the result until the device's recv-done."""
        waiting = self.receivers.pop((number, channel), None)
        if waiting is None:
            self.results[number, channel].append(value)
        return [] if waiting is None else [(waiting, (value, None))]

    def _begun(self, call: HostCall) -> Woken:
        results = self.callbacks.begin(call)
        return [] if results is PENDING else self.returned(call, results)

    def awaited(self, device: Device) -> Iterator[str]:
        """The host functions for whose results a parked device waits."""
        waiting = device.waiting
        if waiting is not None and (device.number, waiting.attributes.get("channel_id")) in self.receivers:
            function = host_function_of(waiting.transfer)
            yield (waiting.rendezvous or "") if function is None else in_line(function.label)


def is_with_host(request: Request) -> bool:
    """Whether the other end of a transfer is a Python function of the host."""
    return request.rendezvous is not None


def function_of(request: Request) -> HostFunction:
    """The host function of a transfer; refused where this process has no function of that rendezvous name."""
    transfer = request.transfer
    function = host_function_of(transfer)
    if function is None:
        name = rendezvous_of(transfer) or ""
        message = f"the program was read from text, which names the host function of rendezvous {in_line(name)!r} alone"
        error = CustomCallError("unregistered_target", message, ["run the program that xb.tpu made, not its text"])
        error.message = message
        raise error
    return function
