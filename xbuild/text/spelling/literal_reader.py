"""Reader of literals: checks the structure of brackets, then converts all numbers in one operation."""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import numpy as np

from shape_inference import COMPONENT, AnyShape, Dims, PrimitiveType, Shape
from shape_inference.elided import ElidedArray

from ...core.attributes import Array
from .literals import MANTISSA, nan_of
from .scanner import Scanner

_COMMENT = re.compile(r"//[^\n]*+|/\*(?s:.*?)\*/")
_PLAIN = rf"(?:[^()/]++|(?>{_COMMENT.pattern})|/)*+"
# Pairs (real, imaginary), whose parts may be nan(0x1).
_BODY = re.compile(rf"{_PLAIN}(?:\({_PLAIN}(?:\({_PLAIN}\){_PLAIN})*+\){_PLAIN})*+")
_USUAL = re.compile(r"[^()/]*+(?:\([^()/]*+\)[^()/]*+)*+(?=\))")
_BRACKET = re.compile(rf"(?>{_COMMENT.pattern})|[()]")
_SPACE = re.compile(r"[ \t\r\n]++")
_WORD = re.compile(r"-?nan\(0x[0-9a-fA-F]++\)|[^ \t\r\n{},()]++")
_ONE_PAIR = re.compile(rf"\([ \t]*+(?:{_WORD.pattern})[ \t]*+,[ \t]*+(?:{_WORD.pattern})[ \t]*+\)")
_MARK = re.compile(r"[{},()]|" + _WORD.pattern)
_TRAILING = re.compile(r",(?=\})")

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_FLOAT = re.compile(r"(?:-?[0-9]++(?:\.[0-9]*+)?|-\.[0-9]++)(?:[eE][+-]?[0-9]{1,6})?|-?inf|-?nan")
_FLOATS = re.compile(rf"(?:(?:{_FLOAT.pattern})(?: |$))*+")
_INTEGERS = re.compile(rf"(?:{_INTEGER.pattern}(?: |$))*+")

LARGEST_FILLED = 1 << 26
"""The limit of elements of a constant that is written as one number."""

_LEAST = 2.0**-127
"""The least number of f8e8m0fnu, which has no 0."""


def read_literal(scanner: Scanner, shape: AnyShape | None) -> tuple[Array, str]:
    """The array between the brackets of `constant(...)`, and its text; the closing bracket is not taken."""
    begin = scanner.place
    match = _USUAL.match(scanner.text, begin) or _BODY.match(scanner.text, begin)
    assert match is not None  # it may be empty
    text = match[0]
    if not scanner.text.startswith(")", match.end()):
        _unbalanced(scanner, begin)
    if shape is None or not isinstance(shape, Shape):
        scanner.fail("syntax", f"constants are arrays, and {shape or 'no shape'} is written for this one", place=begin)
    array = _Literal(scanner, begin, text, shape).array()
    scanner.place = match.end()
    return array, text.strip()


def _unbalanced(scanner: Scanner, begin: int) -> NoReturn:
    """Report the wrong bracket: the first that is nested too deep or, where a bracket is not closed, the outermost."""
    depth, deepest = 1, -1
    for found in _BRACKET.finditer(scanner.text, begin):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth > 3 and deepest < 0:
            deepest = found.start()
        if not depth:
            scanner.fail("syntax", "no bracket of a constant stands deeper than (nan(0x1), 0)", place=deepest)
    scanner.fail("syntax", "this bracket is never closed", place=begin - 1)


