"""What a loop or a call hands on as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.graph import Computation, Instruction
from ...properties.effects import remembered
from .analysis import SAME, Leaf, Reading

_MOST_NESTED = 64

Unchanged = bool | tuple[Any, ...]  # of a leaf whether it is handed on; of a tuple that of its elements


def carried_unchanged(body: Computation, state: Reading, change: Callable[[Reading], Reading]) -> Reading:
    """The state of a loop's trips: what the body plainly hands on is what came in, the rest is changed."""
    return _mixed(unchanged(body), state, change)


def _mixed(kept: Unchanged, state: Reading, change: Callable[[Reading], Reading]) -> Reading:
    if isinstance(kept, bool):
        return state if kept else change(state)
    return tuple(_mixed(inner, each, change) for inner, each in zip(kept, state, strict=True))


@remembered
def unchanged(body: Computation) -> Unchanged:
    """Which parts of its one parameter a body gives back, as it is written: by elements and tuples alone."""
    return _kept(body.root, (), 0)


def _kept(value: Instruction, at: tuple[int, ...], depth: int) -> Unchanged:
    value = _behind(value)
    if value.opcode == "tuple" and depth < _MOST_NESTED:
        return tuple(_kept(each, (*at, n), depth + 1) for n, each in enumerate(value.operands))
    return _place(value) == at


def _behind(value: Instruction) -> Instruction:
    while value.opcode in SAME:
        value = value.operands[0]
    return value


def _place(value: Instruction) -> tuple[int, ...] | None:
    """Where in the parameter a value stands; None where it is something else."""
    at: list[int] = []
    while value.opcode == "get_tuple_element":
        at.insert(0, value.attributes.index)
        value = _behind(value.operands[0])
    return tuple(at) if value.opcode == "parameter" else None


def replaced(result: Reading, before: Sequence[Leaf], given: Sequence[Leaf]) -> Reading:
    """What a call gives of other arguments, by what it gave before: the argument itself where it handed that on."""
    return _replaced(result, {id(old): new for old, new in zip(before, given, strict=True)})


def _replaced(result: Reading, new: Mapping[int, Leaf]) -> Reading:
    if isinstance(result, tuple):
        return tuple(_replaced(each, new) for each in result)
    return new[id(result)] if id(result) in new else type(result)(result.labels, result.formula)
