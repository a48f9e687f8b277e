"""The limits of a command: seconds, after which it ends with a sentence, and bytes of memory that it may take.

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

from ..files.results import unfinished
from ..process.memory import held_bytes

LIMIT = 3
"""The exit code where a limit of the command was reached."""

_LONGEST = 1e9  # seconds, some thirty years; no timer takes many times as much
_MOST = 2**63 - 1  # bytes; the system counts no further
_AGAIN = 1.0  # seconds after which the alarm comes once more, where what it raised was swallowed
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
    """Raised by the alarm, with the sentence for the user; no `except Exception` keeps it."""


@define(eq=False)
class Watch:
    """One command under its limit of seconds; `slack` is for the report of a run that has come to its own limit."""

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
        # The alarm comes last: what it raises must find all that `stop` has to undo.
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, first, _AGAIN)

    def stop(self) -> None:
        """The command has ended, or waits for its user."""
        with suppress(TimeIsOver):
            self._is_over = True
        self._is_over = True
        if self._thread is not None:
            self._thread.cancel()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._thread = None

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """A run ends with the report of where it stands; anything else at once."""
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
        """The second stage, on a thread of its own: the main thread is inside one step that does not return."""
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
    """What the innermost frame of these packages is there for."""
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
    """Inside, the limits hold: TimeIsOver, or MemoryError, where one is reached."""
    watch = None if seconds is None or seconds > _LONGEST else Watch(seconds, slack)
    with ExitStack() as stack:
        if watch is not None:
            stack.enter_context(_quiet_finalizers())
            stack.callback(watch.stop)
            watch.start()  # before the bytes are bounded: a thread takes some
        if bytes is not None:
            stack.enter_context(_bounded(bytes))
        yield watch


@contextmanager
def _quiet_finalizers() -> Iterator[None]:
    """Inside, an alarm that falls into a finalizer, where Python can only print it, is dropped: it comes again."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: None if isinstance(told.exc_value, TimeIsOver) else before(told)
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _bounded(bytes: int) -> Iterator[None]:
    """At most so many bytes more for what this process holds; only where the system counts them (Linux)."""
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
