"""Check of `output_to_operand_aliasing`: the pairs of an output and an operand that share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .rules import refuse
from .types import AnyShape, Dims, TupleShape

Aliases: TypeAlias = Sequence[tuple[Dims, int, Dims]]


def check_aliases(aliases: Aliases, operands: Sequence[AnyShape]) -> None:
    """Refuse an alias whose operand does not exist, or whose tuple index does not exist in the operand."""
    for output, number, index in aliases:
        where = f"output_to_operand_aliasing pairs output {list(output)} with operand {number}"
        if not 0 <= number < len(operands):
            refuse("index_out_of_range", f"{where}, and there are {len(operands)} operands")
        shape = operands[number]
        for step in index:
            if not isinstance(shape, TupleShape) or not 0 <= step < len(shape):
                refuse("index_out_of_range", f"{where} at {list(index)}, and that operand is {operands[number]}")
            shape = shape.elements[step]
