"""Ctrl-C while the command `xbuild` is imported prints one sentence and exits like a shell, without a traceback."""

# Imported before everything else, so it imports only what Python has already loaded.
import os
import signal
import sys

_STARTING = b"xbuild: interrupted while it started\n"


def is_command(argv: list[str], given: list[str]) -> bool:
    """Whether Python runs the command, by its script or as `python -m xbuild`; not a program that imports xbuild."""
    if argv[:1] == ["-m"]:
        return any(given[n : n + 2] == ["-m", "xbuild"] for n in range(len(given)))
    return bool(argv) and os.path.basename(argv[0]).removesuffix(".exe") == "xbuild"


def _end(number: int, frame: object) -> None:
    try:
        os.write(2, _STARTING)
    finally:
        os._exit(130)


def asleep() -> None:
    """Until `awake`, an interrupt of the command ends the process at once, since no work has begun."""
    if is_command(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, _end)
        except ValueError:  # only the main thread has handlers
            return


def awake() -> None:
    """An interrupt is KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


asleep()
