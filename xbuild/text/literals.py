"""Literals of HLO text: printed with the fewest digits that round-trip, read as arrays in one operation.

Sections:

    Printer
    Reader
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, NoReturn

import numpy as np
from attrs import frozen

from shape_inference import COMPONENT, AnyShape, Dims, PrimitiveType, Shape, primitive_type
from shape_inference.elided import ElidedArray

from ..core.attributes import Array
from ..core.graph import Instruction
from .scanner import Scanner

# ----------------------------------------------------------------------------
# Printer: every element, with the fewest digits that give the same value when read

# As in XLA, 1.0 is written 1; -0.0 keeps its point, since -0 is read as an integer.
MANTISSA = {"f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}
"""The number of payload bits of a NaN, for types whose NaN has a payload."""

_WHOLE = re.compile(r"(?<!-0)\.0(?=[],)]|$)")

# XLA reads the parts of complex numbers in f64 and rejects any above the largest f32, whose short text is above it.
_WITHIN = {"3.4028235e+38": "3.4028234663852886e+38", "-3.4028235e+38": "-3.4028234663852886e+38"}


def literal_text(array: Array) -> str:
    """The text of an array between the parentheses of `constant(...)`.

    >>> literal_text(np.array([[1, 2], [3, 4]], np.int8)), literal_text(np.array([0.1, -0.0, 1e30], np.float32))
    ('{ { 1, 2 }, { 3, 4 } }', '{0.1, -0.0, 1e+30}')
    """
    if isinstance(array, ElidedArray):
        return "{...}"
    dtype = primitive_type(array.dtype)
    if array.ndim == 0 and dtype.kind == "pred":
        return "true" if array else "false"
    return _with_braces(_elements_text(array, dtype), array.ndim)


def excerpt_text(array: Array, most: int) -> str:
    """The first elements of an array, in row-major order, as the text of a flat literal."""
    return literal_text(array if isinstance(array, ElidedArray) else array.reshape(-1)[:most])


def spelled_literal(instruction: Instruction) -> str:
    """The text of a constant's literal: the original text, or the printed array."""
    spelled = instruction.annotations.get("literal")
    if isinstance(spelled, SpelledLiteral) and spelled.array is instruction.attributes.literal:
        return spelled.text
    return literal_text(instruction.attributes.literal)


@frozen(eq=False)
class SpelledLiteral:
    """An array with its original text, which is printed while the array is the same object."""

    array: Array
    text: str


def _with_braces(text: str, rank: int) -> str:
    if rank == 0:
        return text
    if rank == 1:
        return f"{{{text[1:-1]}}}"
    return text.replace("[", "{ ").replace("]", " }").replace("{  }", "{}")


def _elements_text(array: Array, dtype: PrimitiveType) -> str:
    """The elements as Python prints nested lists, without quotes."""
    if dtype.kind == "complex":
        return _WHOLE.sub("", str(_pairs(array).tolist()).replace("'", ""))
    if dtype.kind == "float":
        return _WHOLE.sub("", str(_floats(array, dtype).tolist()).replace("'", ""))
    return str(array.astype(array.dtype if dtype.bits >= 8 else np.int8).tolist())


def _pairs(array: Array) -> Array:
    part = primitive_type(array.real.dtype)
    parts = _floats(np.ascontiguousarray(array).reshape(-1).view(part.dtype), part).tolist()
    texts = [_WITHIN.get(text, text) for text in parts]
    pairs = [f"({real}, {imag})" for real, imag in zip(texts[::2], texts[1::2], strict=True)]
    return np.array(pairs, object).reshape(array.shape)


def _floats(array: Array, dtype: PrimitiveType) -> Array:
    """The elements as text, or for f64 as Python floats, whose text has the fewest digits."""
    if dtype.bits < 32:
        return _small_floats(array, dtype)
    texts = array.astype(np.str_ if dtype.bits == 32 else object)
    nans = np.isnan(array)
    if not nans.any():
        return texts
    texts = texts.astype(object)
    texts[nans] = [_nan_text(dtype, pattern) for pattern in array[nans].view(f"u{array.itemsize}").tolist()]
    return texts


