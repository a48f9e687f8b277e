"""Elements of `dense_resource<name>`, which stand as bytes in hexadecimal digits at the end of the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from shape_inference import Shape

from ...core.attributes import Array
from ..literals.raw_bytes import numbers_in
from ..literals.strings import unescaped

if TYPE_CHECKING:
    from .scanner import MlirScanner

_SECTION = re.compile(r"\{-#.*?dialect_resources\s*+:(.*?)#-\}", re.DOTALL)
_BLOB = re.compile(r'(?:([A-Za-z_][\w.$-]*+)|"((?:[^"\\\n]|\\.)*+)")\s*+:\s*+"0x([0-9A-Fa-f]*+)"', re.ASCII)
_ALIGNMENT = 4  # bytes before the elements, a number that says how these are to lie in memory


def resources_of(text: str) -> dict[str, str]:
    """The hexadecimal digits of each resource by its name."""
    section = _SECTION.search(text, max(text.rfind("{-#"), 0))
    found = _BLOB.finditer(section[1]) if section else ()
    return {each[1] or unescaped(each[2]): each[3] for each in found}


def array_of(scanner: MlirScanner, digits: str, shape: Shape, place: int) -> Array:
    """The elements of a shape from the digits of a resource: whole bytes each, also of types of less than 8 bits."""
    dtype = shape.dtype
    wanted, found = shape.size * dtype.dtype.itemsize, len(digits) // 2 - _ALIGNMENT
    if len(digits) % 2 or found != wanted:
        each = " (one for each element)" if dtype.bits < 8 else ""
        has = f"and the resource has {max(found, 0):,} after those of its alignment"
        message = f"{shape} has {wanted:,} bytes{each}, {has}"
        scanner.fail("shape_mismatch", message, place=place)
    raw = np.frombuffer(bytes.fromhex(digits), np.uint8, offset=_ALIGNMENT)
    if dtype.kind == "pred" and raw.size and raw.max() > 1:
        scanner.fail("invalid_literal", f"an element of {shape} is a byte of 0 or 1", place=place)
    return numbers_in(raw.tobytes(), dtype).reshape(shape.dims)
