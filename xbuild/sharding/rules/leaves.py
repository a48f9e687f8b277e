"""Rules of ops without operands, or with scalars alone: the result may be cut in any way."""

from __future__ import annotations

from ...core.graph import Instruction
from ...core.op import opcodes
from ..factors import ShardingRule
from .builder import FactorBuilder
from .table import sharding_rule


def made(instruction: Instruction) -> ShardingRule:
    """A factor for each dimension of the result; dimensions of operands are wanted whole."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.results[0]):
        builder.add(size, (), (dim,))
    return builder.rule()


for opcode in sorted(opcodes(lambda op: op.elements == "made" and op.depends_on != "caller")):
    sharding_rule.enter(opcode, made)


@sharding_rule
def rng_bit_generator(instruction: Instruction) -> ShardingRule:
    """The state goes through and is wanted whole; the bits may be cut."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.operands[0]):
        builder.add(size, (dim,), (dim,), "need_replication", is_blocked=True)
    for dim, size in enumerate(builder.results[-1]):
        builder.add(size, (), (None, dim))
    return builder.rule()
