"""Rules of collectives among devices that exist already: what they gather or cut is wanted whole."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


def _but(instruction: Instruction, dims: tuple[int, ...]) -> ShardingRule:
    """Each operand goes with its result; the dimensions `dims` of both are wanted whole, each for itself."""
    builder = FactorBuilder(instruction)
    if len(builder.operands) != len(builder.results):
        return builder.rule()
    for number, (given, result) in enumerate(zip(builder.operands, builder.results, strict=True)):
        before = [None] * number
        for dim, size in enumerate(given):
            if dim in dims:
                builder.add(size, (*before, dim), (), "need_replication")
                builder.add(result[dim], (), (*before, dim), "need_replication")
            else:
                builder.add(size, (*before, dim), (*before, dim))
    return builder.rule()


@sharding_rule
def all_reduce(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def collective_permute(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def collective_broadcast(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def all_gather(instruction: Instruction) -> ShardingRule:
    return _but(instruction, (instruction.attributes.all_gather_dimension,))


@sharding_rule
def reduce_scatter(instruction: Instruction) -> ShardingRule:
    return _but(instruction, (instruction.attributes.scatter_dimension,))


@sharding_rule
def all_to_all(instruction: Instruction) -> ShardingRule:
    cut, grown = instruction.attributes.split_dimension, instruction.attributes.concat_dimension
    return _but(instruction, () if cut is None else (cut, grown))


@sharding_rule
def ragged_all_to_all(instruction: Instruction) -> ShardingRule:
    """Rows are wanted whole; the other dimensions of operand, output and result pass."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.results[0]):
        if dim:
            builder.add(size, (dim, dim), (dim,))
        else:
            builder.add(size, (None, dim), (dim,), "need_replication")
    return builder.rule()
