"""Parts of a text, each with one module; a part begins with empty lines, so that it counts lines as the whole does."""

from __future__ import annotations

import itertools
import re

SEVERAL = "the second begins here; xb.parse_hlo_modules reads each"
_BORDER = re.compile(r"^[ \t]*+// -----[^\n]*+$|^(?=[ \t]*+HloModule[ \t,])", re.MULTILINE)
_BORDER_OR_STRING = re.compile(
    rf'(?P<border>{_BORDER.pattern})|"(?s:[^"\\]++|\\.)*+"|//[^\n]*+|/\*(?s:.*?)\*/', re.MULTILINE
)
_NAME = re.compile(r"^[ \t]*+HloModule[ \t]++%?([\w.-]++)", re.MULTILINE)
_COMMENTS = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")


def parts_of(text: str) -> list[str]:
    """The parts that have more than comments."""
    return ["\n" * text.count("\n", 0, begin) + text[begin:end] for begin, end in _ranges(text)]


def modules_in(text: str) -> list[tuple[str, str]]:
    """The name of each part, as its header has it, and its text, with a blank line for each line before it."""
    return [(found[1] if (found := _NAME.search(part)) else "", part) for part in parts_of(text)]


def second_of(text: str) -> tuple[int, int]:
    """How many parts there are, and where the second begins; 0 where there is one."""
    ranges = _ranges(text)
    return len(ranges), ranges[1][0] if len(ranges) > 1 else 0


def _ranges(text: str) -> list[tuple[int, int]]:
    found = [each.start() for each in _BORDER.finditer(text)]
    if len(found) > 1:  # a table of the header may hold the text of a module, as a string
        found = [each.start() for each in _BORDER_OR_STRING.finditer(text) if each["border"] is not None]
    borders = [0, *found, len(text)]
    return [(begin, end) for begin, end in itertools.pairwise(borders) if _says(text, begin, end)]


def _says(text: str, begin: int, end: int) -> bool:
    comments = _COMMENTS.match(text, begin, end)
    return comments is not None and comments.end() < end
