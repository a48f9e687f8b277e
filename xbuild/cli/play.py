"""`xbuild play`: the scheduling game, one page for each level."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..files.targets import file_of
from ..game import level_of, level_page
from ..game.levels import in_order
from .candidates import targets
from .group import load, main
from .outputs import check_distinct, say, say_written, target_input, write_atomically


@main.command()
@click.argument("which", required=False, metavar="[LEVEL|TARGET]", shell_complete=targets)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the page to this file.  [default: LEVEL.html, or the name of the target's file with the suffix .html]",
)
@click.option(
    "--send-buffers",
    type=click.FloatRange(min=0),
    default=0,
    help="Allow this many sends on each channel to proceed before their recvs are posted (requires TARGET).",
)
def play(which: str | None, output: Path | None, send_buffers: float) -> None:
    """Play the scheduler: move the devices of a small program, and try to make it hang.

    Without an argument, the command lists the levels. For a level (a number or name) or any small program, the command
    writes one page with every state of the program. The page warns you when the program can no longer finish in any
    order.

    \b
    Examples:
      xbuild play 3
      xbuild play mine.hlo -o mine.html
    """
    if which is None:
        _list_levels()
        return
    level = next((level for level in in_order() if which in (level.name, str(level.number))), None)
    if level is not None:
        page, target = level.page(), output or Path(f"{level.name}.html")
    else:
        page = level_page(level_of(load(which), send_buffers=send_buffers))
        target = output or _default_page(which)
        check_distinct(target_input(which), {"-o": str(target)})
    write_atomically(target, page)
    say_written(target, "a page for any browser")


def _default_page(target: str) -> Path:
    """The page of a target, in the current folder, named after its file; raises a usage error if that exists."""
    page = Path(f"{Path(file_of(target)).stem}.html")
    if os.path.lexists(page):
        raise click.UsageError(f"{page} already exists; use -o to write to another file")
    return page


def _list_levels() -> None:
    levels = in_order()
    width = max(len(level.name) for level in levels)
    for level in levels:
        say(f"{level.number:>2}  {level.name:<{width}}  {level.title.partition('. ')[2]}")
    say("\nxbuild play 3 writes the page for level 3; xbuild play TARGET writes one for any small multi-device program")
