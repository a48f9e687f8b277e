"""Limits of a run: trips of each loop, seconds in total, bytes of each value."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from attrs import Factory, frozen

from xbuild.core.context import assigned
from xbuild.process.limits import memory

_STRIDE = 1024
Item = TypeVar("Item")


class LimitReached(Exception):
    """Raised when a run reaches one of its limits; `kind` is limit_trips, limit_seconds or limit_bytes."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


def _half_the_memory() -> int:
    return memory() // 2


@frozen
class Limits:
    """The limits at which a run stops with a report: the `trips` of each loop, the total `seconds`, and the `bytes` of
    each value.

    None means no limit. The default of `bytes` is half of the machine's memory.

    >>> Limits(trips=10).seconds is None
    True
    """

    trips: int | None = None
    seconds: float | None = None
    bytes: int | None = Factory(_half_the_memory)


@frozen
class _Running:
    limits: Limits
    end: float


_running: ContextVar[_Running | None] = ContextVar("xbuild_limits", default=None)


@contextmanager
def running(limits: Limits) -> Iterator[None]:
    """The limits on trips and time apply to the code inside the block."""
    end = float("inf") if limits.seconds is None else time.monotonic() + limits.seconds
    with assigned(_running, _Running(limits, end)):
        yield


def unlimited() -> bool:
    """Whether no run with limits is in progress."""
    return _running.get() is None


def trips(most: int | None = None) -> Iterable[int]:
    """The numbers of a loop's trips from 1, up to `most`; plain numbers if neither trips nor time are limited."""
    running = _running.get()
    if running is None or (running.limits.trips is None and running.end == float("inf")):
        return itertools.count(1) if most is None else range(1, most + 1)
    last = running.limits.trips
    if most is None or (last is not None and most > last):
        return _counted(running)  # which stops the run
    return itertools.islice(_counted(running), max(most, 0))


def _counted(running: _Running) -> Iterator[int]:
    last = running.limits.trips
    for first in itertools.count(1, _STRIDE):
        check_time()
        if last is not None and first + _STRIDE > last + 1:
            yield from range(first, last + 2)  # the condition may still end the loop before trip last + 1
            raise LimitReached("limit_trips", f"a loop has run {last} trips, which is the limit, and would continue")
        yield from range(first, first + _STRIDE)


def check_time() -> None:
    """Raise LimitReached if the run's time limit has passed; the grid calls this function between steps."""
    running = _running.get()
    if running is not None and time.monotonic() > running.end:
        raise LimitReached("limit_seconds", f"the limit of {running.limits.seconds} seconds was reached")


def timed(items: Iterable[Item]) -> Iterable[Item]:
    """The items of a loop over elements; the run's time limit is checked once in many items."""
    running = _running.get()
    return items if running is None or running.end == float("inf") else _timed(items)


def _timed(items: Iterable[Item]) -> Iterator[Item]:
    for number, item in enumerate(items):
        if not number % _STRIDE:
            check_time()
        yield item


def seconds_left() -> float | None:
    """The seconds until the time limit; None if time is not limited."""
    running = _running.get()
    return None if running is None or running.end == float("inf") else running.end - time.monotonic()
