"""`xbuild reduce`: the smallest program for which a condition still holds."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import click

from shape_inference import XbuildError

from ..core.graph import Module, ModuleGroup
from ..files.targets import TargetError, UserError, file_of
from ..reducing import FORMS, NotHeldError, minimize, minimize_text, read_condition
from .formats import say_result
from .group import (
    LIMIT,
    RUN_SECONDS,
    Amount,
    load,
    main,
    module_of,
    read_target,
    refuse,
    report_failures,
    stop,
    takes_target,
)
from .options import check_folder_exists, takes_format
from .outputs import (
    INTERRUPTED,
    check_distinct,
    prints_document,
    read_data,
    say,
    say_written,
    target_input,
    write_atomically,
)

_EXITS = {"limit_seconds": LIMIT, "interrupted": INTERRUPTED}
_PAUSE = 1.0  # seconds between two writes of the smallest program so far


@main.command()
@takes_target
@click.option(
    "--while",
    "condition",
    required=True,
    metavar="CONDITION",
    help=f"Keep what makes this condition hold: {', '.join(FORMS)}.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the program to FILE.hlo.  [default: stdout]"
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=min(2, os.cpu_count() or 1),
    help="Test this many programs at a time; the result is the same.  [default: 2]",
)
@click.option("--try-seconds", type=Amount(), default=60.0, show_default=True, help="Limit each test to this time.")
@click.option(
    "--max-seconds",
    type=Amount(),
    help="End after this many seconds with the smallest program so far.  [default: 3600]",
)
@takes_format
def reduce(
    target: str, condition: str, output: str | None, jobs: int, try_seconds: float, max_seconds: float | None
) -> None:
    """Find the smallest program for which a condition still holds, such as a deadlock or a crash of XLA.

    The command removes instructions, results, calls, loops, parameters, devices, groups and annotations, first by
    halves, then one by one, and makes arrays and constants smaller. It keeps a change if the shape rules accept the
    program and the condition still holds. CONDITION is one of:

    \b
      deadlock             `xbuild check` says "deadlock", with the same cause
      refused [KIND]       `xbuild check` refuses it, with this kind of finding
      different OTHER      `xbuild equivalent` says "different" for it and OTHER
      xla crashes [TEXT]   real XLA ends its process; its message has this text
      xla refuses [TEXT]   real XLA refuses it; its message has this text
      xla differs          real XLA and the interpreter compute other results
      peak > 2GiB          a device holds more bytes at once
      command COMMAND      the command ends with status 0; {} is the file

    With `different OTHER`, the same parts are removed from OTHER, which is written to FILE.other.hlo. A file that
    xbuild cannot read is reduced line by line, if the condition applies to text.

    \b
    Examples:
      xbuild reduce step.hlo --while deadlock -o small.hlo
      xbuild reduce step.hlo --while "xla crashes" -o small.hlo
      xbuild reduce after.hlo --while "different before.hlo" -o small.hlo
      xbuild reduce step.hlo --while "command 'grep -q all-gather {}'"

    At any time, the file contains the smallest program found so far. The exit status is 0 if nothing more can be
    removed, 1 if the condition does not hold for TARGET, 3 if the time limit is reached, and 130 after Ctrl-C.
    """
    if output:
        check_folder_exists(output)
    other_name = str(Path(output).with_suffix(".other.hlo")) if output else None
    check_distinct(target_input(target), {"-o": output})
    condition, other = _read(condition)
    seconds = RUN_SECONDS if max_seconds is None else max_seconds
    options: dict[str, Any] = {"seconds": seconds, "try_seconds": try_seconds, "workers": jobs}
    with report_failures():
        try:
            program = _load(target, condition)
            if isinstance(program, str):
                found: Any = minimize_text(program, condition, improved=_writer(output), **options)
                texts = [found.text]
            else:
                write = _writer(output)
                options["improved"] = lambda module, _: write(module)
                found = minimize(program, condition, other=other, **options)
                texts = [each.to_hlo() for each in (found.program, found.other) if each is not None]
        except NotHeldError as error:
            raise stop(str(error)) from None
    for path, text in zip((output, other_name), texts, strict=False):
        if path:
            write_atomically(Path(path), text)
    _report(target, found, texts, output, other_name)
    sys.exit(_EXITS.get(found.stopped, 0))


def _report(target: str, found: Any, texts: list[str], output: str | None, other_name: str | None) -> None:
    facts = {
        "kind": found.stopped or "reduced",
        "refused": False,
        "condition": found.condition,
        "before": found.before,
        "after": found.after,
        "tries": found.tries,
        "seconds": found.seconds,
        "text": texts[0],
        "other": texts[1] if len(texts) > 1 else None,
    }
    if not say_result(target, facts, []):
        say(found.summary, err=not output)
        say("", err=not output)
        say(texts[0], nl=False)
    if output:
        say_written(output, "the reduced program", err=prints_document())
    if output and other_name and len(texts) > 1:
        say_written(other_name, "the program with which it is compared, reduced with it", err=prints_document())


def _read(condition: str) -> tuple[str, Module | None]:
    """The condition, and the program that it names; a text that states none is a usage error."""
    try:
        read_condition(condition)
    except ValueError as error:
        raise click.UsageError(f"--while {error}") from None
    words = shlex.split(condition)
    if words[0] != "different":
        return condition, None
    if len(words) < 2:
        raise click.UsageError("--while different: name the program to compare TARGET with, as in different OTHER")
    other = module_of(load(words[1]))
    if isinstance(other, ModuleGroup):
        raise click.UsageError(
            f"--while different takes one program for all devices, but {words[1]} has one program for each device"
        )
    return "different", other


def _load(target: str, condition: str) -> Module | str:
    """The program of a target, or its text if it cannot be read and the condition applies to text."""
    try:
        program = module_of(read_target(target))
    except TargetError as error:
        raise click.UsageError(str(error)) from None
    except UserError as error:
        raise refuse(error, target) from None
    except XbuildError as error:
        path = file_of(target)
        if path is None or not path.endswith((".hlo", ".txt")) or not read_condition(condition).reads_text:
            raise refuse(error, target) from None
        first = str(error).partition("\n")[0]
        say(f"notice: {target} cannot be read as a program ({first}); its lines are reduced", err=True)
        return read_data(path)
    if isinstance(program, ModuleGroup):
        raise click.UsageError(
            f"{target!r} has one program for each device; reduce takes one program for all devices (in Python, "
            "xb.minimize takes a ModuleGroup)"
        )
    return program


def _writer(output: str | None) -> Callable[[Any], None]:
    """What writes the smallest program so far to the file, at most once a second."""
    last = -_PAUSE

    def write(found: Module | str) -> None:
        nonlocal last
        if output and monotonic() - last >= _PAUSE:
            write_atomically(Path(output), found if isinstance(found, str) else found.to_hlo())
            last = monotonic()

    return write
