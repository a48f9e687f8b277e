"""Output of `xbuild step`: lines of styled pieces, in colour where `rich` is installed and stdout is a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, TypeAlias

from attrs import define, frozen

from shape_inference.escaping import printable

if TYPE_CHECKING:
    from rich.console import Console

HEATS = 8
STYLES = {
    "": "", "title": "bold", "here": "bold cyan", "name": "cyan", "meets": "magenta", "dim": "dim", "waits": "yellow",
    "bad": "bold red", "good": "green",
} | {f"heat{n}": f"color({code})" for n, code in enumerate((33, 38, 43, 48, 184, 214, 208, 196))}  # fmt: skip


@frozen
class Piece:
    """A text and its style, which determines its colour."""

    text: str
    style: str = ""


Line: TypeAlias = Sequence[str | Piece]


@define(eq=False)
class Face:
    """The output of lines: to a console of `rich` in colour, else as plain text."""

    out: IO[str]
    console: Console | None = None

    def say(self, *pieces: str | Piece) -> None:
        """Write a line, cut off at the width of the terminal."""
        self._line(pieces, is_cut=True)

    def prose(self, *pieces: str | Piece) -> None:
        """Write a line, wrapped at the width of the terminal."""
        self._line(pieces, is_cut=False)

    def _line(self, pieces: Line, is_cut: bool) -> None:
        if self.console is None:
            self.out.write("".join(map(_plain, pieces)).rstrip() + "\n")
            return
        from rich.text import Text

        styled = (each if isinstance(each, Piece) else Piece(each) for each in pieces)
        text = Text.assemble(*((_plain(each), STYLES[each.style]) for each in styled))
        text.rstrip()
        self.console.print(text, overflow="ellipsis" if is_cut else "fold", no_wrap=is_cut, highlight=False)

    def rows(self, rows: Iterable[Line], before: str = "") -> None:
        """Write lines whose pieces are aligned in columns."""
        for row in aligned([*rows]):
            self.say(before, *row)

    @property
    def blocks(self) -> str:
        """Characters of growing height; ASCII characters where the encoding of the terminal has no block characters."""
        try:
            TALL.encode(getattr(self.out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return "_.-:=+*#"
        return TALL


TALL = "▁▂▃▄▅▆▇█"


def face_of(out: IO[str]) -> Face:
    """The face of a stream: in colour on a terminal with colours, unless NO_COLOR is set or `rich` is not installed."""
    if not out.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return Face(out)
    try:
        from rich.console import Console
    except ImportError:
        return Face(out)
    return Face(out, Console(file=out))


def aligned(rows: Sequence[Line]) -> list[list[str | Piece]]:
    """Rows of pieces, each padded to the widest piece of its column, with two spaces between columns."""
    widths: list[int] = []
    for row in rows:
        widths += [0] * (len(row) - len(widths))
        for column, piece in enumerate(row):
            widths[column] = max(widths[column], len(_plain(piece)))
    return [[part for pair in zip(row, _gaps(row, widths), strict=True) for part in pair] for row in rows]


def _gaps(row: Line, widths: Sequence[int]) -> list[str]:
    return [" " * (width - len(_plain(piece)) + 2) for piece, width in zip(row, widths, strict=False)]


def _plain(piece: str | Piece) -> str:
    return printable(piece if isinstance(piece, str) else piece.text)
