"""Rules of the custom calls that place or partition a value, which is itself where a device holds it whole."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.builder import Value
from ..rules import Cotangents, Pullback


def same(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """The cotangent of the result, for one operand or the elements of several."""
    return (back.ct,) if len(operands) == 1 else tuple(back.ct)


PLACEMENT = dict.fromkeys(
    (
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "MoveToHost",
        "MoveToDevice", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    ),
    same,
)  # fmt: skip
"""Target of a custom call -> its rule."""
