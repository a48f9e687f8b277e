"""Names of element types in MLIR."""

from __future__ import annotations

from shape_inference import COMPONENT, PRIMITIVES, PrimitiveType


def _name(dtype: PrimitiveType) -> str:
    """MLIR's name: integers by sign and width, floats with their format in capitals."""
    if dtype.kind == "pred":
        return "i1"
    if dtype.kind == "complex":
        return f"complex<{COMPONENT[dtype]}>"
    if dtype.is_integer:
        return f"{'i' if dtype.kind == 'signed' else 'ui'}{dtype.bits}"
    return f"f{dtype.name[1:].upper()}" if dtype.bits < 16 else dtype.name


TYPE_NAMES = {dtype: _name(dtype) for name, dtype in PRIMITIVES.items() if name not in ("s1", "u1")}
"""The name of each element type in MLIR; s1 and u1 have none, since i1 is pred.

>>> import xbuild as xb
>>> TYPE_NAMES[xb.u8], TYPE_NAMES[xb.f8e4m3fn], TYPE_NAMES[xb.c64], TYPE_NAMES[xb.pred]
('ui8', 'f8E4M3FN', 'complex<f32>', 'i1')
"""

TYPES_BY_NAME = {name: dtype for dtype, name in TYPE_NAMES.items()}
"""The element type of each name in MLIR."""
