"""Custom calls that say where a value lies, or how it is split, and compute nothing."""

from __future__ import annotations

from ..core.graph import Instruction

_TARGETS = frozenset(
    {
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
        "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    }
)  # fmt: skip


def is_annotation(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call that names its operand, which a compiler removes without a trace."""
    return (
        instruction.opcode == "custom_call"
        and instruction.attributes.custom_call_target in _TARGETS
        and len(instruction.operands) == 1
        and instruction.operands[0].shape.plain() == instruction.shape.plain()
    )


def is_move_to_host(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call whose result a compiler puts into the memory of the host."""
    return instruction.opcode == "custom_call" and instruction.attributes.custom_call_target == "MoveToHost"
