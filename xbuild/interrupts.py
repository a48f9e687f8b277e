"""Ctrl-C while the command `xbuild` is being imported: a sentence and the exit code of shells, no traceback."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from pathlib import PurePath
from typing import Any

_STARTING = "xbuild: interrupted while it started\n"


def is_command(argv: list[str], given: list[str]) -> bool:
    """Whether Python runs the command, by its script or as `python -m xbuild`; not a program that imports xbuild."""
    if argv[:1] == ["-m"]:
        return any(option == "-m" and module == "xbuild" for option, module in itertools.pairwise(given))
    return bool(argv) and PurePath(argv[0]).stem == "xbuild"


def _end(number: int, frame: Any) -> None:
    with contextlib.suppress(OSError):
        os.write(2, _STARTING.encode())
    os._exit(130)


def asleep() -> None:
    """Until `awake`, an interrupt of the command ends the process at once; nothing of its work has begun."""
    if is_command(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # not on the main thread
            signal.signal(signal.SIGINT, _end)


def awake() -> None:
    """An interrupt is KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


asleep()
