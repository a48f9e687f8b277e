"""Literals of arrays in MLIR: one element for all, lists, or the bytes in hexadecimal digits for large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType, primitive_type

from ....core.attributes import Array

LISTED = 64
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
    if array.size > LISTED and dtype.bits >= 8:
        return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'
    return f"dense<{_listed(np.asarray(array), dtype)}>"


def _is_uniform(array: Array) -> bool:
    octets = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((octets == octets[0]).all())


def _listed(array: Array, dtype: PrimitiveType) -> str:
    if dtype.kind == "pred":
        return str(array.tolist()).lower()
    if dtype.is_integer:
        return str(array.astype(array.dtype if dtype.bits >= 8 else np.int8).tolist())
    texts = _pairs(array) if dtype.kind == "complex" else _floats(array, dtype)
    return str(texts.tolist()).replace("'", "")


def _pairs(array: Array) -> Any:
    part = primitive_type(array.real.dtype)
    parts = _floats(np.ascontiguousarray(array).reshape(-1).view(part.dtype), part).tolist()
    return np.array([f"({a}, {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)], object).reshape(array.shape)


def _floats(array: Array, dtype: PrimitiveType) -> Any:
    """The elements as decimal numbers, or as their bits where they are infinite, NaN, or nothing else would tell."""
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = flat.view(f"u{array.itemsize}").tolist()
    with np.errstate(invalid="ignore"):  # a signaling NaN, which is told by its bits
        doubles = flat.astype(np.float64)
    wide = doubles if dtype.bits != 32 else flat
    finite = np.isfinite(doubles).tolist()
    digits = (dtype.bits + 3) // 4
    texts = [
        _decimal(text) if is_finite else f"0x{pattern:0{digits}X}"
        for text, pattern, is_finite in zip(map(str, wide), bits, finite, strict=True)
    ]
    return np.array(texts, object).reshape(array.shape)


def _decimal(text: str) -> str:
    """A number with a point, which MLIR wants before an exponent."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{e}{exponent}"
