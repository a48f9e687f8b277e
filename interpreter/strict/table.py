"""The table `strict`, which has for each op the rule that finds clamped, dropped, out-of-range and undefined values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import RuleTable
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

strict = RuleTable("strict")
"""Maps an opcode to a function that yields the Spotted of an Evaluation; ops without a rule have no findings."""


@frozen
class Evaluation:
    """One evaluation of an instruction: its operands as the op's rules take them, its result, and its device."""

    instruction: Instruction
    operands: tuple[Any, ...]
    result: Any
    device: Any = None

    @property
    def attributes(self) -> Any:
        return self.instruction.attributes


@frozen
class Spotted:
    """A finding of a rule at one element: its kind, its description, and the number of further elements.

    `part` distinguishes findings of one kind at one instruction: the dimension of an index or the element of a tuple.
    """

    kind: str
    what: str
    index: tuple[int, ...] | None = None
    values: tuple[tuple[str, Any], ...] = ()
    further: int = 0
    part: int = 0


def first(mask: Array) -> tuple[tuple[int, ...], int] | None:
    """The index of the first true element of a mask and the number of further ones; None if no element is true."""
    count = int(np.count_nonzero(mask))
    if not count:
        return None
    index = np.unravel_index(int(np.argmax(mask)), np.shape(mask))
    return tuple(int(place) for place in index), count - 1


def at_elements(it: Evaluation, kind: str, mask: Array, what: str) -> Iterator[Spotted]:
    """A finding at the first true element of a mask, with the operands' values there; `what` may contain {result}."""
    found = first(mask)
    if found is None:
        return
    index, further = found
    values = tuple((name, element(value, index, mask)) for name, value in named(it) if value is not None)
    yield Spotted(kind, what.format(result=element(it.result, index, mask)), index, values, further)


def element(value: Any, index: tuple[int, ...], mask: Array) -> Any:
    """The element of a value at an index of the mask; a scalar is broadcast to the mask."""
    return np.broadcast_to(value, np.shape(mask))[index]


def named(it: Evaluation) -> Iterator[tuple[str, Any]]:
    """The operands with the names that the op declares; operands of a list are numbered."""
    from xbuild.core.op import OPS

    for name, operand in zip(OPS[it.instruction.opcode].operands, it.operands, strict=True):
        if isinstance(operand, tuple):
            yield from ((f"{name}[{n}]", each) for n, each in enumerate(operand))
        else:
            yield name, operand
