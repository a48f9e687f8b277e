"""Rules of decompositions, solvers and Fourier transforms: batch dimensions pass, the others are wanted whole."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder, pointwise
from .table import sharding_rule


@sharding_rule
def cholesky(instruction: Instruction) -> ShardingRule:
    batch = instruction.shape.rank - 2  # type: ignore[union-attr]
    return pointwise(instruction, lambda dim: "pass_through" if dim < batch else "need_replication")


@sharding_rule
def triangular_solve(instruction: Instruction) -> ShardingRule:
    """The dimension of `a` that meets `b`, the other one of `a`, which is the result's, and the free one of `b`."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    a, b = builder.operands
    rows, columns = len(a) - 2, len(a) - 1
    for dim, size in enumerate(a[:rows]):
        builder.alike(dim, size)
    is_turned = (attributes.transpose_a != "NO_TRANSPOSE") == attributes.left_side
    meeting, solved = (columns, rows) if is_turned else (rows, columns)
    own, free = (rows, columns) if attributes.left_side else (columns, rows)
    builder.add(a[meeting], (meeting, own), (), "need_replication")
    builder.add(b[free], (None, free), (free,), "need_replication")
    builder.add(a[solved], (solved, None), (own,), "need_replication")
    return builder.rule()


@sharding_rule
def fft(instruction: Instruction) -> ShardingRule:
    """Transformed dimensions need replication; the last is blocked where the transform changes its extent."""
    builder = FactorBuilder(instruction)
    first = len(builder.operands[0]) - len(instruction.attributes.fft_length)
    for dim, size in enumerate(builder.operands[0]):
        kind: FactorKind = "pass_through" if dim < first else "need_replication"
        builder.alike(dim, size, kind, is_blocked=size != builder.results[0][dim])
    return builder.rule()
