"""Ops that draw random numbers."""

from __future__ import annotations

from ....core.graph import Instruction
from ...spelling.choices import ALGORITHMS, DISTRIBUTIONS
from ..support.tables import lines
from ..support.words import listed
from ..support.writer import Writer

Line = tuple[str, str]


@lines
def rng(writer: Writer, instruction: Instruction) -> Line:
    """The extents are a constant operand."""
    a = instruction.attributes
    vector = f"tensor<{a.shape.rank}xi64>"
    literal = listed(a.shape.dims) if a.shape.dims else ""
    sizes = writer.emit(f"{instruction.name}.sizes", f"stablehlo.constant dense<{literal}> : {vector}")
    first, second = instruction.operands
    types = f"({writer.type(first.shape)}, {writer.type(second.shape)}, {vector}) -> {writer.type(instruction.shape)}"
    head = f"stablehlo.rng {writer.name(first)}, {writer.name(second)}, {sizes}"
    return f"{head}, distribution = {DISTRIBUTIONS[a.distribution]}", types


@lines
def rng_bit_generator(writer: Writer, instruction: Instruction) -> Line:
    head = f"stablehlo.rng_bit_generator {writer.name(instruction.operands[0])}"
    return f"{head}, algorithm = {ALGORITHMS[instruction.attributes.algorithm]}", writer.signature(instruction)