class _Literal:
    def __init__(self, scanner: Scanner, begin: int, text: str, shape: Shape) -> None:
        self.scanner, self.begin, self.shape = scanner, begin, shape
        if "/*" in text or "//" in text:
            text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
        self.text = text

    def fail(self, kind: str, message: str, *hints: str, at: int = 0) -> NoReturn:
        self.scanner.fail(kind, message, *hints, place=self.begin + at)

    def array(self) -> Array:
        if "..." in self.text:
            return self._elided()
        dtype = self.shape.dtype
        if self.shape.dims and (_ONE_PAIR if dtype.kind == "complex" else _WORD).fullmatch(self.text.strip()):
            return self._first_alone()
        words = self._words()
        if dtype.kind == "complex":
            return self._shaped(self._numbers(words, COMPONENT[dtype]).view(dtype.dtype))
        return self._shaped(self._numbers(words, dtype))

    def _elided(self) -> Array:
        if self.text.strip() != "{...}":
            self.fail("syntax", "all elements are left out, as {...}, or none", at=self.text.index("..."))
        return ElidedArray(self.shape.dtype, self.shape.dims)  # type: ignore[return-value]

    def _shaped(self, values: Array) -> Array:
        try:
            return values.reshape(self.shape.dims)
        except ValueError:  # no elements, in dimensions beyond what NumPy counts
            self.fail("overflow", f"no array is as large as {self.shape}")

    def _words(self) -> list[str]:
        """The numbers of the literal; a structure that differs from the shape is refused."""
        found = _TRAILING.sub("", _SPACE.sub("", _WORD.sub("0", self.text)))
        if not may_hold(self.text, self.shape.dims) or found != _structure(self.shape):
            self._misfit()
        return _WORD.findall(self.text)

    def _first_alone(self) -> Array:
        """An array from a number without braces, which XLA reads as the first element, with the others 0."""
        size = math.prod(self.shape.dims)
        if size > LARGEST_FILLED:
            self.fail("overflow", f"one number is written for the {size:,} elements of {self.shape}")
        dtype = self.shape.dtype
        array = np.zeros(size, dtype.dtype)
        first = self._numbers(_WORD.findall(self.text), COMPONENT.get(dtype, dtype)).view(dtype.dtype)
        array[:1] = first[: array.size]
        return array.reshape(self.shape.dims)

    def _misfit(self) -> NoReturn:
        """Refuse a literal at the first place where its text does not fit the shape."""
        rank, dims = len(self.shape.dims), self.shape.dims
        is_complex = self.shape.dtype.kind == "complex"
        counts: list[int] = []
        is_after_item = in_pair = False
        pair = 0
        for mark in _MARK.finditer(self.text):
            word, place = mark[0], mark.start()
            if in_pair:
                pair += word not in ",()"
                in_pair = word != ")"
                if not in_pair and pair != 2:
                    self.fail("shape_mismatch", "a complex number is written (real, imaginary)", at=place)
                is_after_item = not in_pair
                continue
            if word == ",":
                if not is_after_item:
                    self.fail("syntax", "a number is wanted before ','", at=place)
                is_after_item = False
                continue
            if word == "}":
                self._closed(counts, dims, place)
                is_after_item = True
                continue
            if is_after_item:
                self.fail("syntax", f"',' is wanted before {word[:40]!r}", at=place)
            if counts:
                counts[-1] += 1
                if counts[-1] > dims[len(counts) - 1]:
                    self._counted(counts, dims, place, "more")
            if word == "{":
                if len(counts) == rank:
                    self.fail("shape_mismatch", f"{self.shape} has rank {rank}, and braces stand deeper", at=place)
                counts.append(0)
                continue
            if len(counts) < rank:
                self.fail(
                    "shape_mismatch",
                    f"{self.shape} has rank {rank}, and {word[:40]!r} stands in {len(counts)} braces",
                    at=place,
                )
            if is_complex != (word == "("):
                wanted = "a pair (real, imaginary)" if is_complex else "a number"
                self.fail(
                    "syntax", f"{wanted} is wanted for {self.shape.dtype}, and {word[:40]!r} stands here", at=place
                )
            in_pair, pair = word == "(", 0
            is_after_item = not in_pair
        self.fail("syntax", f"the elements of {self.shape} end too early", at=len(self.text))

    def _closed(self, counts: list[int], dims: Dims, place: int) -> None:
        if not counts:
            self.fail("syntax", "this brace closes nothing", at=place)
        if counts[-1] != dims[len(counts) - 1]:
            self._counted(counts, dims, place, str(counts[-1]))
        counts.pop()

    def _counted(self, counts: list[int], dims: Dims, place: int, found: str) -> NoReturn:
        dim = len(counts) - 1
        self.fail(
            "shape_mismatch",
            f"{self.shape} has {dims[dim]} elements in dimension {dim}, and here are {found}",
            at=place,
        )

    def _numbers(self, words: list[str], dtype: PrimitiveType) -> Array:
        if dtype.kind == "pred":
            return np.array([self._pred(word, n) for n, word in enumerate(words)], np.bool_)
        return self._floats(words, dtype) if dtype.is_float else self._integers(words, dtype)

    def _place(self, number: int) -> int:
        """The position of the word with this index."""
        return next(match.start() for n, match in enumerate(_WORD.finditer(self.text)) if n == number)

    def _wrong(
        self, number: int, word: str, dtype: PrimitiveType, why: str = "is no element of", also: str = ""
    ) -> NoReturn:
        self.fail("invalid_literal", f"{word[:40]} {why} {dtype}{also and f', {also}'}", at=self._place(number))

    def _pred(self, word: str, number: int) -> bool:
        if word in ("true", "false"):
            return word == "true"
        if not _INTEGER.fullmatch(word) or not -(2**63) <= int(word) < 2**64:
            self._wrong(number, word, self.shape.dtype)
        return int(word) != 0

    def _integers(self, words: list[str], dtype: PrimitiveType) -> Array:
        if not _INTEGERS.fullmatch(" ".join(words)):
            self._wrong(*next((n, w) for n, w in enumerate(words) if not _INTEGER.fullmatch(w)), dtype)
        values = list(map(int, words))
        low = -(2 ** (dtype.bits - 1)) if dtype.kind == "signed" else 0
        high = low + 2**dtype.bits - 1
        if values and (min(values) < low or max(values) > high):
            values = [_of_64_bits(value, dtype) for value in values]
        if values and (min(values) < low or max(values) > high):
            number = next(n for n, value in enumerate(values) if not low <= value <= high)
            self._wrong(number, words[number], dtype, f"is out of the range {low}..{high} of")
        return np.array(values, np.uint64 if low == 0 else np.int64).astype(dtype.dtype)

    def _floats(self, words: list[str], dtype: PrimitiveType) -> Array:
        odd = [n for n, word in enumerate(words) if "(" in word] if "nan(" in self.text else []
        plain = [word.partition("(")[0] for word in words] if odd else words
        if not _FLOATS.fullmatch(" ".join(plain)):
            bad = next(n for n, w in enumerate(plain) if not _FLOAT.fullmatch(w))
            self._wrong(bad, words[bad], dtype)
        wide = np.array(list(map(float, plain)), np.float64)
        with np.errstate(all="ignore"):
            values = (np.where(wide > 0, np.maximum(wide, _LEAST), wide) if dtype.name == "f8e8m0fnu" else wide).astype(
                dtype.dtype
            )
        self._check_range(words, wide, values, dtype)
        for number in odd:
            values[number] = self._nan(number, words[number], dtype, values[number])
        return values

    def _nan(self, number: int, word: str, dtype: PrimitiveType, plain: Any) -> Any:
        """A NaN with these mantissa bits; of too large payloads, only the default one of f64 is accepted."""
        bits, bound = int(word.partition("(0x")[2][:-1], 16), 1 << MANTISSA.get(dtype.name, 0)
        if bits == 1 << 51:
            return plain
        if not 0 < bits < bound:
            room = f"which has payloads of 0x1 to {bound - 1:#x}" if bound > 1 else "whose NaN has no payload"
            self._wrong(number, word, dtype, "is no element of", room)
        return nan_of(dtype, bits, word.startswith("-"))

    def _check_range(self, words: list[str], wide: Any, values: Any, dtype: PrimitiveType) -> None:
        with np.errstate(all="ignore"):
            lost = ~np.isfinite(values.astype(np.float64)) & np.isfinite(wide)
        lost |= (
            np.isinf(wide) & ~np.array(["inf" in word for word in words], np.bool_) if np.isinf(wide).any() else False
        )
        if lost.any():
            number = int(np.argmax(lost))
            self._wrong(number, words[number], dtype, "is out of the range of")


def _of_64_bits(value: int, dtype: PrimitiveType) -> int:
    """An integer modulo 2^64, as XLA reads it: -1 is the largest u64, and 2^64-1 is -1 in a signed type."""
    if dtype.kind == "signed":
        return value - 2**64 if 2**63 <= value < 2**64 else value
    return value + 2**64 if dtype.bits == 64 and -(2**63) <= value < 0 else value


def may_hold(text: str, dims: Dims) -> bool:
    """Whether a text is long enough for the elements of these extents; checked before memory is allocated."""
    count, groups = 1, 0
    for size in dims:
        groups += count
        count *= size
        if count > len(text) + 1 or groups > len(text) + 1:
            return False
    return True


def _structure(shape: Shape) -> str:
    """The text of a literal of this shape, with 0 for each number and without blanks."""
    text = "(0,0)" if shape.dtype.kind == "complex" else "0"
    laid_out = shape.dims[: shape.dims.index(0) + 1] if 0 in shape.dims else shape.dims
    for size in reversed(laid_out):
        text = f"{{{','.join([text] * size)}}}"
    return text
