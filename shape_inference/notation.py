"""Parser of shapes in HLO text."""

from __future__ import annotations

import re
from typing import NoReturn

from .bounds import DEEPEST_TUPLE, MAX_EXTENT, MAX_RANK
from .rules import XbuildError
from .types import PRIMITIVES, AnyShape, BufferShape, Layout, ProgramShape, Shape, TupleShape, array_shape, token

BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*(?s:.*?)\*/)*+")
"""White space and comments, which HLO text may have between any two tokens."""

_TOKEN = re.compile(r"->|[A-Za-z_]\w*+|<=[ \t\r\n]*+-?\d++|-?\d++|[()\[\],]", re.ASCII)
_NAMED = re.compile(r"[A-Za-z_]\w*+", re.ASCII)
_EXTENT = re.compile(r"(<=)?[ \t\r\n]*+(-?\d++)", re.ASCII)
_LAYOUT = re.compile(r"\{([ \t\r\n,\d]*+)(?::((?:[^{}]++|\{[^{}]*+\})*+))?\}", re.ASCII)


class NotAShape(ValueError):
    """The text is no shape: `fact` is the reason, `place` the position of the first wrong character."""

    def __init__(self, text: str, fact: str, place: int) -> None:
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        super().__init__(f"{shown!r} is not a shape: {fact}")
        self.fact, self.place = fact, place


def parse_shape(text: str) -> AnyShape:
    """Read a shape from HLO text. Raises NotAShape (a ValueError) with the position of the error.

    >>> parse_shape("(f32[2,<=3]{1,0}, token[])")
    (f32[2,<=3]{1,0}, token[])
    """
    reader = _Reader(text, is_whole=True)
    shape = reader.shape()
    reader.expect("")
    return shape


def parse_program_shape(text: str) -> ProgramShape:
    """Read the signature of a computation from HLO text.

    >>> parse_program_shape("(f32[], s32[]) -> pred[]")
    (f32[], s32[]) -> pred[]
    """
    reader = _Reader(text, is_whole=True)
    parameters = reader.shape()
    reader.expect("->")
    result = reader.shape()
    reader.expect("")
    return ProgramShape(parameters.elements if isinstance(parameters, TupleShape) else (parameters,), result)


def shape_at(text: str, place: int) -> tuple[AnyShape, int]:
    """The shape that begins at a position of a longer text, and the position at which the shape ends.

    >>> shape_at("x = f32[2]{0} negate(y)", 4)
    (f32[2]{0}, 13)
    """
    reader = _Reader(text, place)
    return reader.shape(), reader.end


class _Reader:
    def __init__(self, text: str, place: int = 0, is_whole: bool = False) -> None:
        self.text, self.end, self.depth, self.is_whole = text, place, 0, is_whole
        self._look()

    def _look(self) -> None:
        """Set `ahead` to the token after the last one that was taken."""
        self.place = self._after_blanks()
        match = _TOKEN.match(self.text, self.place)
        self.ahead = match[0] if match else self.text[self.place : self.place + 1]

    def _after_blanks(self) -> int:
        match = BLANK.match(self.text, self.end)
        return match.end() if match else self.end

    def take(self) -> str:
        taken = self.ahead
        self.end = self.place + len(taken)
        self._look()
        return taken

    def expect(self, token_text: str) -> None:
        if self.ahead != token_text:
            self.refuse(f"expected {_quoted(token_text)}, got {_quoted(self.ahead)}")
        self.take()

    def refuse(self, fact: str) -> NoReturn:
        raise NotAShape(self.text, fact, self.place)

    def shape(self) -> AnyShape:
        if self.ahead == "(":
            return self._tuple()
        name = self.ahead
        if name == "b":
            return self._buffer()
        if name != "token" and name not in PRIMITIVES:
            self.refuse(f"expected an element type, got {_quoted(name)}")
        self.take()
        self.expect("[")
        extents = self._extents()
        if name != "token":
            return self._array(name, extents)
        if extents:
            self.refuse("a token has no extents")
        return token

    def _buffer(self) -> BufferShape:
        self.take()
        self.expect("(")
        place, array = self.place, self.shape()
        if type(array) is not Shape:
            raise NotAShape(self.text, f"a buffer must hold an array, got {array}", place)
        self.expect(")")
        return BufferShape(array.dtype, array.dims, array.dynamic, array.layout)

    def _tuple(self) -> TupleShape:
        self.depth += 1
        if self.depth > DEEPEST_TUPLE:
            self.refuse(f"tuples are nested more than {DEEPEST_TUPLE} levels deep")
        self.expect("(")
        elements: list[AnyShape] = []
        if self.ahead != ")":
            elements.append(self.shape())
        while self.ahead != ")":
            self.expect(",")
            elements.append(self.shape())
        self.expect(")")
        self.depth -= 1
        try:
            return TupleShape(elements)
        except XbuildError as error:
            self.refuse(error.message)

    def _extents(self) -> list[tuple[int, bool]]:
        found: list[tuple[int, bool]] = []
        if self.ahead != "]":
            found.append(self._extent())
        while self.ahead != "]":
            self.expect(",")
            if len(found) == MAX_RANK:
                self.refuse(f"the array has more than {MAX_RANK} dimensions")
            found.append(self._extent())
        self.take()
        return found

    def _extent(self) -> tuple[int, bool]:
        match = _EXTENT.fullmatch(self.ahead)
        if not match:
            self.refuse(f"expected an extent, got {_quoted(self.ahead)}")
        digits = match[2]
        if len(digits) > 400 or not 0 <= int(digits) <= MAX_EXTENT:
            self.refuse(f"extent {digits[:24]}{'...' * (len(digits) > 24)} is out of range; expected 0..2^63-1")
        self.take()
        return int(digits), bool(match[1])

    def _array(self, name: str, extents: list[tuple[int, bool]]) -> Shape:
        dims = tuple([size for size, _ in extents])
        dynamic = tuple([is_bound for _, is_bound in extents])
        layout = self._layout(len(dims)) if self.ahead == "{" else None
        try:
            if layout is None and not any(dynamic):
                return array_shape(PRIMITIVES[name], dims)
            return Shape(PRIMITIVES[name], dims, dynamic if any(dynamic) else (), layout)
        except XbuildError as error:
            self.refuse(error.message)

    def _layout(self, rank: int) -> Layout | None:
        """The layout in braces; in longer text, braces without a number or a colon, such as `{}`, are no layout."""
        match = _LAYOUT.match(self.text, self.place)
        if not match or not (self.is_whole or match[1].strip() or match[2] is not None):
            return None
        words = match[1].split(",") if match[1].strip() else []
        order = [word.strip() for word in words]
        if not all(re.fullmatch(r"\d{1,3}", word, re.ASCII) for word in order):
            self.refuse(f"{match[0][:80]!r} is not a layout")
        dims = tuple(map(int, order))
        if sorted(dims) != list(range(rank)):
            self.refuse(
                f"layout {{{','.join(order)}}} is not a permutation of the dimensions of an array of rank {rank}"
            )
        self.end = match.end()
        self._look()
        return Layout(dims, (match[2] or "").strip())


def _quoted(word: str) -> str:
    """A token as messages quote it; `the end` for the empty token."""
    return repr(word) if word else "the end"
