"""Ops that apply a computation on scalars: reduce, map."""

from __future__ import annotations

from shape_inference import PrimitiveType, Shape, leaves

from ....core.graph import Instruction
from ..support.blocks import applied, body, named_parameters, region
from ..support.notes import notes_text
from ..support.tables import lines, values
from ..support.words import integers, listed
from ..support.writer import Tree, Writer

Line = tuple[str, str]


@values
def reduce(writer: Writer, instruction: Instruction) -> Tree:
    """Where the reducer is one op of one type, its name stands for the region."""
    a = instruction.attributes
    operands, inits = instruction.arguments()
    across = f"across dimensions = {listed(a.dimensions)}{notes_text(writer, instruction)}"
    types = writer.signature(instruction)
    word = applied(a.to_apply, _types(instruction)) if len(operands) == 1 else None
    if word:
        head = f"stablehlo.reduce({writer.name(operands[0])} init: {writer.name(inits[0])}) applies {word} {across}"
        return writer.results(instruction, f"{head} : {types}")
    pairs = ", ".join(f"({writer.name(x)} init: {writer.name(v)})" for x, v in zip(operands, inits, strict=True))
    return writer.results(
        instruction, f"stablehlo.reduce{pairs} {across} : {types}\n{_reducer(writer, instruction, len(operands))}"
    )


def _types(instruction: Instruction) -> set[PrimitiveType]:
    """The element types of operands and result."""
    found = (leaf for each in (*instruction.operands, instruction) for leaf in leaves(each.shape))
    return {leaf.dtype for leaf in found if isinstance(leaf, Shape)}


def _reducer(writer: Writer, instruction: Instruction, count: int) -> str:
    """The region, with each pair of its arguments in parentheses."""
    to_apply = instruction.attributes.to_apply
    parameters = list(named_parameters(writer, to_apply))
    typed = [text for _, texts in parameters for text in texts]
    pairs = " ".join(f"({typed[n]}, {typed[n + count]})" for n in range(count))
    return f"{writer.indent} reducer{pairs} {body(writer, to_apply, [tree for tree, _ in parameters])}"


@lines
def map(writer: Writer, instruction: Instruction) -> Line:
    a = instruction.attributes
    head = f'"stablehlo.map"({", ".join(writer.flat(instruction.operands))})'
    text = f"{head} <{{dimensions = {integers(a.dimensions)}}}> ({region(writer, a.to_apply)})"
    return text, writer.signature(instruction)
