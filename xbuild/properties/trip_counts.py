"""Trip counts of loops by constants, extents or annotations; endless loops; what no trip of a loop changes.

Sections:

    Loops that never end: their condition is constant
    Trip counts of a while, if its state has a counter
    A scan read as a loop: slices and carries, the number of slices, results
    What no trip of a loop changes
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from attrs import frozen

from shape_inference import Shape, TupleShape
from shape_inference.elided import ElidedArray
from shape_inference.trees import Path

from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from ..core.op import opcodes
from .patterns import number_in

# ----------------------------------------------------------------------------
# Loops that never end: their condition is constant


def never_ends(instruction: Instruction) -> bool:
    """Whether an instruction is a while whose condition is always true: a verdict covers one trip of it."""
    if instruction.opcode != "while":
        return False
    root = dict(instruction.regions())["condition"].root
    return root.opcode == "constant" and not isinstance(root.attributes.literal, ElidedArray) and _is_true(root)


def _is_true(constant: Instruction) -> bool:
    return bool(constant.attributes.literal.all())


# ----------------------------------------------------------------------------
# Trip counts of a while, if its state has a counter

_NOTED = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d{1,18})')
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


@frozen
class Trips:
    """The counter of a loop: its element of the state, its start, what a trip adds to it, and the trip count."""

    index: int
    start: int
    step: int
    count: int


def trips_of(loop: Instruction) -> Trips | None:
    """The counter of a while whose trip count follows from constants; None if there is none."""
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
    start, step, end = integer_in(element(init, index)), step_of(body, index), _bound(body, init, bound)
    if start is None or step is None or end is None or step == 0:
        return None
    count = _count(start, step, end, direction)
    return Trips(index, start, step, count) if count is not None else None


def _count(start: int, step: int, end: int, direction: str) -> int | None:
    """How often the condition holds; None if it holds until the counter overflows."""
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
        return integer_in(bound)
    return integer_in(element(init, index)) if is_invariant(body, (index,)) else None


def step_of(body: Computation, index: int) -> int | None:
    """What a trip adds to an element of the state."""
    after = element(body.root, index)
    if after is None or after.opcode not in ("add", "subtract"):
        return None
    for this, other in (after.operands, after.operands[::-1]):
        if element_index(_behind(this)) == index:
            amount = integer_in(_behind(other))
            if amount is None or (after.opcode == "subtract" and this is not after.operands[0]):
                return None
            return amount if after.opcode == "add" else -amount
    return None


_IDENTITIES = opcodes(lambda op: op.is_identity)


def _behind(instruction: Instruction) -> Instruction:
    """The value that copies and barriers pass on."""
    while instruction.opcode in _IDENTITIES:
        instruction = instruction.operands[0]
    return instruction


def integer_in(instruction: Instruction | None) -> int | None:
    """The integer of a constant; None for anything else."""
    shape: Any = instruction.shape if instruction is not None else None
    if instruction is None or not isinstance(shape, Shape) or not shape.dtype.is_integer:
        return None
    number = number_in(_behind(instruction))
    return int(number) if number is not None else None


def element(value: Instruction | None, index: int) -> Instruction | None:
    """The instruction that is an element of a tuple; None if that is not visible."""
    if value is None:
        return None
    value = _behind(value)
    return _behind(value.operands[index]) if value.opcode == "tuple" else None


def element_index(instruction: Instruction) -> int | None:
    """The index of an element of the one parameter; None for anything else."""
    if instruction.opcode == "get_tuple_element" and instruction.operands[0].opcode == "parameter":
        return instruction.attributes.index  # type: ignore[no-any-return]
    return None


def path_of(instruction: Instruction) -> tuple[int, Path] | None:
    """The parameter and the path in it that an instruction is an element of; None for anything else."""
    path: list[int] = []
    instruction = _behind(instruction)
    while instruction.opcode == "get_tuple_element":
        path.append(instruction.attributes.index)
        instruction = _behind(instruction.operands[0])
    return (instruction.attributes.number, tuple(reversed(path))) if instruction.opcode == "parameter" else None


def noted_trips(loop: Instruction) -> int | None:
    """The trip count that a compiler has noted in `backend_config`; None if it has noted none."""
    found = _NOTED.search(str(loop.annotations.get("backend_config") or ""))
    return int(found[1]) if found else None


def known_trips(loop: Instruction) -> int | None:
    """The trip count of a loop: by constants, the extent of a scan, or a compiler's note; None if unknown."""
    if loop.opcode == "scan":
        return slices_of(loop)[0]
    found = trips_of(loop)
    return found.count if found is not None else noted_trips(loop)


# ----------------------------------------------------------------------------
# A scan read as a loop: slices and carries, the number of slices, results

Given = TypeVar("Given")


def split_carries(scan: Instruction, operands: Sequence[Given]) -> tuple[list[Given], list[Given]]:
    """The values along the scanned dimension, and the carries, of the operands or the results of a scan."""
    first = len(operands) - scan.attributes.num_carries
    return [*operands[:first]], [*operands[first:]]


def slices_of(scan: Instruction) -> tuple[int, bool]:
    """The number of slices of a scan, and whether that is only an upper bound."""
    dimension = scan.attributes.dimension
    shapes = [operand.shape for operand in split_carries(scan, scan.operands)[0] if isinstance(operand.shape, Shape)]
    if not shapes:
        return scan.attributes.length or 0, False
    return shapes[0].dims[dimension], any(shape.dynamic and shape.dynamic[dimension] for shape in shapes)


def trip_results(scan: Instruction, root: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of one trip and the carries for the next, given the value of the root of the body."""
    return split_carries(scan, [*root] if isinstance(scan.attributes.to_apply.root.shape, TupleShape) else [root])


def scan_result(scan: Instruction, results: Sequence[Any]) -> Any:
    """The value of a scan, given its outputs and final carries: a tuple where its shape is one."""
    return (*results,) if isinstance(scan.shape, TupleShape) else results[0]


# ----------------------------------------------------------------------------
# What no trip of a loop changes: the elements of its state that the body returns unchanged

_MOST_NESTED = 64

Unchanged: TypeAlias = Any
"""Whether a value is unchanged; for a tuple, whether each element is."""


@remembered
def unchanged(body: Computation) -> Unchanged:
    """Which elements of its parameter a body returns unchanged, as far as tuples and their elements show."""
    return _unchanged(body.root, (), 0)


def _unchanged(value: Instruction, at: Path, depth: int) -> Unchanged:
    value = _behind(value)
    if value.opcode == "tuple" and depth < _MOST_NESTED:
        return tuple([_unchanged(each, (*at, n), depth + 1) for n, each in enumerate(value.operands)])
    return path_of(value) == (0, at)


def is_invariant(body: Computation, path: Path) -> bool:
    """Whether a loop returns a leaf of its state unchanged."""
    found = unchanged(body)
    for index in path:
        if isinstance(found, bool):
            break
        found = found[index]
    return found is True
