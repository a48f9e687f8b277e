"""The driver of a run: runs the grid, and turns an exception that ends the run into the report of a stop."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from xbuild.checking import Verdict

from ..custom_calls import CustomCallError
from ..rules import limits as limit
from ..rules.denormals import environment, fesetenv, of_user, with_mode
from ..rules.limits import LimitReached, Limits
from .callbacks import CallbackFailed
from .ends import interrupted, mismatched, raised, stuck, unregistered
from .grid import Grid
from .history import Mismatch
from .report import Report, Stopped


def drive(
    grid: Grid, arguments: Sequence[tuple[Any, ...]], limits: Limits, verdict: Verdict | None, flush: bool
) -> None:
    """Run the grid to its end; Stopped where no device can go on, a limit is reached or the user interrupts.

    NumPy's floating point and integer warnings, which XLA does not have, are off for the whole run. With `flush`
    denormal numbers are zeros.
    """
    try:
        with np.errstate(all="ignore"), limit.running(limits):
            _run(grid, arguments, flush)
    except BaseException as error:
        raise_end(grid, error, verdict)
    finally:
        grid.callbacks.close()
    if not all(device.ended for device in grid.devices):
        raise Stopped(stuck(grid, verdict))


def _run(grid: Grid, arguments: Sequence[tuple[Any, ...]], flush: bool) -> None:
    own = environment()
    reset = of_user.set(own)
    try:
        fesetenv(with_mode(own, flush))
        grid.run(arguments)
    finally:
        fesetenv(own)
        of_user.reset(reset)


def raise_end(grid: Grid, error: BaseException, verdict: Verdict | None) -> NoReturn:
    """Raise the error of a run that an exception ended, after marking what its device had executed."""
    if grid.running is not None:
        grid.running.mark_begun(error.__traceback__)
    if isinstance(error, CallbackFailed):
        raise Stopped(raised(grid, error)) from error.error
    report = _report(grid, error, verdict)
    if report is not None:
        raise Stopped(report) from None
    if isinstance(error, Exception):
        _note(grid, error, error.__traceback__)
    raise error


def _report(grid: Grid, error: BaseException, verdict: Verdict | None) -> Report | None:
    """The report of a run that an exception ended; None for an exception of a rule or a feed, which is raised."""
    if isinstance(error, LimitReached):
        return interrupted(grid, error.kind, error.message, error.__traceback__, verdict)
    if isinstance(error, Mismatch):
        return mismatched(grid, error)
    if isinstance(error, CustomCallError):
        return unregistered(grid, error)
    if isinstance(error, KeyboardInterrupt):
        return interrupted(grid, "interrupted", "interrupted from outside", error.__traceback__, verdict)
    if isinstance(error, MemoryError):
        return interrupted(grid, "limit_bytes", f"out of memory: {error}", error.__traceback__)
    return None


def _note(grid: Grid, error: Exception, traceback: TracebackType | None) -> None:
    """Add to an exception of a rule, a feed or an observer the device and the instruction at which it was raised."""
    device = grid.running
    standing = device and device.stands(traceback)
    if device and standing:
        source = standing.instruction.source
        error.add_note(f"raised on device {device.number} at {standing}{f' ({source})' if source else ''}")
