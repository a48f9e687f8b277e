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


def pairwise_reducers(computation: Computation) -> tuple[str, ...] | None:
    """The op of each pair of parameters, where a reducer folds several operands side by side; None where it is more."""
    root, parameters = computation.root, computation.parameters
    parts = root.operands if root.opcode == "tuple" else (root,)
    count = len(parameters) // 2
    if len(parts) != count:
        return None
    found = []
    for n, part in enumerate(parts):
        pair = parameters[n], parameters[count + n]
        if part.operands not in (pair, pair[::-1]) or not OPS[part.opcode].is_flat:
            return None
        found.append(part.opcode)
    return tuple(found)


def selects_pairs(computation: Computation) -> bool:
    """Whether a reducer chooses one of two pairs of a value and an index: argmax and the like."""
    root, parameters = computation.root, computation.parameters
    if root.opcode != "tuple" or len(root.operands) != 2 or len(parameters) != 4:
        return False
    return all(
        {*part.operands[-2:]} == {parameters[n], parameters[n + 2]} and part.opcode in ("select", "maximum", "minimum")
        for n, part in enumerate(root.operands)
    )
