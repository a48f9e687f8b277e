"""Deadlines: a long pass calls `ask` now and then, which raises once the time that it was given is over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float | None] = ContextVar("xbuild_deadline", default=None)


class DeadlineError(Exception):
    """The time that was given is over."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Inside the block `ask` raises DeadlineError after so many seconds; with None the caller's deadline stays."""
    if seconds is None:
        yield
        return
    end, outer = time.monotonic() + seconds, _end.get()
    reset = _end.set(end if outer is None else min(end, outer))
    try:
        yield
    finally:
        _end.reset(reset)


def ask() -> None:
    """Raise DeadlineError where the time is over."""
    end = _end.get()
    if end is not None and time.monotonic() > end:
        raise DeadlineError
