"""The guard: checks every program that JAX compiles before it runs, and stops those that would hang.

A script needs no change: `xbuild guard train.py`, `python -m xbuild.guard train.py`, or `XBUILD_GUARD=stop` in the
environment. In Python:

    import xbuild as xb
    xb.guard.install()  # or: with xb.guard.active("warn"): ...

Modes:

    stop    print the report of a refused program, and raise ProgramRefused, which ends the script with status 1
    warn    print the report, and let the program run
    report  like warn; at the end, also write a folder with a page about all programs, the program texts, and index.json

A program is refused only if its verdict is `error` or `deadlock`; `depends` passes. The guard fails open: if it cannot
read or check a program, or would need more than ten seconds, it says so once and the program runs.

Files, in the order of reading: this one (the interface), `programs.py` (what a guard does with a program),
`compilation.py` (how it sees what JAX compiles), `processes.py` (whether all processes of a job compiled the same),
`folder.py` (what `report` writes), `command.py` (`xbuild guard`).
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import compilation
from .processes import Comparison, compare_programs
from .programs import MODES, Guard, GuardedProgram, ProgramRefused

__all__ = [
    "MODES",
    "Comparison",
    "GuardedProgram",
    "ProgramRefused",
    "active",
    "compare_programs",
    "install",
    "uninstall",
]

FOLDER = "xbuild_guard"
"""Where `report` writes if no folder is given, in the current directory."""

_current: Guard | None = None


def install(mode: str = "stop", folder: str | os.PathLike[str] | None = None) -> Guard:
    """Guard this process from now on: each program that JAX compiles is checked before it runs.

    `mode` is "stop", "warn" or "report"; `folder` is where "report" writes at the end of the process (default
    `xbuild_guard`). JAX is not imported: a guard that is installed before JAX starts when JAX is imported. An
    installed guard is
    replaced. The result lists the programs seen so far, as `programs`.
    Raises ValueError for an unknown mode, or for a folder with a mode that writes none.

    >>> guard = install("warn")
    >>> guard.programs
    []
    >>> uninstall()

    Source: JAX, `jax.extend.xla.register_hlo_module_transformation` and the plug-in mechanism `jax_plugins`.
    """
    global _current
    if mode not in MODES:
        raise ValueError(f"guard: mode {mode!r} is none of {', '.join(MODES)}")
    if folder is not None and mode != "report":
        raise ValueError(f"guard: a folder is written in mode 'report', and the mode is {mode!r}")
    previous, _current = _current, Guard(mode, Path(folder or FOLDER) if mode == "report" else None)
    if previous is None:
        atexit.register(finish)
    if "jax" in sys.modules:
        compilation.attach(see)
    return _current


def uninstall() -> None:
    """End the guard of this process: it does not see what JAX compiles from now on. Mode "report" writes its folder."""
    finish()
    atexit.unregister(finish)
    compilation.detach()


@contextmanager
def active(mode: str = "stop", folder: str | os.PathLike[str] | None = None) -> Iterator[Guard]:
    """Guard the block, and restore what was installed before; takes and raises what `install` does.

    >>> with active("warn") as guard:
    ...     pass
    """
    global _current
    outer = _current
    guard = install(mode, folder)
    try:
        yield guard
    finally:
        finish()
        _current = outer
        if outer is None:
            uninstall()


def begin_with_jax() -> None:
    """Begin with what is installed, else with what XBUILD_GUARD and XBUILD_GUARD_DIR say; JAX calls it at its start."""
    mode = os.environ.get("XBUILD_GUARD", "")
    if _current is not None:
        compilation.attach(see)
    elif mode not in ("", "0", "off"):
        install(mode, os.environ.get("XBUILD_GUARD_DIR") if mode == "report" else None)


def see(name: str, text: str, devices: tuple[compilation.DeviceId, ...]) -> None:
    """Have the current guard check a program; raises ProgramRefused where it stops one."""
    if _current is not None:
        _current.see(name, text, devices)


def finish() -> None:
    """Write what the current guard has to write, and forget it."""
    global _current
    guard, _current = _current, None
    if guard is not None:
        guard.finish()
