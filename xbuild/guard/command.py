"""`xbuild guard`: run a script in which every program that JAX compiles is checked before it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import click

from ..cli.group import main
from ..cli.options import read_runtime
from . import FOLDER
from .programs import MODES


def _checked_runtime(context: click.Context, value: str) -> str:
    """The name of a preset, or the absolute path of a file; a usage error for any other value of --runtime."""
    from ..runtimes.record import RUNTIMES

    read_runtime(value, next(each for each in context.command.params if each.name == "runtime"))
    return value if value in RUNTIMES else os.path.abspath(value)


@main.command(cls=click.Command, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="stop",
    show_default=True,
    help="Choose what happens if a program is refused.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help=f"Write the page and the program texts to this folder; implies --mode report.  [default: {FOLDER}]",
)
@click.option("--strict", is_flag=True, help="Also stop programs that hang only on some data; implies --mode strict.")
@click.option(
    "--runtime",
    metavar="NAME|FILE.toml",
    help="Check the programs as `xbuild check --runtime` does.  [default: none]",
)
@click.option("-m", "is_module", is_flag=True, help="Run SCRIPT as a module, like python -m.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]")
@click.pass_context
def guard(
    context: click.Context,
    mode: str,
    folder: str | None,
    strict: bool,
    runtime: str | None,
    is_module: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run a script, and check each program that JAX compiles before the program runs.

    If a program is refused, the mode `stop` prints the report and ends the script with status 1, and the mode `warn`
    prints the report and continues. The mode `report` does the same as `warn`, and also writes a page about all
    programs: before it continues, and when the script ends. SCRIPT is a Python file, or any command that starts Python.
    The guard also checks the programs of processes that the script starts. If xbuild cannot read a program, or cannot
    check it within ten seconds, the guard reports this once, and the program runs. If only the data decide whether a
    program hangs, the guard prints the condition, and the program runs, except with --strict.

    To guard scripts that other programs start, set XBUILD_GUARD=stop (or strict, warn or report) in the environment.
    Then XBUILD_GUARD_DIR names the folder of the mode `report`.

    \b
    Examples:
      xbuild guard train.py --steps 100
      xbuild guard --strict train.py
      xbuild guard --report checked train.py
      xbuild guard -m pytest tests/test_sharding.py
    """
    if strict and (folder is not None or mode in ("warn", "report")):
        raise click.UsageError("--strict stops programs, and the modes warn and report do not; use only one")
    mode = "report" if folder is not None else "strict" if strict else mode
    words = _command(script, is_module)
    environment = {**os.environ, "XBUILD_GUARD": mode, "XBUILD_GUARD_SINCE": str(time.time())}
    if mode == "report":
        environment["XBUILD_GUARD_DIR"] = os.path.abspath(folder or FOLDER)
    if runtime is not None:
        environment["XBUILD_GUARD_RUNTIME"] = _checked_runtime(context, runtime)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        status = subprocess.run([*words, *arguments], env=environment, check=False).returncode
    except KeyboardInterrupt:  # the script has received it, too, and has ended
        raise click.Abort from None
    context.exit(status if status >= 0 else 128 - status)


def _command(script: str, is_module: bool) -> list[str]:
    """The words that start a script; a usage error if there is no such file or command."""
    if is_module:
        return [sys.executable, "-m", script]
    if os.path.isfile(script) and not (os.access(script, os.X_OK) and not script.endswith(".py")):
        return [sys.executable, script]
    found = shutil.which(script)
    if found is None:
        raise click.UsageError(f"{script!r}: no file or command has this name")
    return [found]
