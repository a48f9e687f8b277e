"""Asynchronous pairs: the start that a done completes, and the op that an async-start wraps."""

from __future__ import annotations

from ..core.graph import Instruction


def origin(half: Instruction) -> Instruction | None:
    """The start that a done or update completes: its operand, or the operand of the first update in the chain."""
    seen: set[Instruction] = set()
    while half.operands and half not in seen:
        seen.add(half)
        half = half.operands[0]
        if half.opcode != "async_update":
            return half
    return None


def wrapped_in(start: Instruction) -> Instruction | None:
    """The one op of the computation that an async-start calls; None where that has more than parameters beside it."""
    (called,) = start.called
    alone = all(i is called.root or i.opcode == "parameter" for i in called.instructions)
    return called.root if alone and called.root.opcode != "parameter" else None
