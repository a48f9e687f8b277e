"""Lines of reports: styled pieces that fit in the width, long lists folded; as plain text, in colour, or as HTML.

A report answers first: a sentence, the devices with their lines, the cause and the fix. Tables and notes follow, and
each list shows `MOST_ROWS` rows. `plain` writes the lines for `str`, `coloured` for a terminal, `html` for a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from attrs import frozen

from shape_inference.escaping import in_html

from .hooks import Reported

WIDTH = 100
"""The width of a report that is not printed on a terminal."""

BESIDE_PICTURE = 72
"""The width of a report beside a picture."""

MOST_ROWS = 10
"""The rows of a list that are shown unless all are requested."""

FIRST_SCREEN = 6
"""The lines for devices on the first screen, above the cause and the fix; further devices follow below."""

MORE = "report(all=True) shows them"
"""How to see the rows that a report folds, if it is not a command's."""

MOST_LABEL = 24
"""The width of the longest list of devices that sets the width of its column."""

LABEL = 5
"""The width of the labels cause, fix, cycle and note."""

T = TypeVar("T")


@frozen
class StyledText:
    """A text and its style, which determines its colour: bad, good, waits, title, name, dim, or none."""

    text: str
    style: str = ""


Line: TypeAlias = Sequence[str | StyledText]


def _text(piece: str | StyledText) -> str:
    return piece if isinstance(piece, str) else piece.text


def plain(lines: Iterable[Line]) -> str:
    """The lines as plain text."""
    return "\n".join("".join(map(_text, line)).rstrip() for line in lines)


def coloured(lines: Iterable[Line], paint: Callable[[str, str], str]) -> str:
    """The lines as text in which `paint` colours each piece, by its text and its style."""
    return "\n".join("".join(paint(_text(piece), getattr(piece, "style", "")) for piece in line) for line in lines)


def html(lines: Iterable[Line]) -> str:
    """The lines as HTML, with a class for each style, for the inside of an element that preserves spaces."""
    return coloured(
        lines, lambda text, style: f'<span class="r-{style}">{in_html(text)}</span>' if style else in_html(text)
    )


class LineReport(Reported):
    """Base of results whose report is `lines`, which takes `all`, `width` and the hint `more` about folded rows."""

    __slots__ = ()

    lines: Callable[..., Iterable[Line]]

    def report(self, *, all: bool = False, width: int = WIDTH) -> str:
        """Return the report as text; `all` also shows the rows after the tenth, which str() omits."""
        return plain(self.lines(all, width))

    def __str__(self) -> str:
        return self.report()

    def _styled_lines(self) -> Iterable[Line]:
        return self.lines()


def headed(lines: Iterable[str], most: int | None = None, more: str = "") -> Iterator[Line]:
    """Plain lines as a report: the first one and those without indentation are titles.

    Of more than `most` lines, the others are counted, and `more` says how to see them.

    >>> [*headed(["cost of f", "  4 FLOP", "  8 B", "  2 devices"], 2, "print(cost) shows them")][-1]
    ('  ', StyledText(text='... and 2 more lines; print(cost) shows them', style='dim'))
    """
    rows = [*lines]
    shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
    for line in shown:
        yield (line,) if line.startswith(" ") or not line else (StyledText(line, "title"),)
    if len(shown) < len(rows):
        yield more_line(len(rows) - len(shown), more, noun="line")


