"""Registered functions at work: called, asked again where they are pending, and left behind where the run ends first.

Without a limit of seconds they are called where the run is, so that debuggers and Ctrl-C reach them. With one each call
has a thread, since nothing else ends the wait for a function that never returns: a signal needs the main thread and
POSIX, and may be caught; a trace slows the function down and does not see C.
"""

from __future__ import annotations

import contextvars
import ctypes
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
class Worker:
    """A thread in which a function runs once."""

    bell: threading.Event
    outcome: tuple[Any, BaseException | None] | None = None
    thread: threading.Thread = field(init=False)

    def start(self, function: Callable[[], Any]) -> None:
        context = contextvars.copy_context()  # the run's errstate
        self.thread = threading.Thread(target=context.run, args=(self._run, function), daemon=True)
        self.thread.start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.outcome = function(), None
        except BaseException as error:
            self.outcome = None, error
        self.bell.set()

    def leave(self) -> None:
        """Wait no longer; Python code in it ends at its next step, so that it does not run on for ever."""
        if self.thread.ident is not None and self.outcome is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident), ctypes.py_object(SystemExit))


@define(eq=False)
class PendingCall:
    """A custom call of a device that has not returned."""

    device: Device
    request: Request
    values: tuple[Any, ...]
    bell: threading.Event
    worker: Worker | None = None

    def ask(self, patience: float = 0.0) -> Any:
        """The answer, or PENDING."""
        left = seconds_left()
        if left is None:
            return self._answer(*self._attempt(self._invoke))
        if self.worker is None:
            self.worker = Worker(self.bell)
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
        function, values = function_of(self.request.instruction), map(_lent, self.values)
        if self.request.instruction.attributes.custom_call_target not in CALLBACKS:
            return function(*values)
        with as_user():
            return function(*values)

    def _answer(self, result: Any, error: BaseException | None) -> Any:
        if error is not None:
            raise CallbackFailed(self, error)
        return PENDING if result is PENDING else self._checked(result)

    def _checked(self, result: Any) -> Any:
        """The result, which must be of the declared shape, as arrays that nobody else holds."""
        instruction = self.request.instruction
        shape, target = instruction.shape, instruction.attributes.custom_call_target
        if not any(isinstance(leaf, Shape) for leaf in leaves(shape)):
            return zeros(shape)
        name = f"what {target!r} gives for %{instruction.name} = {shape} on device {self.device.number}"
        with as_user():
            return _owned(read(result, shape, name))


@define(eq=False, slots=False)
class Callbacks:
    """The custom calls of a run that are under way."""

    pending: list[PendingCall] = field(factory=list)

    @cached_property
    def _bell(self) -> threading.Event:
        return threading.Event()

    def call(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        """What the function gives; PENDING where that will come from `wait`. Refuses a target without a function."""
        check_target(request.instruction)
        call = PendingCall(device, request, values, self._bell)
        answer = call.ask(GRACE)
        if answer is PENDING:
            self.pending.append(call)
        return answer

    def wait(self) -> list[tuple[Device, Any]]:
        """The devices whose calls have returned, with the answers, as soon as there is one; stops at a limit."""
        pause = SHORTEST
        while True:
            check_time()
            self._bell.clear()
            answers = [(call, call.ask()) for call in self.pending]
            returned = [(call.device, answer) for call, answer in answers if answer is not PENDING]
            if returned:
                self.pending = [call for call, answer in answers if answer is PENDING]
                return returned
            self._bell.wait(min(pause, seconds_left() or pause))
            pause = min(2 * pause, LONGEST)

    def close(self) -> None:
        """The run is over: nobody waits for what is under way."""
        for call in self.pending:
            if call.worker is not None:
                call.worker.leave()


def _lent(value: Any) -> Any:
    """A value for a function to read."""
    if isinstance(value, tuple):
        return tuple(map(_lent, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _owned(value: Any) -> Any:
    """A copy of each array: a function may hold, and change, what it gave."""
    if isinstance(value, tuple):
        return tuple(map(_owned, value))
    return value.copy() if isinstance(value, np.ndarray) else value
