"""Ops on tuples and tokens: tuples are dissolved, and what is the value of its operand is no op."""

from __future__ import annotations

from ....core.graph import Instruction
from ..support.refusals import refuse
from ..support.tables import lines, values
from ..support.writer import Tree, Writer, shaped

Line = tuple[str, str]


@values
def tuple_(writer: Writer, instruction: Instruction) -> Tree:
    """Its elements are values of their own; no op is written."""
    return tuple([writer.names[each] for each in instruction.operands])


@values
def get_tuple_element(writer: Writer, instruction: Instruction) -> Tree:
    """The element is a value of its own; no op is written."""
    tree = writer.names[instruction.operands[0]]
    if isinstance(tree, str):
        refuse(instruction, "it takes a part of what is under way, which in StableHLO is one future")
    index: int = instruction.attributes.index
    return tree[index]


@values
def domain(writer: Writer, instruction: Instruction) -> Tree:
    """The operand itself; no op is written."""
    return writer.names[instruction.operands[0]]


@lines
def after_all(writer: Writer, instruction: Instruction) -> Line:
    names = writer.flat(instruction.operands)
    return f"stablehlo.after_all{' ' * bool(names)}{', '.join(names)}", writer.type(instruction.shape)


@values
def opt_barrier(writer: Writer, instruction: Instruction) -> Tree:
    """Of no value it is no op."""
    types = writer.types(instruction.operands)
    if not types:
        return writer.names[instruction.operands[0]]
    writer.define(instruction, *_barrier(writer.flat(instruction.operands), types))
    return writer.names[instruction]


@values
def add_dependency(writer: Writer, instruction: Instruction) -> Tree:
    """`stablehlo.optimization_barrier` of the operand and the token, which keeps the order."""
    operand, _ = instruction.operands
    names, types = writer.flat(instruction.operands), writer.types(instruction.operands)
    head, told = _barrier(names, types)
    found = writer.pack(instruction.name, len(names), f"{head} : {told}", instruction)
    return shaped(operand.shape, found)


def _barrier(names: list[str], types: list[str]) -> Line:
    return f"stablehlo.optimization_barrier {', '.join(names)}", ", ".join(types)
