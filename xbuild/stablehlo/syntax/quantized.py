"""Types of quantized elements, `!quant.uniform<i8:f32, 0.5:3>`: storage, expressed type, scales, zero points."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shape_inference import PrimitiveType

from ..spelling.element_types import TYPES_BY_NAME
from .types import QuantizedType

if TYPE_CHECKING:
    from .scanner import MlirScanner

_FLOAT = r"-?\d++(?:\.\d*+)?(?:[eE][-+]?\d{1,3}+)?"
_TYPE = re.compile(
    r"<\s*+([iu]\d++)\s*+(?:<\s*+(-?\d{1,20})\s*+:\s*+(-?\d{1,20})\s*+>)?\s*+:\s*+(\w++)\s*+(?::\s*+(\d{1,9}))?\s*+,\s*+(.*)>",
    re.DOTALL | re.ASCII,
)
_SCALE = re.compile(rf"\s*+({_FLOAT})\s*+(?::\s*+(-?\d{{1,20}}))?\s*+", re.ASCII)


def quantized_type(scanner: MlirScanner, kind: str, body: str, place: int) -> QuantizedType:
    """The quantized type of this name, and the text between its brackets, which are included."""
    match = _TYPE.fullmatch(body) if kind == "!quant.uniform" else None
    storage = _storage(match[1]) if match else None
    expressed = TYPES_BY_NAME.get(match[4]) if match else None
    scales = _scales(match[6], match[5] is not None) if match else None
    if match is None or storage is None or expressed is None or scales is None:
        example = "!quant.uniform<i8:f32, 0.5:3> or !quant.uniform<i8:f32:1, {0.5:3, 0.25}>"
        scanner.fail("syntax", f"a quantized type is written as {example}", place=place)
    limits = None if match[2] is None else (int(match[2]), int(match[3]))
    along = None if match[5] is None else int(match[5])
    return QuantizedType(
        storage, expressed, tuple([s for s, _ in scales]), tuple([z for _, z in scales]), along, limits, kind + body
    )


def _storage(name: str) -> PrimitiveType | None:
    return TYPES_BY_NAME.get(name if name.startswith("i") else f"u{name.replace('u', 'i')}")


def _scales(text: str, is_listed: bool) -> list[tuple[float, int]] | None:
    """The pairs of scale and zero point; None where the text is something else."""
    text = text.strip()
    if is_listed != (text.startswith("{") and text.endswith("}")):
        return None
    parts = text[1:-1].split(",") if is_listed else [text]
    found = [_SCALE.fullmatch(part) for part in parts]
    return [(float(each[1]), int(each[2] or 0)) for each in found if each] if all(found) else None
