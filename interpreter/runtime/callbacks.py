"""Custom calls of a run: the registered function is called, called again while it returns PENDING, or abandoned.

Without a limit of seconds a function is called in the thread of the run, so that debuggers and Ctrl-C reach it. With a
limit each call has a thread, since only that ends the wait for a function that never returns: a signal needs the main
thread and POSIX, and may be caught; a trace function slows the call down and does not see C code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from shape_inference import Shape, leaves
from xbuild.core.callbacks import CALLBACKS, PENDING

from ..compiler.requests import Request
from ..custom_calls import check_target, function_of
from ..kernels.values import read, zeros
from ..rules.denormals import as_user
from ..rules.limits import check_time, seconds_left
from .workers import Worker, file_of

if TYPE_CHECKING:
    from .replica import Device

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
        return f"the function of {target!r}, which {instruction.name} calls on device {self.device.number},"

    def ask(self, patience: float = 0.0) -> Any:
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
        function, values = function_of(self.request.instruction), map(read_only, self.values)
        if self.request.instruction.attributes.custom_call_target not in CALLBACKS:
            return function(*values)
        with as_user():
            return function(*values)

    def _file(self) -> str | None:
        """The file of the user's function; the call's thread may be ended while it executes code of this file."""
        callback = CALLBACKS.get(self.request.instruction.attributes.custom_call_target)
        return None if callback is None else file_of(callback.function)

    def _answer(self, result: Any, error: BaseException | None) -> Any:
        if error is not None:
            raise CallbackFailed(self, error)
        return PENDING if result is PENDING else self._checked(result)

    def _checked(self, result: Any) -> Any:
        """The result copied into arrays of the run; a result that does not fit the declared shape is refused."""
        instruction = self.request.instruction
        shape, target = instruction.shape, instruction.attributes.custom_call_target
        if not any(isinstance(leaf, Shape) for leaf in leaves(shape)):
            return zeros(shape)
        name = f"what {target!r} gives for %{instruction.name} = {shape} on device {self.device.number}"
        with as_user():
            return copied(read(result, shape, name))


@define(eq=False, slots=False)
class Callbacks:
    """The user's functions that are under way: `current` in the thread of the run, `pending` in other threads."""

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
        """The result of the function, or PENDING where `wait` will give it. Refuses a target without a function."""
        check_target(request.instruction)
        return self.begin(PendingCall(device, request, values, self.bell))

    def begin(self, call: PendingCall) -> Any:
        """The result of a call; PENDING where `wait` will give the result."""
        self.current = call
        answer = call.ask(GRACE)
        self.current = None
        if answer is PENDING:
            self.pending.append(call)
        return answer

    def wait(self) -> list[tuple[PendingCall, Any]]:
        """Wait until a call returns; gives all calls that have returned, with their results. Stops at a limit."""
        pause = SHORTEST
        while True:
            check_time()
            self.bell.clear()
            answers = [(call, call.ask()) for call in self.pending]
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


def read_only(value: Any) -> Any:
    """A value with read-only arrays, for a user's function to read."""
    if isinstance(value, tuple):
        return tuple(map(read_only, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def copied(value: Any) -> Any:
    """A value with copied arrays, since a function may keep and change the arrays that it returned."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value
