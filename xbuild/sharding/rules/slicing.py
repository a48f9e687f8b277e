"""Rules of slices: whole dimensions pass."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


@sharding_rule
def slice_(instruction: Instruction) -> ShardingRule:
    """Sliced dimensions are permutations of the operand's extent, as the places are known."""
    builder = FactorBuilder(instruction)
    for dim, (size, kept) in enumerate(zip(builder.operands[0], builder.results[0], strict=True)):
        kind: FactorKind = "pass_through" if size == kept else "permutation"
        builder.add(size, (dim,), (dim,), kind)
    return builder.rule()


@sharding_rule
def dynamic_slice(instruction: Instruction) -> ShardingRule:
    """Sliced dimensions need replication and are blocked."""
    builder = FactorBuilder(instruction)
    for dim, (size, kept) in enumerate(zip(builder.operands[0], builder.results[0], strict=True)):
        if size == kept:
            builder.add(size, (dim,), (dim,))
        else:
            builder.add(size, (dim,), (dim,), "need_replication", is_blocked=True)
    return builder.rule()


@sharding_rule
def dynamic_update_slice(instruction: Instruction) -> ShardingRule:
    """Operand and result pass, for a device updates what it holds; an update of part of a dimension is wanted whole."""
    builder = FactorBuilder(instruction)
    for dim, (size, updated) in enumerate(zip(*builder.operands[:2], strict=True)):
        builder.add(size, (dim, dim if size == updated else None), (dim,))
        if size != updated:
            builder.add(updated, (None, dim), (), "need_replication")
    return builder.rule()
