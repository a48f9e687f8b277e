"""`Work`, the operations of an instruction, and the tables of rules that count operations and bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.rules import RuleTable

from ..core.graph import Computation, Instruction
from .memory.parts import stored_bytes

POINTER = 8
"""Bytes of an element of a tuple's table of pointers, which is what reading a tuple as a whole takes."""


EXTENT = 4
"""Bytes in which a bounded array notes one of its extents."""


@frozen
class Work:
    """Operations: `flops` are additions, multiplications, comparisons and the like, of whatever element type; a
    multiplication followed by an addition counts as two. `transcendentals` are values of exp, log, sine and the like.
    """

    flops: int = 0
    transcendentals: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.transcendentals + other.transcendentals)

    def __mul__(self, times: int) -> Work:
        return Work(self.flops * times, self.transcendentals * times)


NO_WORK = Work()

WorkOf: TypeAlias = Callable[[Computation], Work]

work_rules = RuleTable("work")
"""opcode -> rule(instruction, work_of): the Work of an instruction; `work_of` gives that of a called computation."""

read_rules = RuleTable("bytes read")
"""opcode -> rule(instruction): bytes read of each operand, where an op does not read each operand whole."""

written_rules = RuleTable("bytes written")
"""opcode -> rule(instruction): bytes written, where an op does not write its whole result."""


def elements(value: Instruction) -> int:
    """The number of elements of an array; 0 of a tuple or token."""
    return value.shape.size if isinstance(value.shape, Shape) else 0


@lru_cache(maxsize=4096)
def leaf_bytes(shape: AnyShape) -> int:
    """Bytes of all arrays in a shape; a type of less than 8 bits takes a byte, a bounded array notes its extents."""
    if isinstance(shape, TupleShape):
        return sum(map(leaf_bytes, shape.elements))
    if not isinstance(shape, Shape):
        return 0
    return stored_bytes(shape) + (EXTENT * shape.rank if shape.is_dynamic else 0)


def operand_bytes(shape: AnyShape) -> int:
    """The bytes that reading an operand takes: of an array its elements, of a tuple its table of pointers."""
    return POINTER * len(shape.elements) if isinstance(shape, TupleShape) else leaf_bytes(shape)