def nan_of(dtype: PrimitiveType, payload: int, is_negative: bool) -> Any:
    """The NaN with this payload as its mantissa."""
    mantissa = MANTISSA[dtype.name]
    exponent = ((1 << (dtype.bits - 1 - mantissa)) - 1) << mantissa
    pattern = is_negative << (dtype.bits - 1) | exponent | payload
    return np.array(pattern, f"u{dtype.dtype.itemsize}").view(dtype.dtype)[()]


def _nan_text(dtype: PrimitiveType, pattern: int) -> str:
    """The text of a NaN: `nan`, or with a payload other than the default one, such as `nan(0x1)`."""
    sign = "-" * (pattern >> (dtype.bits - 1))
    mantissa = MANTISSA.get(dtype.name, 0)
    payload = pattern & ((1 << mantissa) - 1)
    return f"{sign}nan" if not mantissa or payload == 1 << (mantissa - 1) else f"{sign}nan({payload:#x})"


def _small_floats(array: Array, dtype: PrimitiveType) -> Array:
    """The texts of floats of up to 16 bits, computed once for each bit pattern."""
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    patterns, places = np.unique(bits, return_inverse=True)
    texts = [_small_float(dtype, pattern) for pattern in patterns.tolist()]
    return np.array(texts, object)[places].reshape(array.shape)


@functools.cache
def _small_float(dtype: PrimitiveType, pattern: int) -> str:
    value = np.array(pattern, f"u{dtype.dtype.itemsize}").view(dtype.dtype)
    wide = float(value.astype(np.float32))
    if math.isnan(wide):
        return _nan_text(dtype, pattern)
    candidates = (f"{wide:.{digits}g}" for digits in range(1, 17))
    with np.errstate(over="ignore"):  # too few digits may round past the largest
        shortest = next(t for t in candidates if np.float64(t).astype(dtype.dtype).tobytes() == value.tobytes())
    return "-0.0" if shortest == "-0" else shortest


# ----------------------------------------------------------------------------
# Reader: checks the structure of brackets, then converts all numbers in one operation

_COMMENT = re.compile(r"//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)")
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
"""The limit of elements of a constant written as one number."""

_LEAST = 2.0**-127
"""The least number of f8e8m0fnu, which has no zero."""


def read_literal(scanner: Scanner, shape: AnyShape | None) -> tuple[Array, str]:
    """Read the array between the parentheses of `constant(...)`, and its text; the closing one is not taken."""
    begin = scanner.place
    match = _USUAL.match(scanner.text, begin) or _BODY.match(scanner.text, begin)
    assert match is not None  # matches the empty string
    text = match[0]
    if not scanner.text.startswith(")", match.end()):
        _refuse_brackets(scanner, begin)
    if shape is None or not isinstance(shape, Shape):
        scanner.fail(
            "syntax", f"expected the shape of an array for this constant, got {shape or 'no shape'}", place=begin
        )
    array = _Literal(scanner, begin, text, shape).array()
    scanner.place = match.end()
    return array, text.strip()


