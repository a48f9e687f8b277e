"""Custom calls of a run: the registered function is called, asked again while its answer is pending, or left behind.

Without a limit of seconds they are called where the run is, so that debuggers and Ctrl-C reach them. With one each call
has a thread, since nothing else ends the wait for a function that never returns: a signal needs the main thread and
POSIX, and may be caught; a trace slows the function down and does not see C.
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

GRACE = 0.05  # seconds for which a call is waited for before other devices go on: most end sooner, in device order
SHORTEST, LONGEST = 0.0005, 0.05  # seconds between two questions to what is pending


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
        """The function that is called, by whom and where."""
        instruction = self.request.instruction
        target = instruction.attributes.custom_call_target
        return f"the function of {target!r}, which {instruction.name} calls on device {self.device.number},"

    def ask(self, patience: float = 0.0) -> Any:
        """The answer, or PENDING."""
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
        """A user's function computes in the user's own mode of denormal numbers, others in the program's."""
        function, values = function_of(self.request.instruction), map(lent, self.values)
        if self.request.instruction.attributes.custom_call_target not in CALLBACKS:
            return function(*values)
        with as_user():
            return function(*values)

    def _file(self) -> str | None:
        """The file of the user's function, in which its thread may be ended."""
        callback = CALLBACKS.get(self.request.instruction.attributes.custom_call_target)
        return None if callback is None else file_of(callback.function)

    def _answer(self, result: Any, error: BaseException | None) -> Any:
        if error is not None:
            raise CallbackFailed(self, error)
        return PENDING if result is PENDING else self._checked(result)

    def _checked(self, result: Any) -> Any:
        """The result as arrays of the run's own; refused where it is not of the declared shape."""
        instruction = self.request.instruction
        shape, target = instruction.shape, instruction.attributes.custom_call_target
        if not any(isinstance(leaf, Shape) for leaf in leaves(shape)):
            return zeros(shape)
        name = f"what {target!r} gives for %{instruction.name} = {shape} on device {self.device.number}"
        with as_user():
            return owned(read(result, shape, name))


@define(eq=False, slots=False)
class Callbacks:
    """The calls of the user's functions that are under way: `current` where the run is, `pending` in threads."""

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
        """What the function gives; PENDING where that will come from `wait`. Refuses a target without a function."""
        check_target(request.instruction)
        return self.begin(PendingCall(device, request, values, self.bell))

    def begin(self, call: PendingCall) -> Any:
        """What a call gives; PENDING where that will come from `wait`."""
        self.current = call
        answer = call.ask(GRACE)
        self.current = None
        if answer is PENDING:
            self.pending.append(call)
        return answer

    def wait(self) -> list[tuple[PendingCall, Any]]:
        """The calls that have returned, with the answers, as soon as there is one; stops at a limit."""
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
        """End the run: the threads of calls that have not returned are left."""
        for call in self.pending:
            if call.worker is not None:
                call.worker.leave()


def lent(value: Any) -> Any:
    """A value for a function to read."""
    if isinstance(value, tuple):
        return tuple(map(lent, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def owned(value: Any) -> Any:
    """A copy of each array: a function may hold, and change, what it gave."""
    if isinstance(value, tuple):
        return tuple(map(owned, value))
    return value.copy() if isinstance(value, np.ndarray) else value
