"""Scanner of MLIR text: the tokens of MLIR, taken from a position that moves forward."""

from __future__ import annotations

import re

from ...text.spelling.scanner import Scanner
from ..literals.strings import unescaped

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")
_WORD = re.compile(r"[A-Za-z_][\w$.]*+", re.ASCII)
_VALUE = re.compile(r"%([\w$.-]++(?:#\d++)?+)", re.ASCII)
_SYMBOL = re.compile(r'@(?:([A-Za-z_][\w$.-]*+)|"((?:[^"\\\n]++|\\.)*+)")', re.ASCII)
_STRING = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"')
_INTEGER = re.compile(r"-?\d++", re.ASCII)
_BRACKET = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|->|[][(){}<>"]')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}


class MlirScanner(Scanner):
    """A scanner of MLIR text, which raises Fault at the place of an unexpected token."""

    integer_pattern = _INTEGER

    def skip(self) -> int:
        """Skip blanks and comments; the result is the place of the next token."""
        match = _BLANK.match(self.text, self.place)
        assert match is not None  # it may be empty
        self.place = match.end()
        return self.place

    def word(self) -> str:
        match = self.scan(_WORD)
        return match[0] if match else self.expected("a word")

    def sees_word(self, word: str) -> bool:
        """Whether the next token is this word, and no longer one."""
        match = _WORD.match(self.text, self.skip())
        return match is not None and match[0] == word

    def take_word(self, word: str) -> bool:
        if not self.sees_word(word):
            return False
        self.place += len(word)
        return True

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            self.expected(f"{word!r}")

    def value(self) -> str:
        """The name of a value, without its `%`; the number after `#` says which of several results it is."""
        match = self.scan(_VALUE)
        return match[1] if match else self.expected("a value, such as %0,")

    def values(self) -> tuple[str, ...]:
        """The names of values, separated by commas; a comma that no value follows is left."""
        found: list[str] = []
        match = self.scan(_VALUE)
        while match:
            found.append(match[1])
            place = self.place
            match = self.scan(_VALUE) if self.take(",") else None
            if not match:
                self.place = place
        return tuple(found)

    def symbol(self) -> str:
        """The name of a function or mesh, without its `@`; names of nested ones are joined by `::`."""
        match = self.scan(_SYMBOL)
        if not match:
            self.expected("a symbol, such as @main,")
        found = unescaped(match[2]) if match[1] is None else match[1]
        return f"{found}::{self.symbol()}" if self.take("::") else found

    def string(self) -> str:
        match = self.scan(_STRING)
        return unescaped(match[1]) if match else self.expected("a string in quotes")

    def bracketed(self) -> str:
        """The text from an opening bracket to the one that closes it."""
        begin = self.skip()
        open_: list[str] = [_CLOSING.get(self.text[begin : begin + 1]) or self.expected("a bracket")]
        self.place = begin + 1
        while open_:
            match = _BRACKET.search(self.text, self.place)
            if not match:
                self.fail("syntax", f"this {self.text[begin]!r} is never closed", place=begin)
            self._bracket(match, open_)
        return self.text[begin : self.place]

    def _bracket(self, match: re.Match[str], open_: list[str]) -> None:
        """Open or close a bracket; `->`, strings and comments are none."""
        found, self.place = match[0], match.end()
        if found == '"':
            self.fail("syntax", "this string is never closed", place=match.start())
        if found in _CLOSING:
            open_.append(_CLOSING[found])
        elif found == open_[-1]:
            open_.pop()
        elif found in (">", ")", "]", "}"):
            self.fail("syntax", f"{open_[-1]!r} is wanted, and {found!r} stands here", place=match.start())
