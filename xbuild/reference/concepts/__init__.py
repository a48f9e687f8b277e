"""Words that reports and documents use: files of entries by subject, each in sentences with an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files


@cache
def concepts() -> Mapping[str, str]:
    """The text of each entry, by each of its words as `plain` gives them."""
    return {plain(word): text for words, text in _entries() for word in words}


def plain(word: str) -> str:
    """A word as it is looked up: in small letters, with `_` for blanks and hyphens."""
    return word.strip().strip("_").lower().replace("-", "_").replace(" ", "_")


def spellings() -> list[str]:
    """All words that have an entry, as the files spell them."""
    return [word for words, _ in _entries() for word in words]


@cache
def _entries() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(entry for file in sorted(_files()) for entry in _read(file))


def _files() -> Iterator[str]:
    for each in files(__package__).iterdir():
        if each.name.endswith(".txt"):
            yield each.read_text(encoding="utf-8")


def _read(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The entries of a file: a line of words, then indented lines; an empty line between two entries."""
    for block in text.strip().split("\n\n"):
        head, *lines = block.splitlines()
        body = "\n".join(line.removeprefix("  ") for line in lines)
        yield tuple(head.split(", ")), f"{head}\n\n{body}"
