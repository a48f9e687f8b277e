"""Output of commands, with untrusted text escaped for the terminal, and the exit codes of interrupted commands."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click

from shape_inference.escaping import printable

INTERRUPTED = 130
"""The exit code of Ctrl-C, as shells have it."""


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text on stdout or stderr; characters that are not printable are escaped, in files and pipes too."""
    click.echo(printable(text), err=err, nl=nl)


def say_painted(*pieces: str, err: bool = False) -> None:
    """Print pieces of text that `painted` has made, or that are printable."""
    click.echo("".join(pieces), err=err)


def painted(text: str, **style: Any) -> str:
    """Text in a colour, with characters that are not printable escaped."""
    return click.style(printable(text), **style)


def say_json(facts: object) -> None:
    """Print JSON on stdout, in ASCII; the escapes of JSON keep every text exactly."""
    say(json.dumps(facts, indent=2).replace("\x7f", "\\u007f"))


def ended(command: Callable[[], Any]) -> int:
    """Run a command; gives its exit code, and reports an error in a sentence, without a traceback."""
    from ...interrupts import awake

    try:
        awake()
        return _code(command)
    except click.ClickException as error:
        return _told(error)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        where = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        return _told(click.ClickException(f"{where}{error.strerror or error}"))
    except (click.Abort, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore a second Ctrl-C while the command ends
        return _told(None)


def _code(command: Callable[[], Any]) -> int:
    """Run a command and flush its output; gives the exit code."""
    try:
        found = command()
    except SystemExit as end:
        found = end.code
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    return found if isinstance(found, int) else 0


def _told(error: click.ClickException | None) -> int:
    report = io.StringIO()
    if error is None:
        report.write("interrupted\n")
    else:
        error.show(report)
    with contextlib.suppress(OSError):
        say(report.getvalue(), err=True, nl=False)
    _let_go()
    return INTERRUPTED if error is None else error.exit_code


def _let_go() -> None:
    """Drop the output that a full disk did not take: Python would try again at its end, and print a traceback."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
