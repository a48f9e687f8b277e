"""The scanner of HLO text, and faults with their line and column."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from attrs import frozen

from shape_inference import PRIMITIVES, AnyShape, XbuildError
from shape_inference.bounds import MAX_DEPTH
from shape_inference.escaping import hlo_text
from shape_inference.notation import BLANK, NotAShape, shape_at

from ..core.identifiers import KEYWORDS
from ..core.op import OPS

# ----------------------------------------------------------------------------
# Faults with line and column, and the error that reports all of them

MOST_FAULTS = 20
COUNTED_FAULTS = 1000
_LINE = 110
_ROWS = 40
_MESSAGE = 400


class Fault(Exception):
    """A fault at a place of the text; readers catch and report faults."""

    def __init__(
        self, kind: str, message: str, place: int, hints: Sequence[str] = (), rows: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.place, self.hints, self.rows = kind, message, place, tuple(hints), tuple(rows)


class Poisoned(Exception):
    """The text uses something whose fault is already reported."""


@frozen
class TextFault:
    """One fault in a text: its kind, its message, and its line and column, counted from 1."""

    kind: str
    message: str
    line: int
    column: int
    hints: tuple[str, ...] = ()


class HloParseError(XbuildError):
    """Raised for text with incorrect syntax or shapes; `faults` lists the first twenty faults in order."""

    def __init__(self, faults: Sequence[TextFault], report: str) -> None:
        super().__init__(faults[0].kind, faults[0].message, faults[0].hints)
        self.faults = tuple(faults)
        self.args = (report,)
        self.explained = True


def parse_error(text: str, file: str | None, faults: Sequence[Fault], count: int) -> HloParseError:
    """The error that reports some of `count` faults, each with its line of text and a caret at its column."""
    located: list[TextFault] = []
    parts: list[str] = []
    for fault in sorted(faults, key=lambda each: each.place):
        line = text.count("\n", 0, fault.place) + 1
        begin = text.rfind("\n", 0, fault.place) + 1
        located.append(TextFault(fault.kind, fault.message, line, fault.place - begin + 1, fault.hints))
        head = f"{file or '<hlo>'}:{line}:{fault.place - begin + 1}: {_clip(fault.message)} [{fault.kind}]"
        rows = [_clip(row) for row in fault.rows[:_ROWS]] + ["  ..."] * (len(fault.rows) > _ROWS)
        hints = [f"  hint: {_clip(hint)}" for hint in fault.hints]
        parts.append("\n".join((head, *_excerpt(text, begin, fault.place), *rows, *hints)))
    if count > len(faults):
        stopped = f"; reading stopped after {count} faults" if count >= COUNTED_FAULTS else ""
        parts.append(f"and {count - len(faults)} more{stopped}")
    return HloParseError(located, "\n\n".join(parts))


def _clip(message: str) -> str:
    return message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 3]}..."


def _excerpt(text: str, begin: int, place: int) -> tuple[str, str]:
    """The line of a fault, or the part of a long line around the fault, and a line with a caret."""
    start = max(begin, place - _LINE * 2 // 3)
    end = text.find("\n", place, start + _LINE)
    line = text[start : end if end >= 0 else start + _LINE]
    before = "..." * (start > begin)
    after = "..." * (end < 0 and start + _LINE < len(text))
    printable = "".join(each if each.isprintable() else " " for each in line)
    return f"    {before}{printable}{after}", f"    {' ' * (len(before) + place - start)}^"


# ----------------------------------------------------------------------------
# Scanner of HLO text

Item = TypeVar("Item")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+")
_INTEGER = re.compile(r"-?\d++(?![.eE])", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|-?inf|-?nan", re.ASCII)
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"|\'((?:[^\'\\]++|\\.)*+)\'', re.DOTALL)
_NEXT_BRACE = re.compile(r'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+([{}])', re.DOTALL)
_IN_BRACES = re.compile(r'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)


_blank = BLANK.match
_BLANKS = " /\n\t\r"
"""The characters with which white space and comments begin; the empty string, at the end of the text, is among them."""


class Scanner:
    """Takes the tokens of a text in order; raises Fault at an unexpected token."""

    integer_pattern = _INTEGER

    def __init__(self, text: str, place: int = 0) -> None:
        self.text, self.place, self.depth = text, place, 0
        self.is_terse = False

    def fail(self, kind: str, message: str, *hints: str, place: int | None = None) -> NoReturn:
        raise Fault(kind, message, self.skip() if place is None else place, hints)

    def expected(self, what: str, *hints: str) -> NoReturn:
        """Raise the fault that the next token is not `what`."""
        place = self.skip()
        match = NAME.match(self.text, place)
        found = match[0] if match else self.text[place : place + 1]
        self.fail("syntax", f"expected {what}, got {_quote(found)}", *hints, place=place)

    def skip(self) -> int:
        """Skip blanks and comments, and return the place of the next token."""
        place = self.place
        if self.text[place : place + 1] in _BLANKS:
            self.place = place = _blank(self.text, place).end()  # type: ignore[union-attr]  # matches the empty string
        return place

    def sees(self, word: str) -> bool:
        """Whether this text, which does not begin with a blank, is next."""
        return self.text.startswith(word, self.place) or self.text.startswith(word, self.skip())

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
        """Take a word if it is the next identifier."""
        match = NAME.match(self.text, self.skip())
        if not match or match[0] != word:
            return False
        self.place = match.end()
        return True

    def name(self, what: str) -> str:
        """Take a name, with or without `%`."""
        self.take("%")
        place = self.skip()
        match = self.scan(NAME)
        if not match:
            self.expected(what)
        if match[0] in KEYWORDS:
            self.fail("syntax", f"expected {what}, got {match[0]!r}, which is an HLO keyword", place=place)
        return match[0]

    def word(self) -> str:
        match = self.scan(NAME)
        return match[0] if match else self.expected("a word")

    def key(self) -> tuple[str, int]:
        """Take the name of an attribute and the `=` right after it; return the name and its place."""
        place = self.skip()
        match = self.scan(NAME)
        if not match:
            self.expected("the name of an attribute")
        if not self.text.startswith("=", self.place):
            self.fail("syntax", f"expected '=' right after {match[0][:40]!r}", place=self.place)
        self.place += 1
        return match[0], place

    def integer(self) -> int:
        match = self.scan(self.integer_pattern)
        if not match:
            self.expected("an integer")
        if len(match[0]) > 20 or not -(2**63) <= int(match[0]) < 2**64:
            self.fail("syntax", f"{match[0][:24]} does not fit in 64 bits", place=match.start())
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
        """Take the text from `{` to the brace that closes it, skipping strings."""
        begin = self.skip()
        self.expect("{")
        depth, place = 1, self.place
        while depth:
            match = _NEXT_BRACE.match(self.text, place)
            if not match:
                self._refuse_unclosed(begin)
            depth += 1 if match[1] == "{" else -1
            place = match.end()
        self.place = place
        return self.text[begin:place]

    def _refuse_unclosed(self, begin: int) -> NoReturn:
        """Report that a string within braces, or the brace itself, is not closed."""
        quotes = _IN_BRACES.match(self.text, begin)
        place = begin if quotes is None else quotes.end()
        what = "string" if self.text.startswith('"', place) else "'{'"
        self.fail("syntax", f"this {what} is not closed", place=place if what == "string" else begin)

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
            self.fail("syntax", f"this is not a valid shape: {error.fact}", place=error.place)
        return shape

    def near(self, word: str, words: Iterable[str]) -> tuple[str, ...]:
        """A hint with a similar word; no hint once faults are only counted."""
        return () if self.is_terse else did_you_mean(word, words)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Count one level of nesting, of which MAX_DEPTH are allowed."""
        if self.depth >= MAX_DEPTH:
            self.fail("syntax", f"the text is nested more than {MAX_DEPTH} levels deep")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


def did_you_mean(word: str, words: Iterable[str]) -> tuple[str, ...]:
    """A hint with the most similar of the words, if any; none for a word of 60 or more characters."""
    close = difflib.get_close_matches(word, words, 1) if len(word) < 60 else []
    return tuple(f"did you mean {guess!r}?" for guess in close)


def _quote(found: str) -> str:
    return repr(found[:40]) if found else "the end of the text"


# ----------------------------------------------------------------------------
# Opcodes of HLO text

BY_SPELLING = {schema.spelling: schema for schema in OPS.values()}
OPENS = re.compile(r"[ \t\r\n]*+\(")


def refuse_opcode(scanner: Scanner, opcode: str, place: int) -> NoReturn:
    """Refuse a word at the place of an opcode."""
    hints = scanner.near(opcode, BY_SPELLING)
    if opcode.lower() in PRIMITIVES:
        hints = (f"write element types in lower case: {opcode.lower()}",)
    elif not OPENS.match(scanner.text, scanner.place):
        scanner.fail("syntax", f"expected an opcode and '(', got {opcode[:40]!r}", *hints, place=place)
    scanner.fail("unknown_opcode", f"xbuild has no op {opcode[:60]!r}", *hints, place=place)
