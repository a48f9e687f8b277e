"""The game of schedules on the site: a list of its levels, and the offline page of each."""

from __future__ import annotations

from xbuild.game.levels import in_order

from .markdown import escaped, table
from .staging import Stage

_TEXT = """# The game: you are the scheduler

Each level is a small program of two or three devices. You choose what each device starts next, and try to make them
hang; then, to make all of them finish. Or claim that it cannot happen: the page knows every state of the program,
computed by the rules of [the check](checker.md), and judges your claim. In the last levels, you add the one control
edge that prevents every hang.

`xbuild play` lists the levels, `xbuild play 3` writes the page of one, `xbuild play 3 --terminal` plays it in the
terminal, and `xbuild play TARGET` makes a level of any small program.
"""


def make(stage: Stage) -> None:
    """Stage the list and the pages."""
    rows = []
    for entry in in_order():
        stage.text(f"_extra/game/{entry.name}.html", entry.page())
        number, _, title = entry.title.partition(". ")
        rows.append((number, f'<a href="game/{entry.name}.html">{escaped(title)}</a>'))
    stage.page("game", f"{_TEXT}\n{table(('level', ''), rows)}")
