"""Parts of a text, each with one module; a part begins with empty lines, so that it counts lines as the whole does."""

from __future__ import annotations

import itertools
import re

_BORDER = re.compile(r"^[ \t]*+// -----[^\n]*+$|^(?=[ \t]*+HloModule[ \t,])", re.MULTILINE)
_SAYS = re.compile(r"^[ \t\r]*+(?!//)[^\s]", re.MULTILINE)


def parts_of(text: str) -> list[str]:
    """The parts that have more than comments."""
    borders = [0, *(found.start() for found in _BORDER.finditer(text)), len(text)]
    pairs = itertools.pairwise(borders)
    parts = [(begin, text[begin:end]) for begin, end in pairs if _SAYS.search(text, begin, end)]
    return ["\n" * text.count("\n", 0, begin) + part for begin, part in parts]


def second_of(text: str) -> tuple[int, int]:
    """How many parts there are, and where the second begins; (1, 0) where there is one."""
    if not _BORDER.search(text, 1):
        return 1, 0
    parts = parts_of(text)
    if len(parts) < 2:
        return 1, 0
    lines = len(parts[1]) - len(parts[1].lstrip("\n"))
    place = 0
    for _ in range(lines):
        place = text.index("\n", place) + 1
    return len(parts), place
