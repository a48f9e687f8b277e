"""`xbuild play`: the game of schedules, a page a level."""

from __future__ import annotations

from pathlib import Path

import click

from ..game import level_of, level_page
from ..game.levels import Entry, in_order
from .group import load, main
from .support.paths import distinct, target_of, write_whole
from .support.saying import say


@main.command()
@click.argument("which", required=False, metavar="[LEVEL|TARGET]")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The page.  [default: LEVEL.html]",
)
@click.option("--send-buffers", type=click.FloatRange(min=0), default=0, help="As of check; for a TARGET.")
def play(which: str | None, output: Path | None, send_buffers: float) -> None:
    """You are the scheduler: move the devices of a small program, and try to make it hang.

    Without an argument the levels are listed. A level, by number or name, or any small program, becomes one page, which
    knows every state of the program, and says when no order can end any more.

    \b
    xbuild play 3
    xbuild play mine.hlo -o mine.html
    """
    if which is None:
        _list()
        return
    entry = next((each for each in in_order() if which in (each.name, str(each.number))), None)
    if entry is not None:
        name, page = entry.name, entry.page()
    else:
        found = level_of(load(which), send_buffers=send_buffers)
        name, page = found.name, level_page(found)
    target = output or Path(f"{name}.html")
    if entry is None:
        distinct(target_of(which), {"-o": str(target)})
    write_whole(target, page)
    say(f"wrote {target}; open it in a browser")


def _list() -> None:
    width = max(len(each.name) for each in in_order())
    for each in in_order():
        say(f"{each.number:>2}  {each.name:<{width}}  {_words(each)}")
    say("\nxbuild play 3 writes the page of a level; xbuild play TARGET that of any small program of several devices")


def _words(entry: Entry) -> str:
    return entry.title.partition(". ")[2]
