"""What is known of an instruction from how it is written: a number, a number that is spread, a known reducer."""

from __future__ import annotations

from typing import Any

from shape_inference import Shape

from ..core.graph import Computation, Instruction
from ..core.op import OPS


def number_in(instruction: Instruction) -> Any:
    """The number that every element is, where an instruction is a constant number or one that is spread; else None."""
    scalar = spread(instruction)
    if scalar is None or scalar.opcode != "constant":
        return None
    return scalar.attributes.literal.reshape(-1)[0]


def spread(instruction: Instruction) -> Instruction | None:
    """The scalar that every element of an array repeats, or that it is."""
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return None
    while instruction.opcode == "broadcast":
        (instruction,) = instruction.operands
    return instruction if isinstance(instruction.shape, Shape) and instruction.shape.rank == 0 else None


def reducer_of(computation: Computation) -> str | None:
    """The one op of its two parameters that a computation is, such as add; None where it is more."""
    root, parameters = computation.root, computation.parameters
    if root.opcode == "tuple" and len(root.operands) == 1:
        root = root.operands[0]
    if len(parameters) == 2 and root.operands in (parameters, parameters[::-1]) and OPS[root.opcode].is_flat:
        return root.opcode
    return None


def is_selection(computation: Computation) -> str | None:
    """The direction in which a computation compares its two parameters; None where it is more."""
    root = computation.root
    if root.opcode == "compare" and root.operands == computation.parameters:
        return root.attributes.direction  # type: ignore[no-any-return]
    return None
