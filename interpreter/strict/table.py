"""The table `strict`: for each op the rule that finds clamped, dropped, out-of-range and undefined values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import RuleTable
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

strict = RuleTable("strict")
"""Opcode -> a function of an Evaluation that yields what it spots; an op without a rule loses nothing."""


@frozen
class Evaluation:
    """One evaluation of an instruction: its operands as the op's rules take them, what it gave, and on which device."""

    instruction: Instruction
    operands: tuple[Any, ...]
    result: Any
    device: Any = None

    @property
    def attributes(self) -> Any:
        return self.instruction.attributes


@frozen
class Spotted:
    """What a rule has found at one element: a kind, what happened in words, and how many more there are.

    `part` tells findings of one kind at one instruction apart: the dimension of an index, the element of a tuple.
    """

    kind: str
    what: str
    index: tuple[int, ...] | None = None
    values: tuple[tuple[str, Any], ...] = ()
    further: int = 0
    part: int = 0


def first(mask: Array) -> tuple[tuple[int, ...], int] | None:
    """Where a mask is first true, and how often after that; None where it never is."""
    count = int(np.count_nonzero(mask))
    if not count:
        return None
    index = np.unravel_index(int(np.argmax(mask)), np.shape(mask))
    return tuple(int(place) for place in index), count - 1


def at_elements(it: Evaluation, kind: str, mask: Array, what: str) -> Iterator[Spotted]:
    """The first element where a mask is true, with what each operand has there and the result; {result} in `what`."""
    found = first(mask)
    if found is None:
        return
    index, further = found
    values = tuple((name, element(value, index, mask)) for name, value in named(it) if value is not None)
    yield Spotted(kind, what.format(result=element(it.result, index, mask)), index, values, further)


def element(value: Any, index: tuple[int, ...], mask: Array) -> Any:
    """What stands at an index of a value, or of a scalar that stands for all of them."""
    return np.broadcast_to(value, np.shape(mask))[index]


def named(it: Evaluation) -> Iterator[tuple[str, Any]]:
    """The operands under the names that the op declares, those of a list numbered."""
    from xbuild.core.op import OPS

    for name, operand in zip(OPS[it.instruction.opcode].operands, it.operands, strict=True):
        if isinstance(operand, tuple):
            yield from ((f"{name}[{n}]", each) for n, each in enumerate(operand))
        else:
            yield name, operand
