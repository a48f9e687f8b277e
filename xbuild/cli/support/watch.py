"""The limits of a command: seconds, after which the command ends with a sentence, and bytes of memory.

Long passes are stopped by an alarm, which raises in the main thread between two steps of Python. A step that does not
return in time, such as one huge array operation, is ended by a second thread, and with it the process. Files are
written whole or not at all, so nothing is left half written.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from attrs import define, field

from ...files.results import unfinished
from ...process.memory import held_bytes

LIMIT = 3
"""The exit code where a limit of the command was reached."""

_LONGEST = 1e9  # seconds, about thirty years; timers refuse much longer times
_MOST = 2**63 - 1  # bytes; the largest limit of the system
_AGAIN = 1.0  # seconds between alarms, in case the first exception was swallowed
_ROOT = Path(__file__).resolve().parents[2]
_DOING = (
    ("xbuild/text/writing/", "text was printed"), ("xbuild/text/spelling/writer", "text was printed"),
    ("xbuild/text/", "text was read"), ("xbuild/checking/", "the program was checked"),
    ("xbuild/pictures/", "a picture was drawn"), ("xbuild/pages/", "a page was made"),
    ("xbuild/editing/", "programs were compared or cut"), ("xbuild/traces/", "a trace was read"),
    ("xbuild/stepping/", "a trace was gone through"), ("interpreter/", "the program was run"),
    ("xbuild/files/", "arrays were read or drawn"),
)  # fmt: skip


class TimeIsOver(BaseException):
    """Raised by the alarm, with the sentence for the user; no `except Exception` catches it."""


@define(eq=False)
class Watch:
    """The limit of seconds of one command; `slack` is extra time for the report of a run that has reached its limit."""

    seconds: float
    slack: float
    told: bool = field(default=False, init=False)
    where: str = field(default="", init=False)
    _is_over: bool = field(default=False, init=False)
    _before: Any = field(default=None, init=False)
    _thread: threading.Timer | None = field(default=None, init=False)

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
            return
        self._before = signal.getsignal(signal.SIGALRM)
        first = max(self.seconds + self.slack, 0.001)
        self._thread = threading.Timer(first * 1.25 + 2 + self.slack, self._end)
        self._thread.daemon = True
        self._thread.start()
        # The alarm is set last, so that its exception finds the state that `stop` restores.
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, first, _AGAIN)

    def stop(self) -> None:
        """End the watch: the command has ended, or waits for its user."""
        with suppress(TimeIsOver):
            self._is_over = True
        self._is_over = True
        if self._thread is not None:
            self._thread.cancel()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._thread = None

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Handle the alarm: a run is ended with a report of where it stands, any other work at once."""
        run = sys.modules.get("interpreter.rules.limits")
        if self._is_over:
            return
        if not self.told and run is not None and not run.unlimited():
            self.told = True
            signal.setitimer(signal.ITIMER_REAL, max(self.slack, _AGAIN), _AGAIN)
            raise run.LimitReached("limit_seconds", f"the limit of {self.seconds:g} seconds is over")
        self.where = self.where or _doing(frame)
        raise TimeIsOver(self.sentence())

    def _end(self) -> None:
        """End the process, from a second thread: the main thread is inside one step that does not return."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        os.write(2, f"{self.sentence(self.where or _doing(frame))}\n".encode())
        for path in unfinished():
            with suppress(OSError):
                os.unlink(path)
        os._exit(LIMIT)

    def sentence(self, where: str | None = None) -> str:
        return (
            f"stopped: the limit of {self.seconds:g} seconds was over while {where or self.where}, and what was not "
            f"finished is not written [limit_seconds]\n  --max-seconds {max(1, math.ceil(self.seconds * 4))} gives more"
        )


def _doing(frame: FrameType | None) -> str:
    """The text of what the command was doing, by the innermost frame in these packages."""
    for inner, _ in traceback.walk_stack(frame) if frame else ():
        found = _said_of(inner.f_code.co_filename)
        if found:
            return found
    return "the command was at work"


def _said_of(file: str) -> str | None:
    try:
        place = Path(file).relative_to(_ROOT).as_posix()
    except ValueError:
        return None
    return next((said for prefix, said in _DOING if place.startswith(prefix)), None)


@contextmanager
def limited(seconds: float | None, bytes: int | None, slack: float = 0) -> Iterator[Watch | None]:
    """Inside, the limits hold: TimeIsOver is raised at the limit of seconds, MemoryError at that of bytes."""
    watch = None if seconds is None or seconds > _LONGEST else Watch(seconds, slack)
    with ExitStack() as stack:
        if watch is not None:
            stack.enter_context(_quiet_finalizers())
            stack.callback(watch.stop)
            watch.start()  # before the bytes are bounded, since a thread takes memory
        if bytes is not None:
            stack.enter_context(_bounded(bytes))
        yield watch


@contextmanager
def _quiet_finalizers() -> Iterator[None]:
    """Inside, an alarm in a finalizer, whose exception Python can only print, is dropped; the alarm repeats."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: None if isinstance(told.exc_value, TimeIsOver) else before(told)
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _bounded(bytes: int) -> Iterator[None]:
    """Inside, this process may take at most `bytes` more memory than it holds; only on Linux."""
    held = held_bytes()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [min(held + bytes, _MOST), *(each for each in (soft, hard) if each != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
