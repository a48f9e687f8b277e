"""Encoding of arrays in a step page: base64 of bytes, in element types that a browser has."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from shape_inference import primitive_type

from ..core.attributes import Array


def format_of(array: Array) -> tuple[str, Array]:
    """The format of a browser's typed arrays that holds the elements exactly, and the array in this format."""
    kind, width = primitive_type(array.dtype).kind, array.itemsize
    if kind == "pred":
        return "u1", array.astype(np.uint8)
    if kind in ("signed", "unsigned"):
        name = f"{'i' if kind == 'signed' else 'u'}{8 if width == 8 else 4}"
        return name, array.astype(np.dtype(name))
    if kind == "complex":
        return ("c8", array) if width == 8 else ("c16", array)
    return ("f8", array) if width == 8 else ("f4", array.astype(np.float32))


def shades(cells: Array) -> Array:
    """Numbers as 127ths of the largest, in one byte each, which is exact enough for a picture."""
    plain = np.nan_to_num(np.asarray(cells, np.float64))
    largest = np.abs(plain).max(initial=0.0)
    return np.rint(plain / largest * 127 if largest else plain).astype(np.int8)


def in_base64(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def small_ints(array: Array) -> dict[str, Any]:
    """Integers in the narrowest format that holds them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    name = "i1" if low >= -128 and high < 128 else "i2" if low >= -(1 << 15) and high < 1 << 15 else "i4"
    return {"f": name, "b": in_base64(array.astype(name))}
