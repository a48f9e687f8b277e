"""A script of commands for `xbuild step`, and the lines that it brings."""

from __future__ import annotations

import io

from xbuild.stepping import Shell
from xbuild.stepping.console import TextConsole
from xbuild.traces import Trace


def said(found: Trace, script: str, console: TextConsole | None = None) -> tuple[list[str], bool]:
    """The lines that a script brings, without those that name a line of a file, and whether a command failed."""
    out = io.StringIO()
    shell = Shell(found, io.StringIO(script), out, console or TextConsole(out))
    shell.cmdloop()
    return [line for line in shell.console.out.getvalue().splitlines() if ".py:" not in line], shell.failed  # type: ignore[attr-defined]
