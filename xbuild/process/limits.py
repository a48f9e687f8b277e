"""The limits of the process: deadlines of long passes, depth of calls, available memory, pauses of the collector."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NoReturn

from ..core.context import assigned
from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction
from ..core.memos import remembered

# ----------------------------------------------------------------------------
# Deadlines: a long pass calls `ask` regularly, which raises DeadlineError after the deadline.

_end: ContextVar[float | None] = ContextVar("xbuild_deadline", default=None)


class DeadlineError(BaseException):
    """The error for a passed deadline; no `except Exception` catches it, since no value is unknown because of it."""


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


# ----------------------------------------------------------------------------
# The depth of calls of computations, and the recursion limit of Python for recursive walks over these calls.

DEEPEST = 500
SHALLOW = 16  # levels within the default recursion limit
_FRAMES = 40  # Python frames for each level of calls, of the deepest walk


@remembered
def depth(computation: Computation) -> int:
    """The length of the longest chain of calls from a computation.

    Raises BuildError where a computation calls itself, directly or indirectly.
    """
    found: dict[Computation, int] = {}
    for each in computation.reachable():
        calls = [(i, called) for i in each.calls for called in i.called]
        for instruction, called in calls:
            if called not in found:
                _refuse_recursion(each, instruction, called)
        found[each] = max((found[called] + 1 for _, called in calls), default=0)
    return found[computation]


def _refuse_recursion(computation: Computation, instruction: Instruction, called: Computation) -> NoReturn:
    between = "itself" if called is computation else f"{called.name}, which calls {computation.name},"
    raise BuildError(
        "cycle",
        f"computation {computation.name} calls {between} at {instruction.name}; the calls would never end",
        ("use xb.while_ to repeat a computation",),
    )


@contextmanager
def room_for_calls(entries: Iterable[Computation]) -> Iterator[None]:
    """Raise Python's recursion limit for walks over the calls; raises BuildError where calls are nested too deep."""
    deepest = max(map(depth, entries), default=0)
    if deepest > DEEPEST:
        raise BuildError(
            "nested_too_deep",
            f"computations call each other {deepest} levels deep; at most {DEEPEST} levels are allowed",
            ("inline computations that are called only once, with xb.edit(module) and editor.inline(name)",),
        )
    before = sys.getrecursionlimit()
    if deepest > SHALLOW:
        sys.setrecursionlimit(before + deepest * _FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# ----------------------------------------------------------------------------
# The memory that is available to this process: that of the machine, or the limit of its control group.

_OF_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNKNOWN = 16 << 30


@functools.cache
def memory() -> int:
    """The bytes of memory of the machine, or the limit of the control group (container) if it is lower."""
    return min([_of_machine(), *filter(None, map(_of_group, _OF_GROUPS))])


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _of_group(file: str) -> int | None:
    """The memory limit in a file of the kernel; None without a limit."""
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def held_bytes(process: int | str = "self") -> int | None:
    """The current bytes of data of a process; None where the system does not report them."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def bound_child(process: int, more: int) -> None:
    """Limit the data segment of a child process to `more` bytes above what it holds now; only on Linux."""
    held = held_bytes(process)
    if held is None:
        return
    import resource

    with contextlib.suppress(OSError, AttributeError):  # it has ended already, or the system has no prlimit
        _, hard = resource.prlimit(process, resource.RLIMIT_DATA)
        limit = min(held + more, 2**63 - 1)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (limit, hard))


# ----------------------------------------------------------------------------
# Pauses of Python's garbage collector, for passes that create many objects and no reference cycles.


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable the garbage collector inside the block, where it would traverse many live objects repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
