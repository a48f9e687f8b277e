"""What a value inside loops, branches and calls is outside of them: programs pass ids and predicates through."""

from __future__ import annotations

from collections.abc import Callable

from ...core.graph import Instruction
from ...properties.effects import PLAIN_CALLS, Path
from ...properties.trip_counts import element, is_invariant

_IDENTITIES = ("convert", "copy", "opt_barrier")


def follow(value: Instruction, path: Path) -> tuple[Instruction, Path]:
    """The value that the last computation of a path takes from outside, and the path to it; itself if it takes none.

    An element of the state of a loop is followed only if no trip changes it.
    """
    while path:
        behind = value
        while behind.opcode in _IDENTITIES:
            behind = behind.operands[0]
        outside = _outside(behind, path)
        if outside is None:
            break
        value, path = outside, path[:-1]
    return value, path


def _outside(value: Instruction, path: Path) -> Instruction | None:
    """The value of the caller that is a parameter, or an element of one, of the computation that is called."""
    index = None
    if value.opcode == "get_tuple_element":
        index, value = value.attributes.index, value.operands[0]
    step = path[-1]
    if value.opcode != "parameter" or value not in step.computation.parameters:
        return None
    operands, place = step.instruction.operands, step.computation.parameters.index(value)
    if step.instruction.opcode == "conditional":
        passed = operands[1 + int(step.role.removeprefix("branch "))]
    elif step.instruction.opcode == "while":
        if index is None or not is_invariant(step.instruction.attributes.body, (index,)):
            return None
        passed = operands[0]
    elif step.instruction.opcode in PLAIN_CALLS and place < len(operands):
        passed = operands[place]
    else:
        return None
    return passed if index is None else element(passed, index)


def _inner_values(value: Instruction, depth: int) -> set[Instruction]:
    """A value and the values of its computation that it is computed from, up to this depth."""
    found, level = {value}, {value}
    for _ in range(depth):
        level = {operand for each in level for operand in each.operands} - found
        found |= level
    return found


def outer_texts(
    value: Instruction, path: Path, depth: int, text: Callable[[Instruction, Path], str]
) -> dict[Instruction, Callable[[], str]]:
    """For each value from outside that a value is computed from, what gives its text."""
    followed = ((each, *follow(each, path)) for each in _inner_values(value, depth))
    return {each: (lambda v=v, o=o: text(v, o)) for each, v, o in followed if v is not each and len(o) < len(path)}  # type: ignore[misc]
