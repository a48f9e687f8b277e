"""Deadlines: a long pass calls `ask` regularly, which raises DeadlineError after the deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..core.context import assigned

_end: ContextVar[float | None] = ContextVar("xbuild_deadline", default=None)


class DeadlineError(Exception):
    """The error for a passed deadline."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Inside the block `ask` raises DeadlineError after this number of seconds; None keeps the outer deadline."""
    if seconds is None:
        yield
        return
    end, outer = time.monotonic() + seconds, _end.get()
    with assigned(_end, end if outer is None else min(end, outer)):
        yield


def ask() -> None:
    """Raise DeadlineError if the deadline has passed."""
    end = _end.get()
    if end is not None and time.monotonic() > end:
        raise DeadlineError
