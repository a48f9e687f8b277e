"""Shapes read back from their HLO spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .types import PRIMITIVES, AnyShape, Layout, ProgramShape, Shape, TupleShape, token

_TOKEN = re.compile(r"\s*(->|[A-Za-z_]\w*|<=\d+|-?\d+|\{[^{}]*\}|[()\[\],])")


class NotAShape(ValueError):
    """The text spells no shape."""


def parse_shape(text: str) -> AnyShape:
    """The shape that HLO text spells; NotAShape (a ValueError) names the place where it stops being one.

    >>> parse_shape("(f32[2,<=3]{1,0}, token[])")
    (f32[2,<=3]{1,0}, token[])
    """
    reader = _Reader(text)
    shape = reader.shape()
    reader.expect("")
    return shape


def parse_program_shape(text: str) -> ProgramShape:
    """The signature that HLO text spells.

    >>> parse_program_shape("(f32[], s32[]) -> pred[]")
    (f32[], s32[]) -> pred[]
    """
    reader = _Reader(text)
    parameters = reader.shape()
    reader.expect("->")
    result = reader.shape()
    reader.expect("")
    return ProgramShape(parameters.elements if isinstance(parameters, TupleShape) else (parameters,), result)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokenize()
        self.ahead = next(self.tokens)

    def _tokenize(self) -> Iterator[str]:
        place = 0
        while match := _TOKEN.match(self.text, place):
            place = match.end()
            yield match[1]
        yield self.text[place:].strip()
        while True:
            yield ""

    def take(self) -> str:
        taken, self.ahead = self.ahead, next(self.tokens)
        return taken

    def expect(self, wanted: str) -> None:
        if (found := self.take()) != wanted:
            raise NotAShape(f"{self.text!r} is no shape: {found or 'the end'!r} where {wanted or 'the end'!r} is wanted")

    def shape(self) -> AnyShape:
        if self.ahead == "(":
            return self._tuple()
        name = self.take()
        if name != "token" and name not in PRIMITIVES:
            raise NotAShape(f"{self.text!r} is no shape: {name!r} is no element type")
        self.expect("[")
        extents = self._list("]")
        return token if name == "token" else self._array(name, extents)

    def _tuple(self) -> TupleShape:
        self.expect("(")
        elements: list[AnyShape] = []
        while self.ahead != ")":
            elements.append(self.shape())
            if self.ahead != ")":
                self.expect(",")
        self.expect(")")
        return TupleShape(elements)

    def _array(self, name: str, extents: list[str]) -> Shape:
        dynamic = tuple(extent.startswith("<=") for extent in extents)
        dims = tuple(int(extent.removeprefix("<=")) for extent in extents)
        if any(size < 0 for size in dims):
            raise NotAShape(f"{self.text!r} is no shape: {min(dims)} is no extent")
        return Shape(name, dims, dynamic if any(dynamic) else (), self._layout())

    def _layout(self) -> Layout | None:
        if not self.ahead.startswith("{"):
            return None
        order, _, suffix = self.take()[1:-1].partition(":")
        return Layout(tuple(int(dim) for dim in order.split(",") if dim.strip()), suffix)

    def _list(self, end: str) -> list[str]:
        found = []
        while self.ahead != end:
            found.append(self.take())
            if not re.fullmatch(r"(<=)?-?\d+", found[-1]):
                raise NotAShape(f"{self.text!r} is no shape: {found[-1] or 'the end'!r} is no extent")
            if self.ahead != end:
                self.expect(",")
        self.take()
        return found
