"""`xbuild extract` and `xbuild diff`: a part of a program, and the difference between two programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import xbuild

from ..core.diagnostics import BuildError
from ..core.graph import Module, ModuleGroup
from ..files.targets import file_of
from .candidates import instructions, targets
from .group import REFUSED, load, main, module_of, require, stop, takes_target
from .options import check_page, shows_all, takes_all
from .outputs import MORE, check_distinct, say_json, say_styled, say_written, styled, target_input, write_atomically
from .viz import write

_STYLES: dict[str, dict[str, Any]] = {
    "changed": {"fg": "yellow"}, "moved": {"fg": "yellow"}, "added": {"fg": "green"}, "removed": {"fg": "red"},
    "same": {"fg": "green"}, "different": {"fg": "red", "bold": True}, "folded": {"dim": True},
}  # fmt: skip


def _paint(text: str, kind: str) -> str:
    return styled(text, **_STYLES.get(kind, {}))


@main.command()
@takes_target
@click.option(
    "--around", metavar="NAME", shell_complete=instructions, help="Extract the neighbourhood of this instruction."
)
@click.option(
    "--radius",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Follow operands and users for this many steps (requires --around).",
)
@click.option(
    "--computation",
    metavar="NAME",
    help="Extract this computation or, with --around, search it for the instruction.  [default: the entry computation]",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the program to FILE.hlo.  [default: stdout]"
)
def extract(target: str, around: str | None, radius: int, computation: str | None, output: str | None) -> None:
    """Extract a computation, or the neighbourhood of an instruction, as a program.

    Operands from outside the extracted part become parameters. Values used outside this part become the result.
    """
    require("--around NAME", around, "radius")
    check_distinct(target_input(target), {"-o": output})
    program = _load_module(target)
    try:
        part = xbuild.extract(program, around, radius, computation=computation)
    except BuildError as error:
        report = error.message + "".join(f"\nhint: {hint}" for hint in error.hints)
        raise click.UsageError(report) if error.kind == "undefined_name" else stop(report) from None
    write(part.to_hlo(), output)


def _load_module(target: str) -> Module:
    program = module_of(load(target))
    if isinstance(program, ModuleGroup):
        example = f", such as {Path(target) / 'device0.hlo'}" if Path(target).is_dir() else ""
        raise click.UsageError(f"{target!r} has one program for each device; choose the program of one device{example}")
    return program


@main.command()
@click.argument("before", metavar="TARGET", shell_complete=targets)
@click.argument("after", metavar="OTHER", shell_complete=targets)
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    metavar="FILE.html",
    help="Also write a page that shows both programs side by side.",
)
@takes_all
def diff(before: str, after: str, as_json: bool, page: str | None) -> None:
    """List the instructions that were changed, moved, added or removed between two programs.

    The command matches instructions by name, or by structure and neighbours if names do not match, and ignores metadata
    and layouts. An instruction that moved into or out of a call or fusion has the mark >.
    The exit status is 0 if the programs are the same, and 1 if they differ or a program is refused.

    The page shows each instruction beside its partner, with what changed, its operands and your line. It also marks
    layouts that differ.

    \b
    Examples:
      xbuild diff before.hlo after.hlo
      xbuild diff before.hlo after.hlo --page diff.html
    """
    from ..editing.difference import as_lines

    if page is not None:
        check_page(page)
        check_distinct({**target_input(before), f"OTHER, {after}": file_of(after)}, {"--page": page})
    difference = xbuild.diff(_load_module(before), _load_module(after))
    if as_json:
        say_json(difference.to_dict())
    else:
        for line in as_lines(difference, _paint, shows_all(), MORE):
            say_styled(line)
    if page is not None:
        write_atomically(Path(page), difference.page(before, after))
        say_written(page, "a page for any browser that shows both programs side by side", err=as_json)
    sys.exit(0 if difference.same else REFUSED)
