"""Parts of a text, each with one module; a part begins with empty lines, so that it counts lines as the whole does."""

from __future__ import annotations

import itertools
import re

_BORDER = re.compile(r"^[ \t]*+// -----[^\n]*+$", re.MULTILINE)
_COMMENTS = re.compile(r"(?:\s++|//[^\n]*+)*+")


def parts_of(text: str) -> list[str]:
    """The parts that have more than comments."""
    return ["\n" * text.count("\n", 0, begin) + text[begin:end] for begin, end in ranges_of(text)]


def ranges_of(text: str) -> list[tuple[int, int]]:
    """Where the parts begin and end."""
    borders = [0, *(found.start() for found in _BORDER.finditer(text)), len(text)]
    return [(begin, end) for begin, end in itertools.pairwise(borders) if _says(text, begin, end)]


def _says(text: str, begin: int, end: int) -> bool:
    comments = _COMMENTS.match(text, begin, end)
    return comments is not None and comments.end() < end
