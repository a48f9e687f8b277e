"""Rules of custom calls, by their targets."""

from __future__ import annotations

from ...core.graph import Instruction
from ..factors import ShardingRule
from .builder import FactorBuilder, pointwise
from .table import sharding_rule

_ALIKE = frozenset({
    "LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "X64Combine", "annotate_device_placement", "mhlo.erf",
})  # fmt: skip
"""Targets whose result has the extents of each operand, element for element."""

_ALONG_LAST = frozenset({"ApproxTopK", "PartialReduce", "TopK", "mhlo.topk"})
"""Targets that choose along the last dimension; the others are batch dimensions."""

_OF_MATRICES = ("lapack_", "Cholesky", "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "InvertDiagBlocks")
"""How targets begin that work on matrices, the last two dimensions; the others are batch dimensions."""


@sharding_rule
def custom_call(instruction: Instruction) -> ShardingRule | None:
    """The rule of a target that is known; None of others: nothing propagates."""
    target = instruction.attributes.custom_call_target
    if target in _ALIKE:
        return pointwise(instruction)
    if target in _ALONG_LAST:
        return batched(instruction, len(FactorBuilder(instruction).operands[0]) - 1)
    if target.startswith(_OF_MATRICES):
        return batched(instruction, len(FactorBuilder(instruction).operands[0]) - 2)
    return None


def batched(instruction: Instruction, count: int) -> ShardingRule:
    """The first `count` dimensions pass, in all arrays that have them; all others are wanted whole."""
    builder = FactorBuilder(instruction)
    first = builder.operands[0]
    for dim, size in enumerate(first[: max(count, 0)]):
        given, made = (
            [dim if dims[: dim + 1] == first[: dim + 1] else None for dims in arrays]
            for arrays in (builder.operands, builder.results)
        )
        builder.add(size, given, made)
    return builder.rule()
