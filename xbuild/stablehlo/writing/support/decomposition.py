"""Ops that StableHLO lacks, written as other ops: recorded by a builder, then written in place."""

from __future__ import annotations

from collections.abc import Callable

from ....core.builder import Builder, Value
from ....core.graph import Instruction
from ....core.op import OPS
from ....ops.leaves import parameter
from .blocks import inlined
from .writer import Tree, Writer


def decomposed(writer: Writer, instruction: Instruction, recorded: Callable[..., Value]) -> Tree:
    """Write what `recorded` records, given the operands and attributes as the op's declaration has them."""
    builder = Builder(instruction.opcode)
    given = tuple(parameter(builder, number=n, shape=each.shape) for n, each in enumerate(instruction.operands))
    arguments = OPS[instruction.opcode].unflatten(given, instruction.segments)
    computation = builder.build(recorded(*arguments, **instruction.attribute_values()))
    return inlined(writer, computation, [writer.names[each] for each in instruction.operands])
