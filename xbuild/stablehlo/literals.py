"""Literals of tensors in MLIR text, read and printed: nested lists, splats, hexadecimal digits, raw bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from shape_inference import COMPONENT, PrimitiveType, Shape, primitive_type

from ..core.attributes import Array
from ..text.literals import LARGEST_FILLED, may_hold

if TYPE_CHECKING:
    from .syntax.parser import MlirScanner


# ----------------------------------------------------------------------------
# Raw bytes: each element takes whole bytes, even of types narrower than 8 bits


def read_bytes(raw: bytes, dtype: PrimitiveType) -> Array:
    """The elements in these bytes; for types narrower than 8 bits, the low bits of each byte, as in XLA.

    >>> from shape_inference import s4, u4
    >>> read_bytes(b"\\x01\\x0f\\xf3", s4).tolist(), read_bytes(b"\\x01\\x0f\\xf3", u4).tolist()
    ([1, -1, 3], [1, 15, 3])

    Source: MLIR, lib/IR/BuiltinAttributes.cpp, getDenseElementStorageWidth.
    """
    if dtype.bits >= 8 or dtype.kind == "pred":
        return np.frombuffer(raw, dtype.dtype)
    low = np.frombuffer(raw, np.uint8) & ((1 << dtype.bits) - 1)
    if dtype.kind == "float":
        return low.view(dtype.dtype)
    sign = 1 << (dtype.bits - 1) if dtype.kind == "signed" else 0
    return ((low ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype.dtype)


def read_flags(raw: bytes, size: int) -> Array | None:
    """Booleans from bytes, of which each is true unless 0, or from bits, lowest first.

    The MLIR of jaxlib 0.10 writes bytes, older MLIR bits. None if the number of bytes fits neither.

    >>> read_flags(b"\\x05", 3).tolist(), read_flags(b"\\x01\\x00\\x02", 3).tolist(), read_flags(b"12", 3)
    ([True, False, True], [True, False, True], None)
    """
    found: Array = np.frombuffer(raw, np.uint8)
    if len(raw) != size:
        if len(raw) != -(-size // 8):
            return None
        found = np.unpackbits(found, count=size, bitorder="little")
    return np.asarray(found != 0)


# ----------------------------------------------------------------------------
# Words of a literal to an array, in one operation if they have the usual form

_DECIMAL = r"-?[0-9]{1,20}"
_INTEGERS = re.compile(rf"(?:{_DECIMAL}(?: |$))*+")
_INTEGER = re.compile(rf"{_DECIMAL}|-?0x[0-9a-fA-F]{{1,17}}|true|false")
_FLOAT = r"-?[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]{1,6})?"
_FLOATS = re.compile(rf"(?:{_FLOAT}(?: |$))*+")
_BITS = re.compile(r"0x[0-9a-fA-F]{1,17}")
_LEAST = 2.0**-127
"""The least number of f8e8m0fnu, which has no zero."""


class WordError(Exception):
    """The n-th word of a literal is not a value of the type; the message says why."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number, self.message = number, message


def read_words(words: Sequence[str], dtype: PrimitiveType) -> Array:
    """The elements of these words. Raises WordError."""
    if dtype.kind == "pred":
        return np.array([_flag(number, word) for number, word in enumerate(words)], np.bool_)
    return _floats(words, dtype) if dtype.is_float else _integers(words, dtype)


def _flag(number: int, word: str) -> bool:
    if word not in ("true", "false", "0", "1", "-1"):
        raise WordError(number, f"expected true or false as an element of i1, got {word[:40]}")
    return word not in ("false", "0")


def _integers(words: Sequence[str], dtype: PrimitiveType) -> Array:
    if _INTEGERS.fullmatch(" ".join(words)):
        values = list(map(int, words))
    else:
        values = [_integer(number, word, dtype) for number, word in enumerate(words)]
    bits, is_signed = dtype.bits, dtype.kind == "signed"
    low, high = (-(1 << (bits - 1)) if is_signed else 0), (1 << bits) - 1
    if values and (min(values) < low or max(values) > high):
        number = next(n for n, value in enumerate(values) if not low <= value <= high)
        raise WordError(number, f"{words[number][:40]} is out of range for {dtype}")
    if is_signed and values and max(values) >= 1 << (bits - 1):  # such as 255 for an i8, which MLIR allows
        values = [value - (1 << bits) if value >= 1 << (bits - 1) else value for value in values]
    return np.array(values, np.int64 if is_signed else np.uint64).astype(dtype.dtype)


def _integer(number: int, word: str, dtype: PrimitiveType) -> int:
    if not _INTEGER.fullmatch(word) or word in ("true", "false"):
        raise WordError(number, f"{word[:40]} is not a value of {dtype}")
    return int(word, 16 if "0x" in word else 10)


