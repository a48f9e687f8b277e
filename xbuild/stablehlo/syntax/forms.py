"""Pretty forms of operations, as rows of a table: what is written after the name of an op.

A row is a list of words. `%` is one operand and `%*` a list of them, `{}` attributes in braces that may be missing,
`$name:kind` an attribute of this name, `=types` the types at the end, `[ ... ]` a part that may be missing and begins
with a token of its own, `&part` a part that is a function of its own. Every other word stands for itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from .drafts import Draft
from .form_kinds import KINDS, TYPES

if TYPE_CHECKING:
    from .parser import Parser

Part: TypeAlias = "Callable[[Parser, Draft], None]"

PARTS: dict[str, Part] = {}
"""The parts `&part` of rows, by name."""

_WORD = re.compile(r"\w")


def part(function: Part) -> Part:
    """Enter a function as a part of rows under its own name."""
    PARTS[function.__name__.strip("_")] = function
    return function


@functools.cache
def compiled(row: str) -> tuple[Part, ...]:
    """The functions that read a row, one after another."""
    return tuple(_parts(iter(row.split())))


def _parts(words: Iterator[str]) -> Iterator[Part]:
    for word in words:
        if word == "]":
            return
        yield _optional(next(words), tuple(_parts(words))) if word == "[" else _part(word)


def _part(word: str) -> Part:
    if word in _OPERANDS:
        return _OPERANDS[word]
    if word.startswith("$"):
        name, _, kind = word[1:].partition(":")
        return _attribute(name, kind)
    if word.startswith("=") and len(word) > 1:
        return _typed(word[1:])
    if word.startswith("&"):
        return PARTS[word[1:]]
    return _token(word)


def _token(word: str) -> Part:
    if _WORD.match(word):
        return lambda parser, draft: parser.expect_word(word)
    return lambda parser, draft: parser.expect(word)


def _optional(word: str, parts: tuple[Part, ...]) -> Part:
    """A part that is read where its first token stands; a comma counts with the word after it."""
    tokens = [word] if _WORD.match(word) else word.split("_", 1)

    def read(parser: Parser, draft: Draft) -> None:
        begin = parser.skip()
        for token in tokens:
            if not (parser.take_word(token) if _WORD.match(token) else parser.take(token)):
                parser.place = begin
                return
        for each in parts:
            each(parser, draft)

    return read


def _attribute(name: str, kind: str) -> Part:
    read = KINDS[kind]

    def fill(parser: Parser, draft: Draft) -> None:
        draft.attributes[name] = read(parser, name)

    return fill


def _typed(kind: str) -> Part:
    read = TYPES[kind]

    def fill(parser: Parser, draft: Draft) -> None:
        parser.expect(":", " before the types")
        read(parser, draft)

    return fill


def _operand(parser: Parser, draft: Draft) -> None:
    draft.operands += (parser.value(),)


def _operands(parser: Parser, draft: Draft) -> None:
    draft.operands += parser.values()


def _attributes(parser: Parser, draft: Draft) -> None:
    if not parser.sees("{"):
        return
    for key, value in parser.dictionary().items():
        if key in draft.attributes:
            parser.fail("duplicate_attribute", f"{key[:60]} is given twice")
        draft.attributes[key] = value


_OPERANDS: dict[str, Part] = {"%": _operand, "%*": _operands, "{}": _attributes}
