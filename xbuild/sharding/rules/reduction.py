"""Rules of reduce and of batch normalization."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


@sharding_rule
def reduce(instruction: Instruction) -> ShardingRule:
    """Reduced dimensions are reductions, the others pass; initial values have no dimensions."""
    builder, dimensions = FactorBuilder(instruction), instruction.attributes.dimensions
    count, out = len(builder.operands) // 2, 0
    for dim, size in enumerate(builder.operands[0]):
        if dim in dimensions:
            builder.add(size, [dim] * count, (), "reduction")
        else:
            builder.add(size, [dim] * count, [out] * len(builder.results))
            out += 1
    return builder.rule()


def normalized(instruction: Instruction, kind: FactorKind) -> ShardingRule:
    """The features pass in all arrays, the other dimensions in those of full rank."""
    builder, feature = FactorBuilder(instruction), instruction.attributes.feature_index
    whole = builder.operands[0]
    for dim, size in enumerate(whole):
        small = 0 if dim == feature else None
        given, made = ([dim if dims == whole and n in full else small for n, dims in enumerate(arrays)]
                       for arrays, full in ((builder.operands, (0, 4)), (builder.results, (0,))))  # fmt: skip
        builder.add(size, given, made, "pass_through" if dim == feature else kind)
    return builder.rule()


@sharding_rule
def batch_norm_inference(instruction: Instruction) -> ShardingRule:
    return normalized(instruction, "pass_through")


@sharding_rule
def batch_norm_training(instruction: Instruction) -> ShardingRule:
    return normalized(instruction, "need_replication")


@sharding_rule
def batch_norm_grad(instruction: Instruction) -> ShardingRule:
    return normalized(instruction, "need_replication")
