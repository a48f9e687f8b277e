"""The host's side of a run: host functions and custom calls of the user, in threads that may outlive the run.

Sections:

    Threads of the user's functions
    Custom calls of a run
    Host functions
"""

from __future__ import annotations

import contextvars
import ctypes
import inspect
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from shape_inference import Shape, leaves
from shape_inference.escaping import in_line
from shape_inference.trees import map_leaves
from xbuild.core.callbacks import CALLBACKS, PENDING
from xbuild.properties.effects import HostFunction, host_function_of, rendezvous_of

from ..compiler.requests import Request
from ..custom_calls import CustomCallError, check_target, function_of
from ..kernels.values import read, zeros
from ..rules.denormals import as_user
from ..rules.limits import check_time, seconds_left

if TYPE_CHECKING:
    from .device import Device


# ----------------------------------------------------------------------------
# Threads of the user's functions
#
# And the treatment of a thread that outlives its run.
#
# Python has no way to end a thread. It can raise an exception in one, which is safe in code of the user and is not in
# code of a library: between `lock.acquire()` and the `try` that follows it, the lock would stay taken for the rest of
# the process (that of `logging`, or of an import). So a thread is ended only if it executes the file that defines
# the user's function. Everywhere else, including in C, it continues as a daemon: it does not hold up the end of the
# process.


@define(eq=False)
class Worker:
    """A thread in which a function runs once; `file` is the file that defines it, or None."""

    bell: threading.Event
    file: str | None = None
    outcome: tuple[Any, BaseException | None] | None = None
    thread: threading.Thread = field(init=False)
    _is_left: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock)

    def start(self, function: Callable[[], Any]) -> None:
        context = contextvars.copy_context()  # the run's errstate
        self.thread = threading.Thread(target=context.run, args=(self._run, function), daemon=True)
        self.thread.start()

    def _run(self, function: Callable[[], Any]) -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = function(), None
        except BaseException as error:
            outcome = None, error
        while self.outcome is None:
            try:
                with self._lock:
                    self.outcome = outcome  # afterwards `leave` raises nothing in this thread
            except SystemExit:  # raised by `leave` after the function had returned, and before the lock was taken
                continue
        if self._is_left:
            _take_pending_exception()
        self.bell.set()

    def leave(self) -> None:
        """Abandon the thread; SystemExit is raised in the thread if it executes code in the user's file."""
        with self._lock:
            number = self.thread.ident
            if self.outcome is None and number is not None and _is_executing(number, self.file):
                self._is_left = True
                _raise_in(number, SystemExit)


def file_of(function: Callable[..., Any]) -> str | None:
    """The file that defines a function of Python; None for a function of C."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else code.co_filename


def _is_executing(number: int, file: str | None) -> bool:
    """Whether the innermost frame of a thread is in this file; the answer holds while this thread has Python's lock."""
    frame = sys._current_frames().get(number)
    return frame is not None and frame.f_code.co_filename == file


