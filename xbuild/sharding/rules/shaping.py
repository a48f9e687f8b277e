"""Rules of ops that lay elements out anew: broadcast, reshape, transpose, bitcasts, concatenate, pad."""

from __future__ import annotations

import math

from shape_inference import Shape
from shape_inference.types import Dims

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder, blocked, pointwise
from .splitting import common_factors
from .table import sharding_rule


@sharding_rule
def broadcast(instruction: Instruction) -> ShardingRule:
    """Dimensions of the operand go to those of the result; new ones are the result's alone."""
    builder = FactorBuilder(instruction)
    source = {out: dim for dim, out in enumerate(instruction.attributes.dimensions)}
    for out, size in enumerate(builder.results[0]):
        dim = source.get(out)
        if dim is not None and builder.operands[0][dim] != size:
            dim = None
        builder.add(size, (dim,), (out,))
    return builder.rule()


@sharding_rule
def transpose(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    for out, dim in enumerate(instruction.attributes.permutation):
        builder.add(builder.results[0][out], (dim,), (out,))
    return builder.rule()


@sharding_rule
def reverse(instruction: Instruction) -> ShardingRule:
    turned = instruction.attributes.dimensions
    return pointwise(instruction, lambda dim: "permutation" if dim in turned else "pass_through")


@sharding_rule
def reshape(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    return _relaid(builder, range(len(builder.operands[0])), range(len(builder.results[0])))


@sharding_rule
def dynamic_reshape(instruction: Instruction) -> ShardingRule:
    return blocked(instruction)


@sharding_rule
def bitcast(instruction: Instruction) -> ShardingRule:
    """That of a reshape in the order of the layouts; nothing is known where the width of elements changes."""
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if source.size != target.size or source.is_dynamic:
        return blocked(instruction)
    return _relaid(FactorBuilder(instruction), _major_to_minor(source), _major_to_minor(target))


def _relaid(builder: FactorBuilder, source: Dims | range, target: Dims | range) -> ShardingRule:
    """The rule of elements that stay in order, where dimensions are read in these orders, the outermost first.

    Factors that one side alone has are wanted whole.
    """
    given, made = builder.operands[0], builder.results[0]
    if math.prod(given):
        for size, dim, out in common_factors([given[d] for d in source], [made[d] for d in target]):
            places = (None if dim is None else source[dim],), (None if out is None else target[out],)
            is_own = size > 1 and (dim is None or out is None)
            builder.add(size, *places, "need_replication" if is_own else "pass_through", is_blocked=is_own)
    return builder.rule()


def _major_to_minor(shape: Shape) -> Dims:
    return shape.layout.minor_to_major[::-1] if shape.layout else tuple(range(shape.rank))


@sharding_rule
def bitcast_convert(instruction: Instruction) -> ShardingRule:
    """Dimensions pass; the one in which an element of the wider type becomes several needs replication."""
    builder = FactorBuilder(instruction)
    given, made = builder.operands[0], builder.results[0]
    for dim, size in enumerate(given[: len(made)]):
        builder.alike(dim, size)
    for dim in range(len(made), len(given)):
        builder.add(given[dim], (dim,), (), "need_replication")
    for dim in range(len(given), len(made)):
        builder.add(made[dim], (), (dim,), "need_replication")
    return builder.rule()


@sharding_rule
def concatenate(instruction: Instruction) -> ShardingRule:
    """The joined dimension needs replication, with the result's extent as its size."""
    builder, joined = FactorBuilder(instruction), instruction.attributes.dimension
    for dim, size in enumerate(builder.results[0]):
        builder.alike(dim, size, "need_replication" if dim == joined else "pass_through")
    return builder.rule()


@sharding_rule
def pad(instruction: Instruction) -> ShardingRule:
    """Padded dimensions are permutations of the operand's extent."""
    builder = FactorBuilder(instruction)
    for dim, (size, padding) in enumerate(zip(builder.operands[0], instruction.attributes.padding, strict=True)):
        is_padded = padding.low or padding.high or padding.interior
        kind: FactorKind = "permutation" if is_padded else "pass_through"
        builder.add(size, (dim,), (dim,), kind)
    return builder.rule()


@sharding_rule
def set_dimension_size(instruction: Instruction) -> ShardingRule:
    bounded = instruction.attributes.dimension
    return pointwise(instruction, lambda dim: "need_replication" if dim == bounded else "pass_through")
