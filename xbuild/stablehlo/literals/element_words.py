"""Numbers of a literal: words of one element type to an array, in one operation where they are usual."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from shape_inference import PrimitiveType

from ...core.attributes import Array

_DECIMAL = r"-?[0-9]{1,20}"
_INTEGERS = re.compile(rf"(?:{_DECIMAL}(?: |$))*+")
_INTEGER = re.compile(rf"{_DECIMAL}|-?0x[0-9a-fA-F]{{1,17}}|true|false")
_FLOAT = r"-?[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]{1,6})?"
_FLOATS = re.compile(rf"(?:{_FLOAT}(?: |$))*+")
_BITS = re.compile(r"0x[0-9a-fA-F]{1,17}")
_LEAST = 2.0**-127
"""The least number of f8e8m0fnu, which has no 0."""


class WordError(Exception):
    """The word of this number in the literal is no element of the type; the message says why."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number, self.message = number, message


def numbers_of(words: Sequence[str], dtype: PrimitiveType) -> Array:
    """The elements that words stand for; raises WordError."""
    if dtype.kind == "pred":
        return np.array([_flag(number, word) for number, word in enumerate(words)], np.bool_)
    return _floats(words, dtype) if dtype.is_float else _integers(words, dtype)


def _flag(number: int, word: str) -> bool:
    if word not in ("true", "false", "0", "1", "-1"):
        raise WordError(number, f"{word[:40]} is no element of i1, which has true and false")
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
        raise WordError(number, f"{words[number][:40]} is out of the range of {dtype}")
    if is_signed and values and max(values) >= 1 << (bits - 1):  # the type says nothing of the sign
        values = [value - (1 << bits) if value >= 1 << (bits - 1) else value for value in values]
    return np.array(values, np.int64 if is_signed else np.uint64).astype(dtype.dtype)


def _integer(number: int, word: str, dtype: PrimitiveType) -> int:
    if not _INTEGER.fullmatch(word) or word in ("true", "false"):
        raise WordError(number, f"{word[:40]} is no element of {dtype}")
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
        values[number] = _of_bits(number, words[number], dtype)
    return values


def _has_bits(words: Sequence[str]) -> bool:
    return any(word.startswith("0x") for word in words)


def _refuse_float(words: Sequence[str], dtype: PrimitiveType) -> None:
    number, word = next((n, w) for n, w in enumerate(words) if not re.fullmatch(_FLOAT, w))
    also = "; a float is written with a point, as 1.0, or by its bits, as 0x7F800000" if word else ""
    raise WordError(number, f"{word[:40]} is no element of {dtype}{also}")


def _of_bits(number: int, word: str, dtype: PrimitiveType) -> Array:
    bits = int(word, 16) if _BITS.fullmatch(word) else 1 << 64
    if bits >= 1 << dtype.bits:
        raise WordError(number, f"{word[:40]} has more bits than {dtype}")
    return np.array(bits, f"u{dtype.dtype.itemsize}").view(dtype.dtype)[()]
