"""Loops that never end by themselves: their condition is a constant."""

from __future__ import annotations

from shape_inference.elided import ElidedArray

from ..core.graph import Instruction


def never_ends(instruction: Instruction) -> bool:
    """Whether an instruction is a while whose condition is always true: what a verdict says is of one trip of it."""
    if instruction.opcode != "while":
        return False
    root = dict(instruction.regions())["condition"].root
    return root.opcode == "constant" and not isinstance(root.attributes.literal, ElidedArray) and _is_true(root)


def _is_true(constant: Instruction) -> bool:
    return bool(constant.attributes.literal.all())
