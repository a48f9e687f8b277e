"""Output of commands, with text of strangers escaped for the terminal, and the exit codes of interrupted commands."""

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
    """Text on stdout or stderr, each character that does not print as its escape, to a file and a pipe alike."""
    click.echo(printable(text), err=err, nl=nl)


def say_painted(*pieces: str, err: bool = False) -> None:
    """A text of pieces that `painted` has made, or that are printable."""
    click.echo("".join(pieces), err=err)


def painted(text: str, **style: Any) -> str:
    """Text in a colour, printable inside it."""
    return click.style(printable(text), **style)


def say_json(facts: object) -> None:
    """JSON on stdout, in ASCII: its own escapes keep every text exactly."""
    say(json.dumps(facts, indent=2).replace("\x7f", "\\u007f"))


def ended(command: Callable[[], Any]) -> int:
    """The exit code of a command; what stopped it is told in a sentence, without a traceback."""
    from ..interrupts import awake

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
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one while it ends
        return _told(None)


def _code(command: Callable[[], Any]) -> int:
    """The exit code of the command, after its output is flushed."""
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
