"""Operands of ops that compute in a wider type, which XLA's conversion from MLIR does not widen itself."""

from __future__ import annotations

from shape_inference import Shape, leaves

from ....core.graph import Instruction
from .types import type_text
from .writer import Writer


def accumulated(writer: Writer, instruction: Instruction, *, with_updates: bool = False) -> tuple[list[str], list[str]]:
    """Names and types of operands, each converted to the type of its result; updates stand after the indices."""
    names, types = writer.flat(instruction.operands), writer.types(instruction.operands)
    results = list(leaves(instruction.shape))
    for number, result in enumerate(results):
        for place in (number, number + len(results) + 1) if with_updates else (number,):
            shape = instruction.operands[place].shape
            assert isinstance(shape, Shape)
            assert isinstance(result, Shape)
            if shape.dtype is not result.dtype:
                given, types[place] = types[place], type_text(shape.with_dtype(result.dtype))
                text = f"stablehlo.convert {names[place]} : ({given}) -> {types[place]}"
                names[place] = writer.emit(f"{instruction.name}.wide", text)
    return names, types
