"""Rules of products: batch dimensions and free ones pass, contracted ones are reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from shape_inference.ops.contraction import before
from shape_inference.types import Dims

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule

Meeting: TypeAlias = tuple["int | None", "int | None", "int | None"]
"""The dimensions of lhs, rhs and result that are one factor."""


def _meetings(attributes: Any, lhs: Dims, rhs: Dims, out: int = 0, group: Dims = ()) -> Iterator[Meeting]:
    """The factors of a product in the order of the result's dimensions, from `out` on, then those contracted."""
    batch = list(zip(attributes.lhs_batch_dims, attributes.rhs_batch_dims, strict=True))
    contracted = list(zip(attributes.lhs_contracting_dims, attributes.rhs_contracting_dims, strict=True))
    rows = [dim for dim in range(len(lhs)) if dim not in attributes.lhs_batch_dims + attributes.lhs_contracting_dims]
    paired = attributes.rhs_batch_dims + attributes.rhs_contracting_dims + group
    columns = [dim for dim in range(len(rhs)) if dim not in paired]
    free: list[tuple[int | None, int | None]] = [*batch, *((dim, None) for dim in rows), *((None, d) for d in columns)]
    for place, (left, right) in enumerate(free, out):
        yield left, right, place
    for left, right in contracted:
        yield left, right, None


@sharding_rule
def dot(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    lhs, rhs = builder.operands
    for left, right, out in _meetings(instruction.attributes, lhs, rhs):
        builder.add(_size(lhs, left, rhs, right), (left, right), (out,), _kind(out))
    return builder.rule()


def _size(lhs: Dims, left: int | None, rhs: Dims, right: int | None) -> int:
    return lhs[left] if left is not None else rhs[right or 0]


def _kind(out: int | None) -> FactorKind:
    return "reduction" if out is None else "pass_through"


@sharding_rule
def ragged_dot(instruction: Instruction) -> ShardingRule:
    """The ragged dimension and the groups are wanted whole, since sizes of groups count rows of the whole array."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    (ragged,), (lhs, rhs, groups) = attributes.lhs_ragged_dims, builder.operands
    outer = before(len(lhs), ragged, attributes.lhs_batch_dims, attributes.lhs_contracting_dims)
    rows = {dim: place for place, dim in enumerate(outer)} if len(groups) > 1 else {}
    first = 1 if ragged in attributes.lhs_contracting_dims else 0
    for left, right, out in _meetings(attributes, lhs, rhs, first, attributes.rhs_group_dims):
        kind: FactorKind = "need_replication" if left == ragged else _kind(out)
        builder.add(_size(lhs, left, rhs, right), (left, right, rows.get(-1 if left is None else left)), (out,), kind)
    return builder.rule()


@sharding_rule
def scaled_dot(instruction: Instruction) -> ShardingRule:
    """As a product; a scale has the factors of its operand, where it has an element for each element of that."""
    builder = FactorBuilder(instruction)
    lhs, rhs, left_scale, right_scale = builder.operands
    for left, right, out in _meetings(instruction.attributes, lhs, rhs):
        sides = ((left, lhs, left_scale), (right, rhs, right_scale))
        scaled = [(dim, own, scale) for dim, own, scale in sides if dim is not None and scale]
        is_split = any(scale[dim] not in (1, own[dim]) for dim, own, scale in scaled)
        places = [dim if dim is not None and scale and scale[dim] == own[dim] else None for dim, own, scale in sides]
        kind: FactorKind = "need_replication" if is_split else _kind(out)
        builder.add(_size(lhs, left, rhs, right), (left, right, *places), (out,), kind)
    return builder.rule()
