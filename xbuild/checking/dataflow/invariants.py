"""Elements of a state that no trip of a loop changes, and arguments that a call returns unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.graph import Computation, Instruction
from ...properties.effects import IDENTITIES, remembered
from .analysis import Leaf, Reading

_MOST_NESTED = 64

Unchanged = bool | tuple[Any, ...]  # whether a leaf is unchanged; of a tuple, whether each element is


def carried_unchanged(body: Computation, state: Reading, change: Callable[[Reading], Reading]) -> Reading:
    """The state inside a loop: elements that the body returns unchanged stay, `change` is applied to the others."""
    return _mixed(unchanged(body), state, change)


def _mixed(kept: Unchanged, state: Reading, change: Callable[[Reading], Reading]) -> Reading:
    if isinstance(kept, bool):
        return state if kept else change(state)
    return tuple(_mixed(inner, each, change) for inner, each in zip(kept, state, strict=True))


@remembered
def unchanged(body: Computation) -> Unchanged:
    """Which elements of its one parameter a body returns unchanged, as far as tuples and their elements show."""
    return _kept(body.root, (), 0)


def _kept(value: Instruction, at: tuple[int, ...], depth: int) -> Unchanged:
    value = _behind(value)
    if value.opcode == "tuple" and depth < _MOST_NESTED:
        return tuple(_kept(each, (*at, n), depth + 1) for n, each in enumerate(value.operands))
    return _place(value) == at


def _behind(value: Instruction) -> Instruction:
    while value.opcode in IDENTITIES:
        value = value.operands[0]
    return value


def _place(value: Instruction) -> tuple[int, ...] | None:
    """The index of a value in the parameter; None where the value is no element of it."""
    at: list[int] = []
    while value.opcode == "get_tuple_element":
        at.insert(0, value.attributes.index)
        value = _behind(value.operands[0])
    return tuple(at) if value.opcode == "parameter" else None


def replaced(result: Reading, before: Sequence[Leaf], given: Sequence[Leaf]) -> Reading:
    """The result of an earlier call for new arguments: a returned argument is replaced, other leaves are new values."""
    return _replaced(result, {id(old): new for old, new in zip(before, given, strict=True)})


def _replaced(result: Reading, new: Mapping[int, Leaf]) -> Reading:
    if isinstance(result, tuple):
        return tuple(_replaced(each, new) for each in result)
    return new[id(result)] if id(result) in new else type(result)(result.labels, result.formula)