def _raise_in(number: int, error: type[BaseException]) -> None:
    """Set the exception that a thread raises at its next step.

    It must not be cancelled with NULL: CPython before 3.13 would then ask for it at every step of all threads, which
    slows each down and never ends where a trace function is set.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(error))


def _take_pending_exception() -> None:
    """Have a pending SystemExit raised here, if there is still one: it comes at the end of a step of a loop."""
    with suppress(SystemExit):
        for _ in range(100):
            pass


# ----------------------------------------------------------------------------
# Custom calls of a run
#
# The registered function is called, called again while it returns PENDING, or abandoned.
#
# Without a limit of seconds a function is called in the thread of the run, so that debuggers and Ctrl-C reach it. With
# a limit each call has a thread, since only that ends the wait for a function that never returns: a signal needs the
# main thread and POSIX, and may be caught; a trace function slows the call down and does not see C code.

GRACE = 0.05  # seconds that the run waits for a call before other devices go on: most calls return sooner
SHORTEST, LONGEST = 0.0005, 0.05  # seconds between two polls of pending calls


class CallbackFailed(Exception):
    """A registered function raised `error`."""

    def __init__(self, call: PendingCall, error: BaseException) -> None:
        super().__init__(str(error))
        self.call, self.error = call, error


@define(eq=False)
class PendingCall:
    """A custom call of a device that has not returned."""

    device: Device
    request: Request
    values: tuple[Any, ...]
    bell: threading.Event
    worker: Worker | None = None

    @property
    def what(self) -> str:
        """The function, the instruction that calls it and the device, for messages."""
        instruction = self.request.instruction
        target = instruction.attributes.custom_call_target
        return f"the function of {target!r}, called by {instruction.name} on device {self.device.number},"

    def poll(self, patience: float = 0.0) -> Any:
        """The result of the call, or PENDING."""
        left = seconds_left()
        if left is None:
            return self._answer(*self._attempt(self._invoke))
        if self.worker is None:
            self.worker = Worker(self.bell, self._file())
            self.worker.start(self._invoke)
            self.worker.thread.join(min(patience, max(left, 0.0)))
        outcome = self.worker.outcome
        if outcome is None:
            return PENDING
        self.worker = None
        return self._answer(*outcome)

    def _attempt(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            return function(), None
        except (Exception, SystemExit) as error:
            return None, error

    def _invoke(self) -> Any:
        """Call the function; a user's function runs in the user's mode of denormal numbers, others in the program's."""
        function, values = function_of(self.request.instruction), map(as_read_only, self.values)
        if self.request.instruction.attributes.custom_call_target not in CALLBACKS:
            return function(*values)
        with as_user():
            return function(*values)

    def _file(self) -> str | None:
        """The file of the user's function; the call's thread may be ended while it executes code in this file."""
        callback = CALLBACKS.get(self.request.instruction.attributes.custom_call_target)
        return None if callback is None else file_of(callback.function)

    def _answer(self, result: Any, error: BaseException | None) -> Any:
        if error is not None:
            raise CallbackFailed(self, error)
        return PENDING if result is PENDING else self._check_result(result)

    def _check_result(self, result: Any) -> Any:
        """The result copied into arrays of the run; a result that does not fit the declared shape is refused."""
        instruction = self.request.instruction
        shape, target = instruction.shape, instruction.attributes.custom_call_target
        if not any(isinstance(leaf, Shape) for leaf in leaves(shape)):
            return zeros(shape)
        name = f"the result of {target!r} for %{instruction.name} = {shape} on device {self.device.number}"
        with as_user():
            return copy_arrays(read(result, shape, name))


