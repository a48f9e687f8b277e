"""The table of reasons: for each op a function that says, in numbers, why an instruction has its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from shape_inference import AnyShape, RuleTable, Shape
from shape_inference.types import Dims

from ...core.graph import Instruction

Lines: TypeAlias = Iterator[str]
Reason: TypeAlias = Callable[[Instruction], Lines]

reasons = RuleTable("reason of its shape")


def entered(opcodes: Iterable[str]) -> Callable[[Reason], Reason]:
    """A decorator that enters one function for several ops."""

    def enter(reason: Reason) -> Reason:
        for opcode in opcodes:
            reasons.enter(opcode, reason)
        return reason

    return enter


def dims_of(shape: AnyShape) -> Dims:
    assert isinstance(shape, Shape)
    return shape.dims


def row(dim: int, extent: object, why: str) -> str:
    """The line of one dimension: its extent, with the sum that gives it where there is one, and where that is from."""
    return f"dimension {dim}: {extent}, {why}"


def as_operand(instruction: Instruction, number: int = 0) -> Lines:
    """The lines of an op whose result has the dimensions of an operand."""
    operand = instruction.operands[number]
    yield f"the dimensions of {operand.name}, {operand.shape}"


def product(extents: Iterable[int]) -> str:
    """The text of a product with its value, as `2 * 3 = 6`."""
    given, total = list(extents), 1
    for each in given:
        total *= each
    return f"{' * '.join(map(str, given))} = {total}" if len(given) > 1 else str(total)
