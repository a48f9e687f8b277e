"""Elements of `dense<...>`: nested lists, one element for all, or bytes in hexadecimal digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from shape_inference import COMPONENT, PrimitiveType, Shape

from ...core.attributes import Array
from ...text.spelling.literal_reader import LARGEST_FILLED, may_hold
from .element_words import WordError, numbers_of
from .raw_bytes import flags_of, numbers_in

if TYPE_CHECKING:
    from ..syntax.scanner import MlirScanner

_COMMENT = re.compile(r"//[^\n]*+")
_WORD = re.compile(r"[^\s\[\](),]++")
_SPACE = re.compile(r"\s++")
_BLOB = re.compile(r'\s*+"0x([0-9a-fA-F]*+)"\s*+')


def dense_array(scanner: MlirScanner, begin: int, text: str, shape: Shape) -> Array:
    """The elements that the text between the brackets gives for a shape; `begin` is the place of the text."""
    return _Literal(scanner, begin, text, shape).array()


class _Literal:
    def __init__(self, scanner: MlirScanner, begin: int, text: str, shape: Shape) -> None:
        self.scanner, self.begin, self.shape = scanner, begin, shape
        if "//" in text:
            text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
        self.text = text

    def fail(self, kind: str, message: str, at: int = 0) -> NoReturn:
        self.scanner.fail(kind, message, place=self.begin + at)

    def array(self) -> Array:
        blob = _BLOB.fullmatch(self.text)
        if blob:
            return self._of_bytes(blob[1])
        if '"' in self.text:
            self.fail("invalid_literal", 'bytes are written as "0x..."', at=self.text.index('"'))
        if not self.text.strip():
            return self._shaped(np.empty(0, self.shape.dtype.dtype), 0)
        words = _WORD.findall(self.text)
        skeleton = _SPACE.sub("", _WORD.sub("0", self.text))
        one = "(0,0)" if self.shape.dtype.kind == "complex" else "0"
        if skeleton == one:
            return self._splat(self._numbers(words)[0])
        if not may_hold(self.text, self.shape.dims) or skeleton != _structure(self.shape, one):
            self._misfit(skeleton, one)
        return self._shaped(self._numbers(words), len(words))

    def _numbers(self, words: list[str]) -> Array:
        dtype = self.shape.dtype
        try:
            if dtype.kind == "complex":
                return numbers_of(words, COMPONENT[dtype]).view(dtype.dtype)
            return numbers_of(words, dtype)
        except WordError as error:
            match = next(m for n, m in enumerate(_WORD.finditer(self.text)) if n == error.number)
            self.fail("invalid_literal", error.message, at=match.start())

    def _shaped(self, values: Array, count: int) -> Array:
        try:
            return values.reshape(self.shape.dims)
        except ValueError:
            self.fail("shape_mismatch", f"{self.shape} has {self.shape.size:,} elements, and {count:,} are written")

    def _splat(self, value: Any) -> Array:
        """One element for all, as a view of it."""
        if self.shape.size > LARGEST_FILLED:
            self.fail("overflow", f"one number is written for the {self.shape.size:,} elements of {self.shape}")
        return np.broadcast_to(value, self.shape.dims)

    def _of_bytes(self, digits: str) -> Array:
        if len(digits) % 2:
            self.fail("invalid_literal", f"{len(digits)} digits are written, and two make a byte")
        raw, dtype = bytes.fromhex(digits), self.shape.dtype
        if dtype.kind == "pred":
            return self._flags(raw)
        if len(raw) % dtype.dtype.itemsize:
            self.fail("invalid_literal", f"{len(raw)} bytes are no number of elements of {dtype}")
        values = numbers_in(raw, dtype)
        return self._filled(values, len(raw) // dtype.dtype.itemsize)

    def _filled(self, values: Array, count: int) -> Array:
        return self._splat(values[0]) if count == 1 and self.shape.size != 1 else self._shaped(values, count)

    def _flags(self, raw: bytes) -> Array:
        """Elements of i1: a byte for all, or a byte or a bit each."""
        size = self.shape.size
        if len(raw) == 1 and size != 1 and (raw in (b"\x00", b"\xff") or size > 8):
            return self._splat(np.bool_(raw != b"\x00"))
        if len(raw) == 1 and size > 1:
            self.fail("invalid_literal", f"a byte for {self.shape} is one element for all in newer MLIR, and a bit for "
                      "each element in older; a list, as [true, false], is the same in both")  # fmt: skip
        found = flags_of(raw, size)
        if found is None:
            written = f"{size:,} bytes, or {-(-size // 8):,} with 8 elements each"
            self.fail("shape_mismatch", f"{self.shape} has {written}, and {len(raw):,} are written")
        return self._shaped(found, size)

    def _misfit(self, skeleton: str, one: str) -> NoReturn:
        """Refuse a text whose lists are not those of the shape, by what is different first."""
        rank = 0
        while skeleton.startswith("[", rank):
            rank += 1
        if rank != self.shape.rank:
            self.fail("shape_mismatch", f"{self.shape} has rank {self.shape.rank}, and the lists have {rank}")
        wanted, found = self.shape.size, skeleton.count(one)
        if self.shape.dtype.kind == "complex" and skeleton.count("0") != 2 * found:
            self.fail("invalid_literal", f"a number of {self.shape.dtype} is written (real, imaginary)")
        if wanted != found:
            self.fail("shape_mismatch", f"{self.shape} has {wanted:,} elements, and {found:,} are written")
        self.fail("shape_mismatch", f"the brackets are not those of the lists of {self.shape}")


def _structure(shape: Shape, text: str) -> str:
    """The text of the lists of a shape, with one text for each element and without blanks."""
    laid_out = shape.dims[: shape.dims.index(0) + 1] if 0 in shape.dims else shape.dims
    for size in reversed(laid_out):
        text = f"[{','.join([text] * size)}]"
    return text


def elements_of(text: str, dtype: PrimitiveType) -> Array:
    """The numbers of `array<type: ...>`."""
    return numbers_of(_WORD.findall(text), dtype)
