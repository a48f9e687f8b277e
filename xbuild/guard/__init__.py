"""Check each program that JAX compiles, before the program runs, and stop programs that would hang.

A script needs no change: run `xbuild guard train.py` or `python -m xbuild.guard train.py`, or set `XBUILD_GUARD=stop`
in the environment. In Python, call `xb.guard.install()`, or guard a block with `with xb.guard.active("warn"):`.

The mode determines what happens to a refused program:

- `stop` prints the report and raises ProgramRefused, which ends the script with status 1.
- `strict` does the same, and also stops programs that hang only on some data.
- `warn` prints the report and lets the program run.
- `report` does the same as `warn`. It also writes a folder with a page about all programs, the program texts, and
  index.json; it does so before a refused program runs, since that program may never end, and again when the guard ends.

A program is refused only if its verdict is `error` or `deadlock`. A program that hangs only on some data (`depends`)
runs, except in mode `strict`, and the guard prints the report with the condition. The guard fails open: if it cannot
read or check a program, or would need more than ten seconds, it reports this once and lets the program run.

Read the files in this order: this file (the interface), `programs.py` (what a guard does with a program),
`compilation.py` (how it sees what JAX compiles), `processes.py` (whether all processes of a job compiled the same
program), `folder.py` (what `report` writes) and `command.py` (`xbuild guard`).
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from attrs import define

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

    `mode` is "stop", "strict", "warn" or "report"; `folder` is where "report" writes (default `xbuild_guard`). This
    function does not import JAX. If JAX is not imported yet, the guard starts when JAX is imported. A new guard
    replaces one that is already installed. The `programs` of the result are the programs that JAX has compiled since
    the call. Raises ValueError if the mode is unknown, or if `folder` is given for a mode that writes no folder.

    >>> guard = install("warn")
    >>> guard.programs
    []
    >>> uninstall()

    Source: JAX, `jax.extend.xla.register_hlo_module_transformation` and the plug-in mechanism `jax_plugins`.
    """
    global _current
    if mode not in MODES:
        raise ValueError(f"guard: mode is {mode!r}; expected one of {', '.join(MODES)}")
    if folder is not None and mode != "report":
        raise ValueError(f"guard: only mode 'report' writes a folder, but the mode is {mode!r}")
    previous, _current = _current, Guard(mode, Path(folder or FOLDER) if mode == "report" else None)
    if previous is None:
        atexit.register(finish)
    if "jax" in sys.modules:
        compilation.attach(see)
    return _current


def uninstall() -> None:
    """Stop guarding this process: programs that JAX compiles from now on are not checked.

    In mode "report", the folder is written.
    """
    finish()
    atexit.unregister(finish)
    compilation.detach()


def active(mode: str = "stop", folder: str | os.PathLike[str] | None = None) -> AbstractContextManager[Guard]:
    """Guard the block, and restore the previous guard afterwards.

    Takes the same arguments and raises the same errors as `install`.

    >>> with active("warn") as guard:
    ...     pass
    """
    return _Block(mode, folder)


@define
class _Block(AbstractContextManager[Guard]):
    """No generator: Python would close it at the end of a process, when this module is already empty."""

    mode: str
    folder: str | os.PathLike[str] | None
    _outer: Guard | None = None

    def __enter__(self) -> Guard:
        self._outer = _current
        return install(self.mode, self.folder)

    def __exit__(self, *_: object) -> None:
        global _current
        finish()
        _current = self._outer
        if self._outer is None:
            uninstall()


def begin_with_jax() -> None:
    """Begin with what is installed, else with what XBUILD_GUARD and XBUILD_GUARD_DIR say; JAX calls it at its start."""
    mode = os.environ.get("XBUILD_GUARD", "")
    if _current is not None:
        compilation.attach(see)
    elif mode not in ("", "0", "off"):
        guard = install(mode, os.environ.get("XBUILD_GUARD_DIR") if mode == "report" else None)
        since = os.environ.setdefault("XBUILD_GUARD_SINCE", str(guard.since))  # for the processes that this one starts
        with suppress(ValueError):
            guard.since = min(guard.since, float(since))


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
