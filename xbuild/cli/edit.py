"""`xbuild extract` and `xbuild diff`: a part of a program, and the difference of two programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import xbuild

from ..core.diagnostics import BuildError
from ..core.graph import Module, ModuleGroup
from .group import REFUSED, load, main, module_of, needs, stop, takes_target
from .support.candidates import instructions, targets
from .support.paths import distinct, target_of
from .support.saying import painted, say_json, say_painted
from .viz import write

_COLOURS = {"changed": "yellow", "added": "green", "removed": "red"}


@main.command()
@takes_target
@click.option(
    "--around", metavar="NAME", shell_complete=instructions, help="Take the neighbourhood of this instruction."
)
@click.option(
    "--radius",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="With --around: how many operands and users away instructions are taken.",
)
@click.option(
    "--computation", metavar="NAME", help="The computation to take, or with --around to search.  [default: the entry]"
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="File for the program, FILE.hlo.  [default: stdout]"
)
def extract(target: str, around: str | None, radius: int, computation: str | None, output: str | None) -> None:
    """Make a program of a computation, or of the neighbourhood of an instruction.

    Operands that are cut off become parameters; values that are used outside become the result.
    """
    needs("--around NAME", around, "radius")
    distinct(target_of(target), {"-o": output})
    program = _one(target)
    try:
        part = xbuild.extract(program, around, radius, computation=computation)
    except BuildError as error:
        report = error.message + "".join(f"\nhint: {hint}" for hint in error.hints)
        raise click.UsageError(report) if error.kind == "undefined_name" else stop(report) from None
    write(part.to_hlo(), output)


def _one(target: str) -> Module:
    program = module_of(load(target))
    if isinstance(program, ModuleGroup):
        way = f", such as {Path(target) / 'device0.hlo'}" if Path(target).is_dir() else ""
        raise click.UsageError(f"{target!r} is a program for each device; that of one device is wanted{way}")
    return program


@main.command()
@click.argument("before", metavar="TARGET", shell_complete=targets)
@click.argument("after", metavar="OTHER", shell_complete=targets)
@click.option("--json", "as_json", is_flag=True, help="Print the difference as JSON.")
def diff(before: str, after: str, as_json: bool) -> None:
    """Compare two programs: instructions that were changed, added or removed.

    Instructions are matched by name, and by structure where names do not tell; metadata and layouts do not count.
    Exit codes: 0 the same, 1 different (or a program is refused).
    """
    from ..editing.difference_text import as_lines

    found = xbuild.diff(_one(before), _one(after))
    if as_json:
        say_json(found.to_dict())
    else:
        for line in as_lines(found, lambda text, kind: painted(text, fg=_COLOURS.get(kind))):
            say_painted(line)
    sys.exit(0 if found.same else REFUSED)
