"""Printer of literals: every element, with the fewest digits that give the same value when read."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, primitive_type
from shape_inference.elided import ElidedArray

from ...core.attributes import Array
from ...core.graph import Instruction

# As in XLA, 1.0 is written 1; -0.0 keeps its point, since -0 is read as an integer.
MANTISSA = {"f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}
"""The number of payload bits of a NaN, for types whose NaN has a payload."""

_WHOLE = re.compile(r"(?<!-0)\.0(?=[],)]|$)")

# Real XLA reads the parts of complex numbers in f64, and refuses any above the largest f32, as its short text is.
_WITHIN = {"3.4028235e+38": "3.4028234663852886e+38", "-3.4028235e+38": "-3.4028234663852886e+38"}


def literal_text(array: Array) -> str:
    """The text of an array between the brackets of `constant(...)`.

    >>> literal_text(np.array([[1, 2], [3, 4]], np.int8)), literal_text(np.array([0.1, -0.0, 1e30], np.float32))
    ('{ { 1, 2 }, { 3, 4 } }', '{0.1, -0.0, 1e+30}')
    """
    if isinstance(array, ElidedArray):
        return "{...}"
    dtype = primitive_type(array.dtype)
    if array.ndim == 0 and dtype.kind == "pred":
        return "true" if array else "false"
    return _braced(_listed(array, dtype), array.ndim)


def excerpt_text(array: Array, most: int) -> str:
    """The first elements of an array, in row-major order, as the text of a flat literal."""
    return literal_text(array if isinstance(array, ElidedArray) else array.reshape(-1)[:most])


def spelled_literal(instruction: Instruction) -> str:
    """The text of a constant's literal: the spelling that was read, or the printed array."""
    spelled = instruction.annotations.get("literal")
    if isinstance(spelled, SpelledLiteral) and spelled.array is instruction.attributes.literal:
        return spelled.text
    return literal_text(instruction.attributes.literal)


@frozen(eq=False)
class SpelledLiteral:
    """An array with its spelling in a text, which is printed while the array is the same object."""

    array: Array
    text: str


def _braced(text: str, rank: int) -> str:
    if rank == 0:
        return text
    if rank == 1:
        return f"{{{text[1:-1]}}}"
    return text.replace("[", "{ ").replace("]", " }").replace("{  }", "{}")


def _listed(array: Array, dtype: PrimitiveType) -> str:
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
