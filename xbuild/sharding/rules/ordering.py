"""Rules of sort and topk: the dimension that is ordered is wanted whole."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


@sharding_rule
def sort(instruction: Instruction) -> ShardingRule:
    """The sorted dimension needs replication; it is blocked where no other dimension could be cut in its place."""
    builder, sorted_dim = FactorBuilder(instruction), instruction.attributes.dimension
    dims = builder.operands[0]
    is_alone = all(size <= 1 for dim, size in enumerate(dims) if dim != sorted_dim)
    for dim, size in enumerate(dims):
        if dim == sorted_dim:
            builder.alike(dim, size, "need_replication", is_blocked=is_alone)
        else:
            builder.alike(dim, size)
    return builder.rule()


@sharding_rule
def topk(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    last = len(builder.operands[0]) - 1
    for dim, size in enumerate(builder.operands[0][:last]):
        builder.alike(dim, size)
    builder.alike(last, builder.operands[0][last], "need_replication", is_blocked=True)
    return builder.rule()
