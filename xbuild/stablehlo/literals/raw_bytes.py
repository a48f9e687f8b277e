"""Elements as MLIR keeps them in bytes: one byte or more each, also of types of less than 8 bits."""

from __future__ import annotations

import numpy as np

from shape_inference import PrimitiveType

from ...core.attributes import Array


def numbers_in(raw: bytes, dtype: PrimitiveType) -> Array:
    """The elements in these bytes; of a type of less than 8 bits the low bits of each byte count, as in XLA.

    >>> from shape_inference import s4, u4
    >>> numbers_in(b"\\x01\\x0f\\xf3", s4).tolist(), numbers_in(b"\\x01\\x0f\\xf3", u4).tolist()
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


def flags_of(raw: bytes, size: int) -> Array | None:
    """As many truth values: a byte each, which is true where it is not 0, or a bit each from the least on.

    The MLIR of jaxlib 0.10 writes bytes, older MLIR bits. None where there are as many in neither way.

    >>> flags_of(b"\\x05", 3).tolist(), flags_of(b"\\x01\\x00\\x02", 3).tolist(), flags_of(b"12", 3)
    ([True, False, True], [True, False, True], None)
    """
    found: Array = np.frombuffer(raw, np.uint8)
    if len(raw) != size:
        if len(raw) != -(-size // 8):
            return None
        found = np.unpackbits(found, count=size, bitorder="little")
    return np.asarray(found != 0)
