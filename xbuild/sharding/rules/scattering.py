"""The rule of scatter."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.graph import Computation, Instruction
from ...core.op import opcodes
from ..factors import FactorKind, ShardingRule
from .builder import FactorBuilder
from .indexing import Indexing
from .table import sharding_rule

_IN_ANY_ORDER = opcodes(lambda op: op.order == "any")


@sharding_rule
def scatter(instruction: Instruction) -> ShardingRule:
    """Batch dimensions and whole windows pass; updates of several index vectors are a reduction, where their order is
    free. A dimension that index vectors choose from passes between operand and result: a device takes the updates of
    what it holds. Index vectors are wanted whole, and so is a dimension of which a window has a part.
    """
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    count = len(builder.results)
    indexing = Indexing(
        builder.operands[0],
        builder.operands[count],
        builder.operands[-1],
        attributes.index_vector_dim,
        attributes.update_window_dims,
        attributes.inserted_window_dims,
        attributes.input_batching_dims,
        attributes.scatter_indices_batching_dims,
    )
    free: FactorKind = "reduction" if reducer_of(attributes.to_apply) is not None else "need_replication"
    for size, own, dim, update in indexing.factors():
        kind = free if own is None else "pass_through"
        builder.add(size, _operands(count, own, dim, update), [own] * count, kind)
    for dim in indexing.parts():
        builder.add(indexing.operand[dim], _operands(count, dim, None, None), [dim] * count, "need_replication")
    for dim in indexing.collapsed:
        builder.add(indexing.operand[dim], _operands(count, dim, None, None), [dim] * count)
    return builder.rule()


def _operands(count: int, own: int | None, index: int | None, update: int | None) -> Sequence[int | None]:
    return [*[own] * count, index, *[update] * count]


def reducer_of(computation: Computation) -> str | None:
    """The opcode of a computation that combines its two parameters by one op, in any order; None of another."""
    root = computation.root
    taken = set(root.operands) == set(computation.parameters) and len(computation.parameters) == 2
    return root.opcode if taken and root.opcode in _IN_ANY_ORDER else None
