"""The output of `xbuild step`: lines of styled pieces, in colour if `rich` is installed and stdout is a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING

from attrs import define

from shape_inference.escaping import printable

from ..core.report_text import Line, StyledText

if TYPE_CHECKING:
    from rich.console import Console

HEATS = 8
STYLES = {
    "": "", "title": "bold", "here": "bold cyan", "name": "cyan", "meets": "magenta", "dim": "dim", "waits": "yellow",
    "bad": "bold red", "good": "green",
} | {f"heat{n}": f"color({code})" for n, code in enumerate((33, 38, 43, 48, 184, 214, 208, 196))}  # fmt: skip


@define(eq=False)
class TextConsole:
    """Writes lines: through a console of `rich` in colour, else as plain text."""

    out: IO[str]
    rich: Console | None = None

    def say(self, *pieces: str | StyledText) -> None:
        """Write a line, truncated at the width of the terminal."""
        self._write_line(pieces, truncates=True)

    def prose(self, *pieces: str | StyledText) -> None:
        """Write a line, wrapped at the width of the terminal."""
        self._write_line(pieces, truncates=False)

    def _write_line(self, pieces: Line, truncates: bool) -> None:
        if self.rich is None:
            self.out.write("".join(map(_plain, pieces)).rstrip() + "\n")
            return
        from rich.text import Text

        styled = (piece if isinstance(piece, StyledText) else StyledText(piece) for piece in pieces)
        text = Text.assemble(*((_plain(piece), STYLES[piece.style]) for piece in styled))
        text.rstrip()
        self.rich.print(text, overflow="ellipsis" if truncates else "fold", no_wrap=truncates, highlight=False)

    def rows(self, rows: Iterable[Line], indent: str = "") -> None:
        """Write lines whose pieces are aligned in columns."""
        for row in align_columns([*rows]):
            self.say(indent, *row)

    @property
    def blocks(self) -> str:
        """Characters of growing height; ASCII characters if the encoding of the terminal has no block characters."""
        try:
            TALL.encode(getattr(self.out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return "_.-:=+*#"
        return TALL


TALL = "▁▂▃▄▅▆▇█"


def console_of(out: IO[str]) -> TextConsole:
    """The console of a stream: in colour on a colour terminal, unless NO_COLOR is set or `rich` is not installed."""
    if not out.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return TextConsole(out)
    try:
        from rich.console import Console
    except ImportError:
        return TextConsole(out)
    return TextConsole(out, Console(file=out))


def align_columns(rows: Sequence[Line]) -> list[list[str | StyledText]]:
    """Pad each piece to the widest piece of its column, with two spaces between columns."""
    widths: list[int] = []
    for row in rows:
        widths += [0] * (len(row) - len(widths))
        for column, piece in enumerate(row):
            widths[column] = max(widths[column], len(_plain(piece)))
    return [[part for pair in zip(row, _gaps(row, widths), strict=True) for part in pair] for row in rows]


def _gaps(row: Line, widths: Sequence[int]) -> list[str]:
    return [" " * (width - len(_plain(piece)) + 2) for piece, width in zip(row, widths, strict=False)]


def _plain(piece: str | StyledText) -> str:
    return printable(piece if isinstance(piece, str) else piece.text)
