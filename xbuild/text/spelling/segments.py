"""Checks of the operands in HLO text that precede shape inference: lengths of operand lists, precision."""

from __future__ import annotations

import functools

from shape_inference import AnyShape, Shape, XbuildError

from ...core.builder import Values
from ...core.op import Schema
from .expansion import ONE_PRECISION


@functools.lru_cache(maxsize=4096)
def segments_of(schema: Schema, count: int) -> tuple[int, ...] | None:
    """The lengths of the operand lists; several lists share the operands equally."""
    lists = sum(kind is Values for kind in schema.kinds)
    rest = count - (len(schema.kinds) - lists)
    if rest < 0 or (rest % lists if lists else rest):
        wanted = f"{len(schema.kinds)} are wanted: {', '.join(schema.operands) or 'none'}"
        if lists:
            wanted = f"they are {', '.join(schema.operands)}"
        raise XbuildError("arity_mismatch", f"{count} operands, and {wanted}")
    return None if schema.is_flat else tuple(rest // lists if kind is Values else 1 for kind in schema.kinds)


def check_precision(schema: Schema, shapes: tuple[AnyShape, ...]) -> None:
    """Refuse float operands of different precisions, which HLO text does not have for most ops."""
    if schema.opcode not in ONE_PRECISION or (len(shapes) == 2 and shapes[0] is shapes[1]):
        return
    floats = {shape.dtype.name for shape in shapes if isinstance(shape, Shape) and shape.dtype.is_float}
    if len(floats) > 1:
        names = " and ".join(sorted(floats))
        raise XbuildError(
            "element_type_mismatch",
            f"operands are {names}; in HLO text they have one precision",
            ["convert one of them"],
        )