def join_words(words: Iterable[str]) -> str:
    """The words as a list in a sentence.

    >>> join_words(["psum.1"]), join_words(["psum.1", "psum.2"]), join_words(["psum.1", "psum.2", "send.3"])
    ('psum.1', 'psum.1 and psum.2', 'psum.1, psum.2 and send.3')
    """
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters, broken at spaces; a longer word keeps a line of its own."""
    lines, line = [], ""
    for word in text.split(" "):
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line.rstrip())
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def indented(text: str, width: int, style: str = "") -> Iterator[Line]:
    """A sentence below the first line of a report, with its further lines below its first."""
    text = text.strip()
    for number, part in enumerate(wrapped(text, max(width - 4, 30))):
        yield ("    " if number else "  ", StyledText(part, style))


def labelled(label: str, text: str, width: int, style: str = "", title: str = "title") -> Iterator[Line]:
    """A labelled text such as the cause, with its further lines below its first."""
    indent = " " * (2 + LABEL + 2)
    for number, part in enumerate(wrapped(text, max(width - len(indent), 30))):
        head: Line = (indent,) if number else ("  ", StyledText(f"{label:<{LABEL}}", title), "  ")
        yield (*head, StyledText(part, style))


def folded(rows: Sequence[T], all: bool, most: int = MOST_ROWS) -> tuple[Sequence[T], int]:
    """The rows that are shown, and the number of the others; a single row more is shown rather than counted."""
    if all or len(rows) <= most + 1:
        return rows, 0
    return rows[:most], len(rows) - most


def more_text(count: int, how: str, noun: str = "") -> str:
    """The text in place of folded rows: `... and 23 more places; --all shows them`."""
    nouns = f" {noun}{'s' * (count != 1)}" if noun else ""
    return f"... and {count:,} more{nouns}; {how}"


def more_line(count: int, how: str, noun: str = "") -> Line:
    """The line in place of folded rows."""
    return ("  ", StyledText(more_text(count, how, noun), "dim"))


@frozen
class PlaceRow:
    """A row about devices: where they are, the facts of it and its line, then further sentences and equal devices.

    `unlike` says in what the equal devices differ.
    """

    label: str
    text: str
    fact: str = ""
    source: str = ""
    below: tuple[str, ...] = ()
    alike: str = ""
    style: str = ""
    unlike: str = ""


def place_rows(rows: Sequence[PlaceRow], width: int) -> list[list[Line]]:
    """The lines of each row: in columns if all rows fit in the width, else the text and its line, then the facts."""
    wide = max((len(row.label) for row in rows), default=0)
    wide = max(wide, *(len(row.alike) for row in rows if len(row.alike) <= MOST_LABEL), 0)
    text, fact = (max((len(getattr(row, name)) for row in rows), default=0) for name in ("text", "fact"))
    source = max((len(row.source) for row in rows), default=0)
    is_table = 4 + wide + text + (fact and 3 + fact) + (source and 3 + source) <= width
    indent = " " * (4 + wide)
    blocks: list[list[Line]] = []
    for row in rows:
        head: list[str | StyledText] = ["  ", StyledText(f"{row.label:<{wide}}", row.style), "  "]
        if is_table:
            cells = f"{row.text:<{text}}   {row.fact:<{fact}}" if fact else f"{row.text:<{text}}"
            block: list[Line] = [(*head, cells, *_source("   ", row.source))]
        else:
            block = [*_stacked(head, row, indent, width)]
        for sentence in row.below:
            block += [(indent, part) for part in wrapped(sentence, max(width - len(indent), 30))]
        if row.alike:
            block.append(("  ", StyledText(f"{row.alike:<{wide}}", row.style), f"  like {row.label}{row.unlike}"))
        blocks.append(block)
    return blocks


def _source(gap: str, source: str) -> tuple[str | StyledText, ...]:
    return (gap, StyledText(source, "dim")) if source else ()


def _stacked(head: list[str | StyledText], row: PlaceRow, indent: str, width: int) -> Iterator[Line]:
    """The text and as much of its line as fits, then the rest of the line and the facts."""
    room = max(width - len(indent), 30)
    if len(row.text) + len(row.fact) + len(row.source) + 6 <= room:
        yield (*head, row.text, *_source("   ", row.source), f"   {row.fact}" if row.fact else "")
        return
    file, _, function = row.source.partition(" in ")
    shown = next((each for each in (row.source, file) if len(row.text) + 3 + len(each) <= room), "")
    if shown or not row.source:
        texts, rest = [row.text], f"in {function}" if function and shown == file else ""
    else:
        texts, rest = wrapped(row.text, room), row.source
    yield (*head, texts[0], *_source("   ", shown))
    for part in texts[1:]:
        yield (indent, part)
    if rest and row.fact and len(rest) + 3 + len(row.fact) <= room:
        yield (indent, StyledText(rest, "dim"), "   ", row.fact)
        return
    if rest:
        yield (indent, StyledText(rest, "dim"))
    if row.fact:
        yield from ((indent, part) for part in wrapped(row.fact, room))


def first_screen(blocks: Sequence[list[Line]], most: int = FIRST_SCREEN) -> int:
    """The number of blocks on the first screen: all if two lines more suffice, else those that fit, at least two."""
    if sum(map(len, blocks)) <= most + 2:
        return len(blocks)
    count = lines = 0
    while count < len(blocks) and (count < 2 or lines + len(blocks[count]) <= most):
        lines += len(blocks[count])
        count += 1
    return count
