"""How often a while runs, where its state has a counter that says so."""

from __future__ import annotations

import math
import re
from typing import Any

from attrs import frozen

from shape_inference import Shape

from ..core.graph import Computation, Instruction
from .patterns import number_in

_NOTED = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d{1,18})')
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


@frozen
class Trips:
    """The element of the state that counts, where it starts, what a trip adds to it, and the number of trips."""

    index: int
    start: int
    step: int
    count: int


def trips_of(loop: Instruction) -> Trips | None:
    """The counter of a while whose number of trips follows from constants; None where there is none."""
    test, (init,) = loop.attributes.condition, loop.operands
    root = _behind(test.root)
    if root.opcode != "compare" or root.attributes.direction not in _MIRRORED:
        return None
    lhs, rhs = map(_behind, root.operands)
    for counter, bound, direction in (
        (lhs, rhs, root.attributes.direction),
        (rhs, lhs, _MIRRORED[root.attributes.direction]),
    ):
        found = _counted(loop.attributes.body, init, counter, bound, direction)
        if found is not None:
            return found
    return None


def _counted(
    body: Computation, init: Instruction, counter: Instruction, bound: Instruction, direction: str
) -> Trips | None:
    index = element_index(counter)
    if index is None:
        return None
    start, step, end = _integer(element(init, index)), _step(body, index), _bound(body, init, bound)
    if start is None or step is None or end is None or step == 0:
        return None
    count = _count(start, step, end, direction)
    return Trips(index, start, step, count) if count is not None else None


def _count(start: int, step: int, end: int, direction: str) -> int | None:
    """How often the test holds; None where it holds until the counter overflows."""
    if direction == "NE":
        trips, rest = divmod(end - start, step)
        return trips if rest == 0 and trips >= 0 else None
    sign = 1 if direction in ("LT", "LE") else -1
    distance = sign * (end - start) + (direction in ("LE", "GE"))
    if distance <= 0:
        return 0
    return math.ceil(distance / (sign * step)) if sign * step > 0 else None


def _bound(body: Computation, init: Instruction, bound: Instruction) -> int | None:
    """The number that the counter is compared with: a constant, or an element that no trip changes."""
    index = element_index(bound)
    if index is None:
        return _integer(bound)
    return _integer(element(init, index)) if is_invariant(body, (index,)) else None


def _step(body: Computation, index: int) -> int | None:
    """What a trip adds to an element of the state."""
    after = element(body.root, index)
    if after is None or after.opcode not in ("add", "subtract"):
        return None
    for this, other in (after.operands, after.operands[::-1]):
        if element_index(_behind(this)) == index:
            amount = _integer(_behind(other))
            if amount is None or (after.opcode == "subtract" and this is not after.operands[0]):
                return None
            return amount if after.opcode == "add" else -amount
    return None


def _behind(instruction: Instruction) -> Instruction:
    """What a copy or a barrier passes."""
    while instruction.opcode in ("copy", "opt_barrier"):
        (instruction,) = instruction.operands
    return instruction


def _integer(instruction: Instruction | None) -> int | None:
    """The integer that a constant is; None for anything else."""
    shape: Any = instruction.shape if instruction is not None else None
    if instruction is None or not isinstance(shape, Shape) or not shape.dtype.is_integer:
        return None
    number = number_in(_behind(instruction))
    return int(number) if number is not None else None


def element(value: Instruction | None, index: int) -> Instruction | None:
    """The instruction that an element of a tuple is; None where that is not seen."""
    if value is None:
        return None
    value = _behind(value)
    return _behind(value.operands[index]) if value.opcode == "tuple" else None


def element_index(instruction: Instruction) -> int | None:
    """The index of an element of the one parameter; None for anything else."""
    if instruction.opcode == "get_tuple_element" and instruction.operands[0].opcode == "parameter":
        return instruction.attributes.index  # type: ignore[no-any-return]
    return None


def path_of(instruction: Instruction) -> tuple[int, tuple[int, ...]] | None:
    """The parameter and the path in it that an instruction is an element of; None for anything else."""
    path: list[int] = []
    instruction = _behind(instruction)
    while instruction.opcode == "get_tuple_element":
        path.append(instruction.attributes.index)
        instruction = _behind(instruction.operands[0])
    return (instruction.attributes.number, tuple(reversed(path))) if instruction.opcode == "parameter" else None


def is_invariant(body: Computation, path: tuple[int, ...], number: int = 0) -> bool:
    """Whether a loop hands on a leaf of its state as it is."""
    value, rest = body.root, list(path)
    while rest and _behind(value).opcode == "tuple":
        value = _behind(value).operands[rest.pop(0)]
    found = path_of(value)
    return found is not None and found == (number, tuple(path[: len(path) - len(rest)]))


def noted_trips(loop: Instruction) -> int | None:
    """The number of trips that a compiler has noted in `backend_config`; None where it has noted none."""
    found = _NOTED.search(str(loop.annotations.get("backend_config") or ""))
    return int(found[1]) if found else None
