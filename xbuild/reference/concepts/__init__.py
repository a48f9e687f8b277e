"""Definitions of words that reports and documents use: files of entries by subject, each with an example."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

_WIDTH = 80


@cache
def concepts() -> Mapping[str, str]:
    """The text of each entry, by each of its words as `plain` gives them."""
    return {plain(word): text for words, text in entries() for word in words}


def plain(word: str) -> str:
    """A word as it is looked up: in small letters, with `_` for blanks and hyphens."""
    return word.strip().strip("_").lower().replace("-", "_").replace(" ", "_")


def spellings() -> list[str]:
    """All words that have an entry, as the files spell them."""
    return [word for words, _ in entries() for word in words]


@cache
def entries() -> tuple[tuple[tuple[str, ...], str], ...]:
    """The entries of all files: the words of each, and its text."""
    return tuple(entry for file in sorted(_files()) for entry in read(file))


def _files() -> Iterator[str]:
    for each in files(__package__).iterdir():
        if each.name.endswith(".txt"):
            yield each.read_text(encoding="utf-8")


def read(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The entries of a file: a line of words, then indented lines; an empty line between two entries."""
    for block in text.strip().split("\n\n"):
        head, *lines = block.splitlines()
        yield tuple(head.split(", ")), "\n".join([head, "", *_filled([line.strip() for line in lines])])


def _filled(lines: Sequence[str]) -> Iterator[str]:
    """The lines filled anew; an example and a pointer to a document begin a line each."""
    begins = [0, *(n for n, line in enumerate(lines) if n and line.startswith(("Example: ", "See ")))]
    for begin, end in pairwise([*begins, len(lines)]):
        yield textwrap.fill(" ".join(lines[begin:end]), _WIDTH, break_long_words=False, break_on_hyphens=False)