@define(eq=False, slots=False)
class Callbacks:
    """The user's functions that are running: `current` in the thread of the run, `pending` in other threads."""

    pending: list[PendingCall] = field(factory=list)
    current: PendingCall | None = None

    @cached_property
    def bell(self) -> threading.Event:
        return threading.Event()

    @property
    def unreturned(self) -> list[PendingCall]:
        """The calls that have not returned."""
        return self.pending if self.current is None else [*self.pending, self.current]

    def call(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        """The result of the function, or PENDING if `wait` will return it. Refuses a target without a function."""
        check_target(request.instruction)
        return self.begin(PendingCall(device, request, values, self.bell))

    def begin(self, call: PendingCall) -> Any:
        """The result of a call; PENDING if `wait` will return the result."""
        self.current = call
        answer = call.poll(GRACE)
        self.current = None
        if answer is PENDING:
            self.pending.append(call)
        return answer

    def wait(self) -> list[tuple[PendingCall, Any]]:
        """Wait until a call returns; returns all calls that have returned, with their results. Stops at a limit."""
        pause = SHORTEST
        while True:
            check_time()
            self.bell.clear()
            answers = [(call, call.poll()) for call in self.pending]
            returned = [(call, answer) for call, answer in answers if answer is not PENDING]
            if returned:
                self.pending = [call for call, answer in answers if answer is PENDING]
                return returned
            self.bell.wait(min(pause, seconds_left() or pause))
            pause = min(2 * pause, LONGEST)

    def close(self) -> None:
        """End the run: the threads of calls that have not returned are abandoned."""
        for call in self.pending:
            if call.worker is not None:
                call.worker.leave()


def as_read_only(value: Any) -> Any:
    """A value with read-only arrays, for a user's function to read."""

    def view(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            leaf = leaf.view()
            leaf.flags.writeable = False
        return leaf

    return map_leaves(view, value)


def copy_arrays(value: Any) -> Any:
    """A value with copied arrays, since a function may keep and change arrays that it has returned."""
    return map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, value)


# ----------------------------------------------------------------------------
# Host functions
#
# They take the values that devices send, and devices receive the results.

Woken = list[tuple["Device", Any]]


@define(eq=False)
class HostCall(PendingCall):
    """One call of a host function for one device."""

    function: HostFunction = field(kw_only=True)

    @property
    def what(self) -> str:
        name, number = self.request.instruction.name, self.device.number
        return f"the host function {in_line(self.function.label)!r}, fed by {name} on device {number},"

    def _file(self) -> str | None:
        return file_of(self.function.function)

    def _invoke(self) -> Any:
        with as_user():
            return self.function.function([as_read_only(value) for value in self.values])

    def _check_result(self, result: Any) -> Any:
        receives = self.function.receives
        label = f"result {{}} of the host function {in_line(self.function.label)!r} for device {self.device.number}"
        with as_user():
            return [
                copy_arrays(read(value, shape, label.format(n)))
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
        function, number = function_on_host(request), device.number
        self.operands[number, request.attributes["channel_id"]].append(value)
        queues = [self.operands[number, channel] for channel in function.sends]
        if not all(queues):
            return []
        values = tuple(queue.popleft() for queue in queues)
        call = HostCall(device, request, values, self.callbacks.bell, function=function)
        self.calls[number].append(call)
        return self._begin(call) if len(self.calls[number]) == 1 else []

    def receive(self, device: Device, channel: int) -> Any:
        """The next result on a channel; PENDING if the device must wait for a result."""
        key = device.number, channel
        if self.results[key]:
            return self.results[key].popleft()
        self.receivers[key] = device
        return PENDING

    def distribute(self, call: HostCall, results: list[Any]) -> Woken:
        """Distribute the results of a call, and begin the device's next call; returns the devices that can continue."""
        number = call.device.number
        woken: Woken = []
        for channel, value in zip(call.function.receives, results, strict=True):
            for core in range(number, number + call.device.module.num_partitions):
                woken += self._deliver(core, channel, value)
        self.calls[number].popleft()
        if self.calls[number]:
            woken += self._begin(self.calls[number][0])
        return woken

    def _deliver(self, number: int, channel: int, value: Any) -> Woken:
        """Pass a result to the device that waits for it, or keep the result until the device's recv-done."""
        waiting = self.receivers.pop((number, channel), None)
        if waiting is None:
            self.results[number, channel].append(value)
        return [] if waiting is None else [(waiting, (value, None))]

    def _begin(self, call: HostCall) -> Woken:
        results = self.callbacks.begin(call)
        return [] if results is PENDING else self.distribute(call, results)

    def awaited(self, device: Device) -> Iterator[str]:
        """The host functions for whose results a parked device waits."""
        waiting = device.waiting
        if waiting is not None and (device.number, waiting.attributes.get("channel_id")) in self.receivers:
            function = host_function_of(waiting.transfer)
            yield (waiting.rendezvous or "") if function is None else in_line(function.label)


def is_with_host(request: Request) -> bool:
    """Whether the other end of a transfer is a Python function of the host."""
    return request.rendezvous is not None


def function_on_host(request: Request) -> HostFunction:
    """The host function of a transfer; refused if this process has no function of that rendezvous name."""
    transfer = request.transfer
    function = host_function_of(transfer)
    if function is None:
        name = rendezvous_of(transfer) or ""
        message = (
            f"the program was read from text, which contains only the name of the host function, {in_line(name)!r}"
        )
        error = CustomCallError("unregistered_target", message, ["run the program that xb.tpu built, not its text"])
        error.message = message
        raise error
    return function