def _refuse_brackets(scanner: Scanner, begin: int) -> NoReturn:
    """Report the first parenthesis that is nested too deeply, or the outermost one that is not closed."""
    depth, deepest = 1, -1
    for found in _BRACKET.finditer(scanner.text, begin):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth > 3 and deepest < 0:
            deepest = found.start()
        if not depth:
            scanner.fail(
                "syntax", "parentheses in a constant cannot be nested deeper than in (nan(0x1), 0)", place=deepest
            )
    scanner.fail("syntax", "this parenthesis is not closed", place=begin - 1)


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
            return self._first_element_only()
        words = self._words()
        if dtype.kind == "complex":
            return self._reshape(self._numbers(words, COMPONENT[dtype]).view(dtype.dtype))
        return self._reshape(self._numbers(words, dtype))

    def _elided(self) -> Array:
        if self.text.strip() != "{...}":
            self.fail("syntax", "expected either all elements or only {...}", at=self.text.index("..."))
        return ElidedArray(self.shape.dtype, self.shape.dims)  # type: ignore[return-value]

    def _reshape(self, values: Array) -> Array:
        try:
            return values.reshape(self.shape.dims)
        except ValueError:  # no elements, but extents beyond NumPy's limits
            self.fail("overflow", f"{self.shape} is too large for an array")

    def _words(self) -> list[str]:
        """The words of the literal, after a check of its structure against the shape."""
        found = _TRAILING.sub("", _SPACE.sub("", _WORD.sub("0", self.text)))
        if not may_hold(self.text, self.shape.dims) or found != _structure(self.shape):
            self._refuse_structure()
        return _WORD.findall(self.text)

    def _first_element_only(self) -> Array:
        """An array from a number without braces: XLA makes it the first element, and all others 0."""
        size = math.prod(self.shape.dims)
        if size > LARGEST_FILLED:
            self.fail("overflow", f"one number cannot fill {size:,} elements; the limit is {LARGEST_FILLED:,}")
        dtype = self.shape.dtype
        array = np.zeros(size, dtype.dtype)
        first = self._numbers(_WORD.findall(self.text), COMPONENT.get(dtype, dtype)).view(dtype.dtype)
        array[:1] = first[: array.size]
        return array.reshape(self.shape.dims)

    def _refuse_structure(self) -> NoReturn:
        """Refuse a literal at the first place where it does not match the shape."""
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
                    self.fail("shape_mismatch", "expected a complex number as (real, imaginary)", at=place)
                is_after_item = not in_pair
                continue
            if word == ",":
                if not is_after_item:
                    self.fail("syntax", "expected a number before ','", at=place)
                is_after_item = False
                continue
            if word == "}":
                self._close_brace(counts, dims, place)
                is_after_item = True
                continue
            if is_after_item:
                self.fail("syntax", f"expected ',' before {word[:40]!r}", at=place)
            if counts:
                counts[-1] += 1
                if counts[-1] > dims[len(counts) - 1]:
                    self._refuse_count(counts, dims, place, "more")
            if word == "{":
                if len(counts) == rank:
                    self.fail(
                        "shape_mismatch",
                        f"{self.shape} has rank {rank}, but the braces are nested deeper than that",
                        at=place,
                    )
                counts.append(0)
                continue
            if len(counts) < rank:
                self.fail(
                    "shape_mismatch",
                    f"{self.shape} has rank {rank}, but the brace depth of {word[:40]!r} is {len(counts)}",
                    at=place,
                )
            if is_complex != (word == "("):
                wanted = "a pair (real, imaginary)" if is_complex else "a number"
                self.fail("syntax", f"expected {wanted} for {self.shape.dtype}, got {word[:40]!r}", at=place)
            in_pair, pair = word == "(", 0
            is_after_item = not in_pair
        self.fail("syntax", f"the literal has too few elements for {self.shape}", at=len(self.text))

    def _close_brace(self, counts: list[int], dims: Dims, place: int) -> None:
        if not counts:
            self.fail("syntax", "this closing brace has no opening brace", at=place)
        if counts[-1] != dims[len(counts) - 1]:
            self._refuse_count(counts, dims, place, str(counts[-1]))
        counts.pop()

    def _refuse_count(self, counts: list[int], dims: Dims, place: int, found: str) -> NoReturn:
        dim = len(counts) - 1
        self.fail(
            "shape_mismatch",
            f"{self.shape} has extent {dims[dim]} in dimension {dim}, but the literal has {found}",
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
        self, number: int, word: str, dtype: PrimitiveType, why: str = "is not a value of", also: str = ""
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
            values = [_wrap_64_bits(value, dtype) for value in values]
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
        """A NaN with this payload; a payload that is too large must be the default one of f64."""
        bits, bound = int(word.partition("(0x")[2][:-1], 16), 1 << MANTISSA.get(dtype.name, 0)
        if bits == 1 << 51:
            return plain
        if not 0 < bits < bound:
            room = f"which has payloads of 0x1 to {bound - 1:#x}" if bound > 1 else "whose NaN has no payload"
            self._wrong(number, word, dtype, "is not a value of", room)
        return nan_of(dtype, bits, word.startswith("-"))

    def _check_range(self, words: list[str], wide: Any, values: Any, dtype: PrimitiveType) -> None:
        with np.errstate(all="ignore"):
            lost = ~np.isfinite(values.astype(np.float64)) & np.isfinite(wide)
        lost |= (
            np.isinf(wide) & ~np.array(["inf" in word for word in words], np.bool_) if np.isinf(wide).any() else False
        )
        if lost.any():
            number = int(np.argmax(lost))
            self._wrong(number, words[number], dtype, "is out of range for")


def _wrap_64_bits(value: int, dtype: PrimitiveType) -> int:
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
