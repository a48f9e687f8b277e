"""Why a value may differ between two devices: the path back to an instruction that differs by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field

from shape_inference import TupleShape
from shape_inference.escaping import in_line

from ..core.graph import Computation, Instruction
from ..properties.effects import IDENTITIES, collective_in, spelling, steps
from ..properties.sites import reached
from .model.scans import split_carries

if TYPE_CHECKING:
    from .replicated_values import Replication

Place: TypeAlias = tuple[Instruction, tuple[int, ...]]  # a value, or a leaf of it
MOST_SEEN = 10_000  # values of the search

_SOURCES = {
    "parameter": "each device is given its own",
    "replica_id": "the replica of the device",
    "partition_id": "the partition of the device",
    "infeed": "each device is fed its own items",
    "rng": "each device draws its own",
    "rng_get_and_update_state": "each device has its own state",
    "recv": "each device receives its own",
    "recv_done": "each device receives its own",
    "custom_call": "it reaches outside of the program",
}


@define(eq=False)
class Reasons:
    """Paths back from values of one program, along values that may differ between two devices."""

    values: Replication
    entry: Computation
    a: int
    b: int
    _callers: dict[Computation, list[tuple[Instruction, int]]] = field(factory=dict, init=False)
    _homes: dict[Instruction, Computation] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for computation in reached(self.entry):
            for instruction in computation.instructions:
                self._homes.setdefault(instruction, computation)
                for number, called in enumerate(instruction.called):
                    self._callers.setdefault(called, []).append((instruction, number))

    def path_back(self, place: Place) -> list[Place]:
        """The shortest path back to a value that differs by itself; else to one whose operands do not differ."""
        came: dict[Place, Place | None] = {place: None}
        waiting = deque([place])
        end = place
        while waiting and len(came) < MOST_SEEN:
            here = waiting.popleft()
            behind = [each for each in dict.fromkeys(self._sources(*here)) if self.differs(*each)]
            if self._is_source(here[0]):
                return _path(came, here)
            if not behind and end == place:
                end = here
            for each in behind:
                if each not in came:
                    came[each] = here
                    waiting.append(each)
        return _path(came, end)

    def _is_source(self, value: Instruction) -> bool:
        return value.opcode in _SOURCES and (value.opcode != "parameter" or self._homes[value] is self.entry)

    def differs(self, instruction: Instruction, leaf: tuple[int, ...]) -> bool:
        """Whether the two devices may hold different values of an instruction or a leaf of it."""
        try:
            groups = self.values.groups(instruction, leaf)
        except KeyError:
            return False
        return not any(self.a in group and self.b in group for group in groups)

    def _sources(self, value: Instruction, leaf: tuple[int, ...]) -> Iterator[Place]:
        """The values that a value or leaf is computed from; then what decides the loops and branches around it."""
        opcode, operands = value.opcode, value.operands
        if opcode == "tuple" and leaf:
            yield operands[leaf[0]], leaf[1:]
        elif opcode == "get_tuple_element":
            yield operands[0], (value.attributes.index, *leaf)
        elif opcode in IDENTITIES:
            yield operands[0], leaf
        elif opcode == "parameter":
            yield from self._given(value, leaf)
        elif opcode in ("call", "fusion"):
            yield value.called[0].root, leaf
        elif opcode in ("while", "scan", "conditional"):
            yield from self._of_unit(value, leaf)
        elif opcode not in _SOURCES:
            yield from ((each, ()) for each in operands)
        yield from self._deciders(value)

    def _of_unit(self, unit: Instruction, leaf: tuple[int, ...]) -> Iterator[Place]:
        yield from _decides(unit)
        if unit.opcode == "while":
            yield unit.operands[0], leaf
        if unit.opcode == "scan":
            yield from ((each, ()) for each in unit.operands)
        yield from ((step.computation.root, leaf) for step in steps(unit) if step.role != "while condition")

    def _given(self, parameter: Instruction, leaf: tuple[int, ...]) -> Iterator[Place]:
        number = parameter.attributes.number
        for caller, region in self._callers.get(self._homes[parameter], ()):
            if caller.opcode == "conditional":
                yield caller.operands[1 + region], leaf
            elif caller.opcode == "while":
                yield caller.operands[0], leaf
                yield [*steps(caller)][-1].computation.root, leaf
            elif number < len(caller.operands):
                yield caller.operands[number], leaf
            if caller.opcode == "scan":
                yield caller.called[0].root, ()

    def _deciders(self, value: Instruction) -> Iterator[Place]:
        """The predicates, indices and scan inputs of the loops and branches around a value."""
        for caller, _ in self._callers.get(self._homes[value], ()):
            yield from _decides(caller)
            yield from self._deciders(caller)


def _path(came: Mapping[Place, Place | None], end: Place) -> list[Place]:
    found: list[Place] = []
    place: Place | None = end
    while place is not None:
        found.append(place)
        place = came[place]
    return found[::-1]


def _decides(unit: Instruction) -> Iterator[Place]:
    if unit.opcode == "conditional":
        yield unit.operands[0], ()
    elif unit.opcode == "while":
        yield next(iter(steps(unit))).computation.root, ()
    elif unit.opcode == "scan":
        yield from ((each, ()) for each in split_carries(unit, unit.operands)[0])


def reason_text(values: Replication, value: Instruction, leaf: tuple[int, ...]) -> str:
    """The text of `Replication.why`."""
    groups = values.groups(value, leaf)
    name = f"{in_line(value.name)}{''.join(f'{{{n}}}' for n in leaf)}"
    if len(groups) == 1:
        return f"{name} is equal on all devices, in every run"
    a, b = groups[0][0], groups[1][0]
    part = next(each for each in values.parts if value in each.found)
    if b not in part.devices:
        return f"{name} is of several programs, which are not compared"
    reasons = Reasons(values, part.module.entry, a, b)
    path_back = reasons.path_back((value, _leaf_that_differs(values, value, leaf, a, b)))
    width = max(len(_named(place)) for place in path_back)
    lines = [f"  {_named(place):{width}}  {_told(place[0])}" for place in path_back[:-1]]
    lines.append(f"  {_named(path_back[-1]):{width}}  {_told(path_back[-1][0])}: {_why(path_back[-1][0])}")
    return "\n".join([f"{name} may differ between devices {a} and {b}", *lines])


def _leaf_that_differs(
    values: Replication, value: Instruction, leaf: tuple[int, ...], a: int, b: int
) -> tuple[int, ...]:
    shape = value.shape
    for number in leaf:
        shape = shape.elements[number]  # type: ignore[union-attr]
    while isinstance(shape, TupleShape):
        for number, each in enumerate(shape.elements):
            if not any(a in group and b in group for group in values.groups(value, (*leaf, number))):
                leaf, shape = (*leaf, number), each
                break
        else:
            return leaf
    return leaf


def _named(place: Place) -> str:
    leaf = "{" + ",".join(map(str, place[1])) + "}" if place[1] else ""
    return f"{in_line(place[0].name)}{leaf}"


def _told(value: Instruction) -> str:
    operands = ", ".join(in_line(each.name) for each in value.operands[:4])
    more = ", ..." if len(value.operands) > 4 else ""
    inside = str(value.attributes.number) if value.opcode == "parameter" else operands + more
    return f"{spelling(value.opcode)}({inside})"


def _why(source: Instruction) -> str:
    if source.opcode in _SOURCES:
        return _SOURCES[source.opcode]
    if collective_in(source) is not None:
        return "these devices get different parts of it, or are in groups to which different values may be brought"
    return "nothing is known that makes it equal"
