"""`xbuild play`: the scheduling game, one page for each level."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import click

from ..files.targets import file_of
from ..game import Telling, TerminalGame, level_of, level_page
from ..game.levels import ShippedLevel, in_order
from ..stepping.console import console_of
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
@click.option("--terminal", "in_terminal", is_flag=True, help="Play in the terminal instead of writing a page.")
def play(which: str | None, output: Path | None, send_buffers: float, in_terminal: bool) -> None:
    """Play the scheduler: move the devices of a small program, and try to make it hang.

    Without an argument, the command lists the levels. For a level (a number or name) or any small program, the command
    writes one page with every state of the program. The page knows what is still possible, and says so only after you
    have made a claim. With `--terminal`, you play at a prompt.

    \b
    Examples:
      xbuild play 3
      xbuild play 3 --terminal
      xbuild play mine.hlo -o mine.html
    """
    if in_terminal and output is not None:
        raise click.UsageError("-o has no effect with --terminal, which writes no page")
    if which is None:
        if in_terminal:
            raise click.UsageError("--terminal needs a level or a program, as in xbuild play 1 --terminal")
        _list_levels()
        return
    level = next((level for level in in_order() if which in (level.name, str(level.number))), None)
    if in_terminal:
        _play(which, level, send_buffers)
    elif level is not None:
        _write(level.page(), output or Path(f"{level.name}.html"))
    else:
        page = level_page(level_of(load(which), send_buffers=send_buffers))
        target = output or _default_page(which)
        check_distinct(target_input(which), {"-o": str(target)})
        _write(page, target)


def _write(page: str, target: Path) -> None:
    write_atomically(target, page)
    say_written(target, "a page for any browser")


def _play(which: str, shipped: ShippedLevel | None, send_buffers: float) -> None:
    """Play at a prompt, without a time limit: the game waits for its player."""
    if shipped is not None:
        level, telling, number = shipped.level(), shipped.telling, shipped.number
    else:
        level = level_of(load(which), send_buffers=send_buffers)
        telling, number = Telling(level.name), len(in_order())
    if (limit := click.get_current_context().obj) is not None:
        limit.stop()
    read = io.StringIO() if sys.stdin is None else sys.stdin
    is_won = TerminalGame(telling, level, console_of(sys.stdout), read.readline).play()
    if not is_won:
        say("game ended")
    elif number < len(in_order()):
        say(f"level solved; next: xbuild play {number + 1} --terminal")
    else:
        say("level solved")


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
    say(
        "\nxbuild play 3 writes the page for level 3, and xbuild play 3 --terminal plays it here; xbuild play TARGET "
        "makes a level of any small multi-device program"
    )
