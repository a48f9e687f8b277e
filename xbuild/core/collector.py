"""The garbage collector while programs are recorded: it runs less often, since instructions form no cycles."""

from __future__ import annotations

import gc
from typing import Any

from attrs import define

OBJECTS = 50_000
"""The number of new objects after which the collector runs while a program is recorded; Python's default is 700."""


@define
class _Thresholds:
    """The thresholds to restore, if they are raised, and whether something was recorded since the last collection."""

    before: tuple[int, int, int] | None = None
    is_recording: bool = False


_state = _Thresholds()


def relax() -> None:
    """Raise the collector's threshold; builders call this after every few hundred instructions.

    `restore` lowers it again, at the end of a program, or after a collection before which nothing was recorded: nobody
    has to end a program, and neither an exception nor another thread can keep the threshold raised. A threshold that
    the user sets meanwhile stays. A collector that is off, or runs less often already, is left alone.

    Source: Python's documentation of gc.set_threshold and gc.callbacks.
    """
    _state.is_recording = True
    thresholds = gc.get_threshold()
    if _state.before is None and gc.isenabled() and 0 < thresholds[0] < OBJECTS:
        _state.before = thresholds
        gc.set_threshold(OBJECTS, *thresholds[1:])
        if _after_collection not in gc.callbacks:
            gc.callbacks.append(_after_collection)


def restore() -> None:
    """Set the thresholds that the collector had before `relax`."""
    before, _state.before = _state.before, None
    if before is not None and gc.get_threshold() == (OBJECTS, *before[1:]):
        gc.set_threshold(*before)


def _after_collection(phase: str, info: Any) -> None:
    if phase == "stop":
        if not _state.is_recording:
            restore()
        _state.is_recording = False
