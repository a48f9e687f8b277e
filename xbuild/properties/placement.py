"""Custom calls of shardings and placement: their targets, and the attributes that state shardings at them.

They state where a value is, how it is laid out or split, and compute nothing.
"""

from __future__ import annotations

import re

from ..core.graph import Instruction

# ----------------------------------------------------------------------------
# The targets.

CONSTRAINT = "Sharding"
"""A constraint: the value has the sharding that the call is annotated with."""

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
"""The calls between which values are those of a shard, by their shardings."""

GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
"""The calls between which Shardy calls a computation of a shard."""

CUTS = (GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL, FULL_TO_SHARD, SHARD_TO_FULL)
"""Targets that split global arrays into those of each device, and join them."""

FUNC_RESULT_SHARDING = "xla.sdy.FuncResultSharding"
"""The sharding of a result of a function."""

SHARDING_GROUP = "xla.sdy.ShardingGroup"
"""The target that has one sharding for all values of a group; it has no result."""

SHARDY_COLLECTIVE = "xla.sdy."
"""The prefix of the name of a collective of Shardy, in the target of its call."""

INSPECT = "InspectSharding"
MOVE_TO_HOST = "MoveToHost"

_NOTES = frozenset({
    INSPECT, FULL_TO_SHARD, SHARD_TO_FULL, CONSTRAINT, "annotate_device_placement", FUNC_RESULT_SHARDING,
    GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL, "xla.sdy.PropagationBarrier",
})  # fmt: skip
"""Targets that a compiler removes without a trace."""

MEMORIES = frozenset({"MoveToDevice", MOVE_TO_HOST})
"""Targets that put a value into another memory."""

_MOVES = MEMORIES | {"LayoutConstraint", "Pin", "Unpin", "AwsNeuronTransferWithStaticRing"}
"""Targets that put a value into another memory or layout; AWS Neuron brings weights into memory through a ring."""

COLLECTIVES = frozenset(SHARDY_COLLECTIVE + name for name in (
    "all_gather", "all_reduce", "all_slice", "all_to_all", "collective_permute", "reduce_scatter",
    "replicated_to_unreduced", "sharded_to_unreduced",
))  # fmt: skip
"""Targets that give a value another sharding, in a program for all devices."""

ALIKE = _MOVES | {INSPECT, CONSTRAINT, "annotate_device_placement"}
"""Targets whose result has the extents and the sharding of their operand."""

SAME = _NOTES | _MOVES | COLLECTIVES
"""Targets whose results are their operands, if a device holds all of these."""

_PARTITIONED = re.compile(
    rf"{CONSTRAINT}|{FULL_TO_SHARD}|{SHARD_TO_FULL}|(?:(?:local|global)_)?{re.escape(SHARDY_COLLECTIVE)}\w+", re.ASCII
)

# ----------------------------------------------------------------------------
# The attributes of frontends in which Shardy keeps shardings, of calls and of other instructions.

SHARDY = "xla.sdy.sharding"
MESHES = "xla.sdy.meshes"
IN_SHARDINGS, OUT_SHARDINGS = "xla.sdy.in_shardings", "xla.sdy.out_shardings"
MANUAL_AXES = "xla.sdy.manual_axes"
AXES = "xla.sdy.axes"
GROUP_ID = "xla.sdy.sharding_group_id"

# ----------------------------------------------------------------------------
# What an instruction is, by its target.


def target_of(instruction: Instruction) -> str:
    """The target of a custom call; an empty text for any other instruction."""
    return str(instruction.attributes.custom_call_target) if instruction.opcode == "custom_call" else ""


def is_replaced(instruction: Instruction) -> bool:
    """Whether an instruction is a call that the partitioner replaces, which no partitioned module has."""
    return instruction.opcode == "custom_call" and _PARTITIONED.fullmatch(target_of(instruction)) is not None


def is_same(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call that computes nothing: it returns its operands, or nothing."""
    target = target_of(instruction)
    return target in SAME or target == SHARDING_GROUP


def is_annotation(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call that names its operand, which a compiler removes without a trace."""
    return (
        target_of(instruction) in _NOTES
        and len(instruction.operands) == 1
        and instruction.operands[0].shape.plain() == instruction.shape.plain()
    )


def is_move_to_host(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call whose result a compiler puts into the memory of the host."""
    return target_of(instruction) == MOVE_TO_HOST
