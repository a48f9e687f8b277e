"""Threads in which functions of the user run, and the treatment of a thread that outlives its run.

Python has no way to end a thread. It can raise an exception in one, which is safe in code of the user and is not in
code of a library: between `lock.acquire()` and the `try` that follows it, the lock would stay taken for the rest of the
process (that of `logging`, or of an import). So a thread is ended only where it stands in the file that defines the
user's function. Everywhere else, in C among others, it runs on as a daemon: it does not hold up the end of the process.
"""

from __future__ import annotations

import contextvars
import ctypes
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field


@define(eq=False)
class Worker:
    """A thread in which a function runs once; `file` is that of the user's function, None where there is none."""

    bell: threading.Event
    file: str | None = None
    outcome: tuple[Any, BaseException | None] | None = None
    thread: threading.Thread = field(init=False)
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
                self._finish(outcome)
            except SystemExit:  # raised by `leave` after the function had returned, and before the lock was taken
                continue
        self.bell.set()

    def _finish(self, outcome: tuple[Any, BaseException | None]) -> None:
        """Set the outcome and cancel a pending exception; afterwards `leave` raises nothing in the ending thread."""
        with self._lock:
            _raise_in(threading.get_ident(), None)
            self.outcome = outcome

    def leave(self) -> None:
        """Abandon the thread; SystemExit is raised in the thread if it executes code of the user's own file."""
        with self._lock:
            number = self.thread.ident
            if self.outcome is None and number is not None and _stands_in(number, self.file):
                _raise_in(number, SystemExit)


def file_of(function: Callable[..., Any]) -> str | None:
    """The file that defines a function of Python; None for a function of C."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else code.co_filename


def _stands_in(number: int, file: str | None) -> bool:
    """Whether the innermost frame of a thread is in this file; the answer holds while this thread has Python's lock."""
    frame = sys._current_frames().get(number)
    return frame is not None and frame.f_code.co_filename == file


def _raise_in(number: int, error: type[BaseException] | None) -> None:
    """Set the exception that a thread raises at its next step, replacing one that is pending; None cancels it."""
    raised = ctypes.py_object() if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), raised)