def _floats(words: Sequence[str], dtype: PrimitiveType) -> Array:
    plain = words
    odd = [number for number, word in enumerate(words) if word.startswith("0x")] if _has_bits(words) else []
    if odd:
        plain = list(words)
        for number in odd:
            plain[number] = "0.0"
    if not _FLOATS.fullmatch(" ".join(plain)):
        _refuse_float(plain, dtype)
    wide = np.array(list(map(float, plain)), np.float64)
    with np.errstate(all="ignore"):
        values = (np.where(wide > 0, np.maximum(wide, _LEAST), wide) if dtype.name == "f8e8m0fnu" else wide).astype(
            dtype.dtype
        )
    for number in odd:
        values[number] = _float_of_bits(number, words[number], dtype)
    return values


def _has_bits(words: Sequence[str]) -> bool:
    return any(word.startswith("0x") for word in words)


def _refuse_float(words: Sequence[str], dtype: PrimitiveType) -> None:
    number, word = next((n, w) for n, w in enumerate(words) if not re.fullmatch(_FLOAT, w))
    also = "; write a float with a decimal point, such as 1.0, or as bits, such as 0x7F800000" if word else ""
    raise WordError(number, f"{word[:40]} is not a value of {dtype}{also}")


def _float_of_bits(number: int, word: str, dtype: PrimitiveType) -> Array:
    bits = int(word, 16) if _BITS.fullmatch(word) else 1 << 64
    if bits >= 1 << dtype.bits:
        raise WordError(number, f"{word[:40]} has more bits than {dtype}")
    return np.array(bits, f"u{dtype.dtype.itemsize}").view(dtype.dtype)[()]


# ----------------------------------------------------------------------------
# Reading `dense<...>`: nested lists, one element for all, or bytes in hexadecimal digits

_COMMENT = re.compile(r"//[^\n]*+")
_WORD = re.compile(r"[^\s\[\](),]++")
_SPACE = re.compile(r"\s++")
_BLOB = re.compile(r'\s*+"0x([0-9a-fA-F]*+)"\s*+')


