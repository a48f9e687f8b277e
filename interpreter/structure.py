"""The ops that a plan evaluates by its own structure: leaves, tuples, control flow, and requests to the grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen

from xbuild.graph import Computation, Instruction

from .emit import Emitter, Expr, spell
from .facts import REQUESTS
from .lines import Path, Place
from .region import Region


@frozen(slots=False, eq=False)
class Request:
    """What a plan yields where an op needs another device or the host: the op, its call path, its attributes."""

    instruction: Instruction
    path: Path
    attributes: Mapping[str, Any]

    @cached_property
    def key(self) -> tuple[tuple[int, int | None], ...]:
        """What tells its place from every other: the instructions on the way and the branches taken."""
        return tuple((id(place.instruction), place.branch) for place in self.path)


def _constant(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    literal = instruction.attributes.literal
    return emitter.bind("c", literal if literal.ndim else literal[()])


def _device_number(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.evaluated(instruction.shape, f"device.{instruction.opcode}", path)


def _tuple(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return tuple(operands)


def _get_tuple_element(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return operands[0][instruction.attributes.index]


def _after_all(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return "None"


def _call(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    return emitter.called(instruction.attributes.to_apply, operands, path)


def _while(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    attributes, trip = instruction.attributes, emitter.counter()
    state = emitter.variables(instruction.shape)
    emitter.assign(state, operands[0], path)
    inside = (*path[:-1], Place(instruction, trip))
    emitter.lines.add(f"for {trip} in trips():", inside)
    with emitter.lines.block():
        emitter.depth += 1
        holds = spell(emitter.called(attributes.condition, [state], inside))
        emitter.lines.add(f"if not {holds}: break", inside)
        emitter.assign(state, emitter.called(attributes.body, [state], inside), inside)
        emitter.depth -= 1
    return state


def _conditional(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    branches: tuple[Computation, ...] = instruction.attributes.branch_computations
    result = emitter.variables(instruction.shape)
    for number, branch in enumerate(branches):
        emitter.lines.add(_test(spell(operands[0]), instruction, number, len(branches)), path)
        inside = (*path[:-1], Place(instruction, branch=number))
        with emitter.lines.block():
            emitter.lines.add("pass", inside)
            emitter.assign(result, emitter.called(branch, [operands[1 + number]], inside), inside)
    return result


def _test(index: str, instruction: Instruction, number: int, count: int) -> str:
    """The line that leads into a branch; the last is for every index that no other branch has."""
    if number == count - 1:
        return "else:" if number else "if True:"
    holds = index if instruction.operands[0].shape.dtype.kind == "pred" else f"{index} == {number}"  # type: ignore[union-attr]
    return f"{'el' * bool(number)}if {holds}:"


def _request(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    sequential = emitter.options.sequential
    attributes = {
        key: Region.of(value, sequential) if isinstance(value, Computation) else value
        for key, value in instruction.attribute_values().items()
    }
    asked = emitter.bind("q", Request(instruction, path, attributes))
    return emitter.evaluated(instruction.shape, f"yield {asked}, {spell(tuple(operands))}", path)


PLANNED: dict[str, Callable[[Emitter, Instruction, list[Expr], Path], Expr]] = {
    "constant": _constant,
    "replica_id": _device_number,
    "partition_id": _device_number,
    "tuple": _tuple,
    "get_tuple_element": _get_tuple_element,
    "after_all": _after_all,
    "call": _call,
    "while": _while,
    "conditional": _conditional,
    **dict.fromkeys(REQUESTS, _request),
}
