"""Scanner of HLO text: takes token after token from a position that moves forward."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from shape_inference import AnyShape
from shape_inference.escaping import hlo_text
from shape_inference.notation import BLANK, NotAShape, shape_at

from ...core.identifiers import KEYWORDS
from .faults import Fault

Item = TypeVar("Item")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+")
_INTEGER = re.compile(r"-?\d++(?![.eE])", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|-?inf|-?nan", re.ASCII)
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"|\'((?:[^\'\\]++|\\.)*+)\'', re.DOTALL)
_NEXT_BRACE = re.compile(r'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+([{}])', re.DOTALL)
_IN_BRACES = re.compile(r'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)

MAX_DEPTH = 40


class Scanner:
    """A scanner that takes the tokens of a text in order, and raises Fault at the place of an unexpected token."""

    integer_pattern = _INTEGER

    def __init__(self, text: str, place: int = 0) -> None:
        self.text, self.place, self.depth = text, place, 0
        self.is_terse = False

    def fail(self, kind: str, message: str, *hints: str, place: int | None = None) -> NoReturn:
        raise Fault(kind, message, self.skip() if place is None else place, hints)

    def expected(self, what: str, *hints: str) -> NoReturn:
        """The fault of a token that is not what the grammar wants at this position."""
        place = self.skip()
        match = NAME.match(self.text, place)
        found = match[0] if match else self.text[place : place + 1]
        self.fail("syntax", f"{what} is wanted, and {_quoted(found)} stands here", *hints, place=place)

    def skip(self) -> int:
        """Skip blanks and comments; the result is the place of the next token."""
        match = BLANK.match(self.text, self.place)
        assert match is not None  # it may be empty
        self.place = match.end()
        return self.place

    def sees(self, word: str) -> bool:
        return self.text.startswith(word, self.skip())

    def take(self, word: str) -> bool:
        if not self.sees(word):
            return False
        self.place += len(word)
        return True

    def expect(self, word: str, why: str = "") -> None:
        if not self.take(word):
            self.expected(f"{word!r}{why}")

    def scan(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.skip())
        if match:
            self.place = match.end()
        return match

    def take_word(self, word: str) -> bool:
        """Take a word if it is the next token as a whole identifier."""
        match = NAME.match(self.text, self.skip())
        if not match or match[0] != word:
            return False
        self.place = match.end()
        return True

    def name(self, what: str) -> str:
        """A name, with or without its `%`."""
        self.take("%")
        place = self.skip()
        match = self.scan(NAME)
        if not match:
            self.expected(what)
        if match[0] in KEYWORDS:
            self.fail("syntax", f"{what} is wanted, and {match[0]!r} is a word of HLO", place=place)
        return match[0]

    def word(self) -> str:
        match = self.scan(NAME)
        return match[0] if match else self.expected("a word")

    def key(self) -> tuple[str, int]:
        """The name of an attribute, which `=` follows without blanks, and the place of the name."""
        place = self.skip()
        match = self.scan(NAME)
        if not match:
            self.expected("the name of an attribute")
        if not self.text.startswith("=", self.place):
            self.fail("syntax", f"'=' is wanted right after {match[0][:40]!r}", place=self.place)
        self.place += 1
        return match[0], place

    def integer(self) -> int:
        match = self.scan(self.integer_pattern)
        if not match:
            self.expected("an integer")
        if len(match[0]) > 20 or not -(2**63) <= int(match[0]) < 2**64:
            self.fail("syntax", f"{match[0][:24]} has more than 64 bits", place=match.start())
        return int(match[0])

    def number(self) -> float:
        match = self.scan(_NUMBER)
        return float(match[0]) if match else self.expected("a number")

    def flag(self) -> bool:
        match = NAME.match(self.text, self.skip())
        if not match or match[0] not in ("true", "false"):
            self.expected("true or false")
        self.place = match.end()
        return match[0] == "true"

    def string(self) -> str:
        match = self.scan(_STRING)
        if not match:
            self.expected("a string in quotes")
        body = match[2] if match[1] is None else match[1]
        return hlo_text(body)

    def braces(self) -> str:
        """The text from `{` to the brace that closes it, strings skipped."""
        begin = self.skip()
        self.expect("{")
        depth, place = 1, self.place
        while depth:
            match = _NEXT_BRACE.match(self.text, place)
            if not match:
                self._unclosed(begin)
            depth += 1 if match[1] == "{" else -1
            place = match.end()
        self.place = place
        return self.text[begin:place]

    def _unclosed(self, begin: int) -> NoReturn:
        """Report that a string within braces, or the brace itself, is not closed."""
        quotes = _IN_BRACES.match(self.text, begin)
        place = begin if quotes is None else quotes.end()
        what = "string" if self.text.startswith('"', place) else "'{'"
        self.fail("syntax", f"this {what} is never closed", place=place if what == "string" else begin)

    def listed(self, item: Callable[[], Item], begin: str = "{", end: str = "}") -> list[Item]:
        """Read items between brackets, separated by commas."""
        self.expect(begin)
        found: list[Item] = []
        if self.take(end):
            return found
        found.append(item())
        while not self.take(end):
            self.expect(",", f" or {end!r}")
            found.append(item())
        return found

    def shape(self) -> AnyShape:
        try:
            shape, self.place = shape_at(self.text, self.skip())
        except NotAShape as error:
            self.fail("syntax", f"a shape is wanted: {error.fact}", place=error.place)
        return shape

    def near(self, word: str, words: Iterable[str]) -> tuple[str, ...]:
        """A hint at a similar word among `words`; no hint while faults are only counted."""
        return () if self.is_terse else did_you_mean(word, words)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Count one more level of nesting inside the block; more than MAX_DEPTH levels are refused."""
        if self.depth >= MAX_DEPTH:
            self.fail("syntax", f"this is nested deeper than {MAX_DEPTH}")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


def did_you_mean(word: str, words: Iterable[str]) -> tuple[str, ...]:
    """A hint at the most similar of the words, if any; a word of 60 or more characters gets no hint."""
    close = difflib.get_close_matches(word, words, 1) if len(word) < 60 else []
    return tuple(f"did you mean {guess!r}?" for guess in close)


def _quoted(found: str) -> str:
    return repr(found[:40]) if found else "the end of the text"
