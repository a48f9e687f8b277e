"""One run from start to end, whatever ends it: a result, or a report of where each device stands."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from xbuild.scheduling import Verdict

from . import limits as limit
from .callbacks import CallbackFailed
from .grid import Grid
from .history import Mismatch
from .limits import LimitReached, Limits
from .report import Stopped, interrupted, mismatched, raised, stuck


def drive(grid: Grid, arguments: Sequence[tuple[Any, ...]], limits: Limits, verdict: Verdict | None) -> None:
    """Run the grid to its end; Stopped where nobody can go on, a limit is reached or the user interrupts.

    Floating point and integer warnings are NumPy's, not XLA's: they are off for the whole run, once.
    """
    with np.errstate(all="ignore"), limit.running(limits):
        try:
            grid.run(arguments)
        except LimitReached as reached:
            raise Stopped(interrupted(grid, reached.kind, reached.message, reached.__traceback__, verdict)) from None
        except CallbackFailed as failed:
            raise Stopped(raised(grid, failed)) from failed.error
        except Mismatch as mismatch:
            raise Stopped(mismatched(grid, mismatch)) from None
        except KeyboardInterrupt as interrupt:
            raise Stopped(
                interrupted(grid, "interrupted", "interrupted from outside", interrupt.__traceback__, verdict)
            ) from None
        except MemoryError as error:
            raise Stopped(interrupted(grid, "limit_bytes", f"out of memory: {error}", error.__traceback__)) from None
        except Exception as error:
            _note(grid, error, error.__traceback__)
            raise
        finally:
            grid.callbacks.close()
    if not all(device.ended for device in grid.devices):
        raise Stopped(stuck(grid, verdict))


def _note(grid: Grid, error: Exception, traceback: TracebackType | None) -> None:
    """Say with an exception of a rule, a feed or an observer on which device and at which instruction it came."""
    device = grid.running
    standing = device and device.stands(traceback)
    if device and standing:
        source = standing.instruction.source
        error.add_note(f"raised on device {device.number} at {standing}{f' ({source})' if source else ''}")
