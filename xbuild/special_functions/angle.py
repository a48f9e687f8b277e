"""The inverse tangent of one argument, by atan2."""

from __future__ import annotations

from .. import ops
from ..core.builder import Value
from ..derived.support import dressed
from .numerics import filled


@dressed
def atan(operand: Value, *, name: str | None = None) -> Value:
    """The inverse tangent of each element: atan2(operand, 1).

    Shapes: floats or complex of any shape; the same.
    Raises: not_array; element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(xb.atan), [0.0, float("inf")])
    array([0.       , 1.5707964], dtype=float32)

    Source: XlaBuilder's math library, Atan.
    """
    return ops.atan2(operand, filled(operand, 1), name=name)
