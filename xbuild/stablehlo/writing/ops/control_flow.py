"""Ops that call computations: regions for loops and branches, functions for calls, fusions in place."""

from __future__ import annotations

from shape_inference import Shape, leaves, pred

from ....core.graph import Instruction
from ..support.blocks import body, inlined, region
from ..support.notes import notes_of, notes_text
from ..support.tables import lines, values
from ..support.words import dictionary, flag, symbol
from ..support.writer import Tree, Writer, flat, shaped

Line = tuple[str, str]


@lines
def call(writer: Writer, instruction: Instruction) -> Line:
    """The computation is a function."""
    function = symbol(writer.call(instruction.attributes.to_apply))
    return f"func.call {function}({', '.join(writer.flat(instruction.operands))})", writer.signature(instruction)


@values
def fusion(writer: Writer, instruction: Instruction) -> Tree:
    """The ops that are fused stand where the fusion is used."""
    return inlined(writer, instruction.attributes.calls, [writer.names[each] for each in instruction.operands])


@values
def while_(writer: Writer, instruction: Instruction) -> Tree:
    """The state is one value for each array and token; both regions name these alike."""
    a = instruction.attributes
    first = flat(writer.names[instruction.operands[0]])
    types = writer.types(instruction.operands)
    state = [writer.fresh("iterArg") for _ in first]
    tree = shaped(instruction.shape, state)
    begun = ", ".join(f"{name} = {value}" for name, value in zip(state, first, strict=True))
    notes = [*notes_of(instruction)]
    attributes = f" attributes {dictionary(notes)}" if notes else ""
    head = f"stablehlo.while({begun}){' : ' * bool(types)}{', '.join(types)}{attributes}"
    condition = body(writer, a.condition, [tree])
    return writer.results(instruction, f"{head}\n{writer.indent}cond {condition} do {body(writer, a.body, [tree])}")


@values
def conditional(writer: Writer, instruction: Instruction) -> Tree:
    """Of pred it is `stablehlo.if`; branches capture their operands."""
    index, *operands = instruction.operands
    assert isinstance(index.shape, Shape)
    op = "if" if index.shape.dtype is pred else "case"
    branches = zip(instruction.attributes.branch_computations, operands, strict=True)
    regions = ", ".join(body(writer, branch, [writer.names[operand]]) for branch, operand in branches)
    types = ", ".join(writer.types((instruction,)))
    count = len(list(leaves(instruction.shape)))
    text = f'"stablehlo.{op}"({writer.name(index)}) ({regions}){notes_text(writer, instruction)}'
    result = types if count == 1 else f"({types})"
    return writer.results(instruction, f"{text} : ({writer.type(index.shape)}) -> {result}")


@lines
def scan(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    names = writer.flat(instruction.operands)
    inputs, outputs = len(names) - a.num_carries, len(writer.types((instruction,))) - a.num_carries
    words = ", ".join(
        (
            f"dimension = {a.dimension} : i64",
            f"is_associative = {flag(a.is_associative)}",
            f"is_reverse = {flag(a.is_reverse)}",
            f"operandSegmentSizes = array<i32: {inputs}, {a.num_carries}>",
            f"resultSegmentSizes = array<i32: {outputs}, {a.num_carries}>",
        )
    )
    return f'"chlo.scan"({", ".join(names)}) <{{{words}}}> ({region(writer, a.to_apply)})', writer.signature(
        instruction
    )
