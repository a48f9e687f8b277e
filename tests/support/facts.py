"""Whether a message holds the facts that it must name: letter case, blanks and the kind of brackets do not matter."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A name is read part by part, so that `init_values`, `init-values` and `init values` all name `init`.
_TOKEN = re.compile(r"(?<![a-z0-9])-?\d+(?:\.\d+)?(?![a-z0-9])|[a-z0-9]+|[^\sa-z0-9]")
_ALIKE = str.maketrans("[{]}_", "(())-")
_INFLECTED = ("", "s", "es", "d", "ed", "r", "er", "ers", "ing", "al", "ral")
_INTERNALS = re.compile(r"assert|KeyError|IndexError|AttributeError|TypeError|numpy|Traceback|NoneType", re.IGNORECASE)


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower().translate(_ALIKE))


def missing(text: str, facts: Iterable[str], names: Iterable[str] = ()) -> list[str]:
    """The facts that the text does not name; a fact that is the op's name may stand there in any of its spellings."""
    found = tokens(text)
    spellings = [tokens(name) for name in names]
    return [fact for fact in facts if not _named(tokens(fact), found, spellings)]


def internals(text: str) -> list[str]:
    """Words that tell how the program is made, which no user should read."""
    return _INTERNALS.findall(text)


def own_words(text: str) -> str:
    """A refusal's text without the place in the caller's program and the line that stands there."""
    lines = text.splitlines()
    place = next((n for n, line in enumerate(lines) if line.startswith("  at ")), len(lines))
    rest = [line for line in lines[place:] if line.startswith("  hint: ")]
    return "\n".join([*lines[:place], *rest])


def _named(fact: list[str], text: list[str], spellings: list[list[str]]) -> bool:
    if fact in spellings:
        return any(_within(each, text) for each in spellings)
    if len(fact) == 1 and fact[0].isalpha():
        return any(fact[0] + ending in text for ending in _INFLECTED)
    return _within(fact, text)


def _within(part: list[str], whole: list[str]) -> bool:
    return any(whole[n : n + len(part)] == part for n in range(len(whole) - len(part) + 1))
