"""The inverse tangent of one argument, by atan2."""

from __future__ import annotations

from .. import ops
from ..core.builder import Value
from ..derived.support import dressed
from .numerics import filled


@dressed
def atan(operand: Value, *, name: str | None = None) -> Value:
    """Return the inverse tangent of each element: atan2(operand, 1).

    Shapes: takes floats or complex numbers of any shape and returns the same shape.
    Raises: not_array or element_type_unsupported.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2])(xb.atan), [0.0, float("inf")])
    array([0.       , 1.5707964], dtype=float32)

    Source: XlaBuilder's math library, Atan.
    """
    return ops.atan2(operand, filled(operand, 1), name=name)