def dense_array(scanner: MlirScanner, begin: int, text: str, shape: Shape) -> Array:
    """Read the elements of a shape from the text between the brackets, which is at the place `begin`."""
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
            return self._from_digits(blob[1])
        if '"' in self.text:
            self.fail("invalid_literal", 'expected bytes such as "0x3F80"', at=self.text.index('"'))
        if not self.text.strip():
            return self._reshape(np.empty(0, self.shape.dtype.dtype), 0)
        words = _WORD.findall(self.text)
        skeleton = _SPACE.sub("", _WORD.sub("0", self.text))
        one = "(0,0)" if self.shape.dtype.kind == "complex" else "0"
        if skeleton == one:
            return self._splat(self._numbers(words)[0])
        if not may_hold(self.text, self.shape.dims) or skeleton != _structure(self.shape, one):
            self._refuse_lists(skeleton, one)
        return self._reshape(self._numbers(words), len(words))

    def _numbers(self, words: list[str]) -> Array:
        dtype = self.shape.dtype
        try:
            if dtype.kind == "complex":
                return read_words(words, COMPONENT[dtype]).view(dtype.dtype)
            return read_words(words, dtype)
        except WordError as error:
            match = next(m for n, m in enumerate(_WORD.finditer(self.text)) if n == error.number)
            self.fail("invalid_literal", error.message, at=match.start())

    def _reshape(self, values: Array, count: int) -> Array:
        try:
            return values.reshape(self.shape.dims)
        except ValueError:
            self.fail(
                "shape_mismatch", f"the size of {self.shape} is {self.shape.size:,}, but the literal has size {count:,}"
            )

    def _splat(self, value: Any) -> Array:
        """One element for all, as a view."""
        if self.shape.size > LARGEST_FILLED:
            self.fail(
                "overflow",
                f"a splat cannot fill {self.shape.size:,} elements; the limit is {LARGEST_FILLED:,}",
            )
        return np.broadcast_to(value, self.shape.dims)

    def _from_digits(self, digits: str) -> Array:
        if len(digits) % 2:
            self.fail("invalid_literal", f"expected an even number of hexadecimal digits, got {len(digits)}")
        raw, dtype = bytes.fromhex(digits), self.shape.dtype
        if dtype.kind == "pred":
            return self._flags(raw)
        if len(raw) % dtype.dtype.itemsize:
            self.fail("invalid_literal", f"{len(raw)} bytes do not hold a whole number of {dtype} elements")
        values = read_bytes(raw, dtype)
        return self._splat_or_reshape(values, len(raw) // dtype.dtype.itemsize)

    def _splat_or_reshape(self, values: Array, count: int) -> Array:
        return self._splat(values[0]) if count == 1 and self.shape.size != 1 else self._reshape(values, count)

    def _flags(self, raw: bytes) -> Array:
        """Elements of i1: a byte for all, or a byte or a bit each."""
        size = self.shape.size
        if len(raw) == 1 and size != 1 and (raw in (b"\x00", b"\xff") or size > 8):
            return self._splat(np.bool_(raw != b"\x00"))
        if len(raw) == 1 and size > 1:
            self.fail(
                "invalid_literal",
                f"one byte for {self.shape} is ambiguous: a splat in newer MLIR, one bit per element in older MLIR; "
                "write a list such as [true, false]",
            )
        found = read_flags(raw, size)
        if found is None:
            written = f"{size:,} bytes, or {-(-size // 8):,} with a bit per element"
            self.fail("shape_mismatch", f"{self.shape} takes {written}, but the literal has {len(raw):,}")
        return self._reshape(found, size)

    def _refuse_lists(self, skeleton: str, one: str) -> NoReturn:
        """Refuse lists that do not match the shape, and name the first difference."""
        rank = 0
        while skeleton.startswith("[", rank):
            rank += 1
        if rank != self.shape.rank:
            self.fail("shape_mismatch", f"{self.shape} has rank {self.shape.rank}, but the lists have rank {rank}")
        wanted, found = self.shape.size, skeleton.count(one)
        if self.shape.dtype.kind == "complex" and skeleton.count("0") != 2 * found:
            self.fail("invalid_literal", f"expected (real, imaginary) for an element of {self.shape.dtype}")
        if wanted != found:
            self.fail("shape_mismatch", f"the size of {self.shape} is {wanted:,}, but the literal has size {found:,}")
        self.fail("shape_mismatch", f"the nesting of the lists does not match {self.shape}")


def _structure(shape: Shape, text: str) -> str:
    """The text of the lists of a shape, with one text for each element and without blanks."""
    laid_out = shape.dims[: shape.dims.index(0) + 1] if 0 in shape.dims else shape.dims
    for size in reversed(laid_out):
        text = f"[{','.join([text] * size)}]"
    return text


def read_array_elements(text: str, dtype: PrimitiveType) -> Array:
    """Read the numbers of `array<type: ...>`."""
    return read_words(_WORD.findall(text), dtype)


# ----------------------------------------------------------------------------
# Printing the literal of an array: one element for all, lists, or hexadecimal bytes for large arrays.

MOST_IN_LIST = 64
"""Arrays of more elements are written as bytes; those of pred and of types of under 8 bits are always listed."""


def dense_text(array: Array) -> str:
    """The literal of an array; every bit of it can be read back.

    >>> dense_text(np.float32([1, 1.5])), dense_text(np.zeros((2, 3), np.int8)), dense_text(np.float16("nan"))
    ('dense<[1.0, 1.5]>', 'dense<0>', 'dense<0x7E00>')
    """
    dtype = primitive_type(array.dtype)
    if array.size == 0:
        return "dense<>"
    if array.size > 1 and _is_uniform(array):
        array = array.reshape(-1)[0]
    if array.size > MOST_IN_LIST and dtype.bits >= 8:
        return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'
    return f"dense<{_element_texts(np.asarray(array), dtype)}>"


def _is_uniform(array: Array) -> bool:
    octets = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((octets == octets[0]).all())


def _element_texts(array: Array, dtype: PrimitiveType) -> str:
    if dtype.kind == "pred":
        return str(array.tolist()).lower()
    if dtype.is_integer:
        return str(array.astype(array.dtype if dtype.bits >= 8 else np.int8).tolist())
    texts = _complex_texts(array) if dtype.kind == "complex" else _float_texts(array, dtype)
    return str(texts.tolist()).replace("'", "")


def _complex_texts(array: Array) -> Any:
    part = primitive_type(array.real.dtype)
    parts = _float_texts(np.ascontiguousarray(array).reshape(-1).view(part.dtype), part).tolist()
    return np.array([f"({a}, {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)], object).reshape(array.shape)


def _float_texts(array: Array, dtype: PrimitiveType) -> Any:
    """The elements as decimal numbers; infinities and NaN as their bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = flat.view(f"u{array.itemsize}").tolist()
    with np.errstate(invalid="ignore"):  # a signaling NaN, which is written as its bits
        doubles = flat.astype(np.float64)
    wide = doubles if dtype.bits != 32 else flat
    finite = np.isfinite(doubles).tolist()
    digits = (dtype.bits + 3) // 4
    texts = [
        _with_point(text) if is_finite else f"0x{pattern:0{digits}X}"
        for text, pattern, is_finite in zip(map(str, wide), bits, finite, strict=True)
    ]
    return np.array(texts, object).reshape(array.shape)


def _with_point(text: str) -> str:
    """A number with a decimal point, which MLIR requires before an exponent."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{e}{exponent}"
