"""Outputs of commands: conflicting paths are refused, and untrusted text is escaped for the terminal."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from shape_inference.escaping import beside_annotations, printable

from ..core.report_text import WIDTH, Line, coloured
from ..files import arrays
from ..files.arrays import replacing
from ..files.targets import file_of
from ..process.progress import hidden

# ----------------------------------------------------------------------------
# The files of a command
#
# No output may be an input or another output, by any link or spelling of its path.


def check_distinct(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Raise a usage error if an output is an input or another output: the same file, by any link or spelling.

    Both map the role of a file on the command line to its path; each file in an input folder is an input.
    """
    read = [(role, file) for role, path in inputs.items() if path for file in _files(path)]
    written: list[tuple[str, str]] = []
    for option, path in outputs.items():
        if not path or _is_special_file(path):
            continue
        for role, other in (*read, *written):
            if _is_same_file(path, other):
                does = "reads" if (role, other) in read else "writes"
                raise click.UsageError(
                    f"{option} {path} is also the file that the command {does} as {role}; choose a different path"
                )
        written.append((option, path))


def target_input(target: str) -> dict[str, str | None]:
    """The file of a target, as an input for `check_distinct`."""
    return {f"TARGET, {target}": file_of(target)}


def read_data(path: str) -> str:
    """The text of a data file, of at most 1 GiB."""
    try:
        return arrays.read_text(Path(path), _MOST_DATA).decode("utf-8")
    except arrays.ArchiveError as error:
        raise click.UsageError(str(error)) from None


_MOST_DATA = 1 << 30


def write_atomically(target: Path, content: str) -> None:
    """Write a text file completely or not at all; if it cannot be written, the command ends with a message."""
    try:
        with replacing(target) as file:
            file.write(content.encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from None


def _files(path: str) -> Iterator[str]:
    yield path
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            yield from (entry.path for entry in entries)


def _is_special_file(path: str) -> bool:
    """Whether a path is a device or a pipe, to which several outputs may be written."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of the files does not exist yet
        return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


# ----------------------------------------------------------------------------
# Printing, with untrusted text escaped for the terminal, and exit codes

FORMAT = "xbuild.format"
"""Where the context of a command has the format that --format chooses."""


def chosen_format() -> str:
    """The format that the command line chooses, one of `options.FORMATS`."""
    context = click.get_current_context(silent=True)
    return "text" if context is None else str(context.meta.get(FORMAT, "text"))


def prints_document() -> bool:
    """Whether stdout is for a program: the result is printed in a format other than text."""
    return chosen_format() != "text"


INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells."""


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text on stdout or stderr, with unprintable characters escaped, in files and pipes too."""
    with hidden():
        click.echo(_harmless(printable(text), err), err=err, nl=nl)


def _harmless(text: str, err: bool) -> str:
    """Text for stderr, in which a runner of GitHub Actions finds no command, beside annotations and in its jobs."""
    is_read = chosen_format() == "github" or os.environ.get("GITHUB_ACTIONS") == "true"
    return beside_annotations(text) if err and is_read else text


def say_written(path: object, what: str = "", *, err: bool = False) -> None:
    """Say that the command wrote a file or a folder, and what it is; on stderr if stdout has a document."""
    say(f"wrote {path}{f': {what}' * bool(what)}", err=err or prints_document())


def say_styled(*pieces: str, err: bool = False) -> None:
    """Print pieces of text that `styled` returned, or that are printable."""
    with hidden():
        click.echo("".join(pieces), err=err)


def styled(text: str, **style: Any) -> str:
    """Text in a colour, with unprintable characters escaped."""
    return click.style(printable(text), **style)


_STYLES: dict[str, dict[str, Any]] = {
    "bad": {"fg": "red", "bold": True},
    "good": {"fg": "green"},
    "waits": {"fg": "yellow"},
    "title": {"bold": True},
    "name": {"fg": "cyan"},
    "dim": {"dim": True},
}


def say_lines(lines: Iterable[Line], *, err: bool = False) -> None:
    """Print the lines of a report, in colour on a terminal."""
    painted = coloured(lines, lambda text, style: styled(text, **_STYLES.get(style, {})) if style else printable(text))
    with hidden():
        click.echo(_harmless("\n".join(line.rstrip() for line in painted.split("\n")), err), err=err)


MORE = "--all shows them"
"""What a report on a terminal says about the rows that it folds."""


def report_width(*, err: bool = False) -> int:
    """The width for a report: that of the terminal on which it is printed, else the width of all reports."""
    stream = sys.stderr if err else sys.stdout
    try:
        columns = stream.isatty() and (
            int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(stream.fileno()).columns
        )
    except (OSError, ValueError, AttributeError):
        columns = 0
    return max(columns, _NARROWEST) if columns else WIDTH


_NARROWEST = 60


def say_json(facts: object) -> None:
    """Print JSON on stdout, in ASCII; the escapes of JSON preserve every text exactly."""
    say(json.dumps(facts, indent=2).replace("\x7f", "\\u007f"))


def run_to_exit_code(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code; reports an error in a message, without a traceback."""
    from ..interrupts import awake

    try:
        awake()
        return _run_and_flush(command)
    except click.ClickException as error:
        return _report_error(error)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        where = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        return _report_error(click.ClickException(f"{where}{error.strerror or error}"))
    except (click.Abort, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore a second Ctrl-C while the command ends
        return _report_error(None)


def _run_and_flush(command: Callable[[], Any]) -> int:
    """Run a command, flush its output, and return its exit code."""
    try:
        code = command()
    except SystemExit as end:
        code = end.code
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    return code if isinstance(code, int) else 0


def _report_error(error: click.ClickException | None) -> int:
    """Report an error, or an interrupt for None, and return the exit code."""
    report = io.StringIO()
    if error is None:
        report.write("interrupted\n")
    else:
        error.show(report)
    context = getattr(error, "ctx", None)
    with contextlib.suppress(OSError), contextlib.nullcontext() if context is None else context.scope(cleanup=False):
        say(report.getvalue(), err=True, nl=False)
    _discard_unwritten()
    return INTERRUPTED if error is None else error.exit_code


def _discard_unwritten() -> None:
    """Discard output that a full disk did not accept: Python would try again at exit, and print a traceback."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
