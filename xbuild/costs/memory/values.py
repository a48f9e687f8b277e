"""The values of a computation: where each is made, by whom it is read last, and what it may overwrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, Dims, refuse

from ...core.graph import Computation, Instruction
from ...core.op import OPS, opcodes
from ...properties.order import ordered
from ...properties.placement import is_annotation, is_move_to_host
from .origins import NEW, Operands, Origin, origins
from .parts import bytes_of, parts_of

Role: TypeAlias = Literal["entry", "once", "loop"]
"""What a computation runs as: the entry, a callee whose result its caller holds, or the body of a while."""

_RENAMES = opcodes(lambda op: op.is_identity) - {"copy"} | {"get_tuple_element", "tuple", "bitcast", "parameter"}
"""Ops that name values and read none."""


@frozen
class Callee:
    """What a caller knows of a computation: the bytes that it takes at its peak beyond what the caller holds, and for
    each part of its result the part of its parameters that it is (`is_same`), or that it may overwrite."""

    peak: int
    origins: tuple[tuple[int, bool] | None, ...]


Callees: TypeAlias = Mapping[tuple[Computation, Role], Callee]

NO_CALLEE = Callee(0, ())


def calls_of(instruction: Instruction) -> list[tuple[Computation, Role]]:
    """The computations whose values take memory while an instruction runs, each with its role."""
    if instruction.opcode == "while":
        attributes = instruction.attributes
        return [(attributes.condition, "once"), (attributes.body, "loop")]
    how = OPS[instruction.opcode].properties.calls
    if how in ("once", "branch", "loop", "wrapped") and instruction.opcode != "fusion":
        return [(each, "once") for each in instruction.called]
    return []


@define
class Values:
    """The arrays that the instructions of a computation make, each under a number, in the order of the instructions.

    `born` and `last` are positions in `order`; `of` lists the numbers of an instruction's parts, `arguments` those of
    the parameters' parts.
    """

    order: tuple[Instruction, ...]
    result: tuple[int, ...] = ()
    makers: list[Instruction] = field(factory=list)
    paths: list[Dims] = field(factory=list)
    shapes: list[AnyShape] = field(factory=list)
    sizes: list[int] = field(factory=list)
    born: list[int] = field(factory=list)
    last: list[int] = field(factory=list)
    sharing: list[tuple[int, ...]] = field(factory=list)
    of: dict[Instruction, tuple[int, ...]] = field(factory=dict)
    arguments: list[int] = field(factory=list)

    def enter(self, instruction: Instruction, position: int, found: Sequence[Origin]) -> None:
        """Note an instruction's parts: values that there are, and new ones."""
        parts = parts_of(instruction.shape)
        self.of[instruction] = tuple(
            origin if isinstance(origin, int) else self._new(instruction, path, shape, position, origin)
            for (path, shape), origin in zip(parts, found, strict=True)
        )

    def _new(self, maker: Instruction, path: Dims, shape: AnyShape, position: int, sharing: tuple[int, ...]) -> int:
        self.makers.append(maker)
        self.paths.append(path)
        self.shapes.append(shape)
        self.sizes.append(0 if _is_apart(maker) else bytes_of(shape))
        self.born.append(position)
        self.last.append(position)
        self.sharing.append(sharing)
        return len(self.born) - 1

    def read(self, instruction: Instruction, position: int) -> None:
        """Note that an instruction reads its operands, unless it only names them."""
        if instruction.opcode not in _RENAMES and not is_annotation(instruction):
            for operand in instruction.operands:
                for value in self.of[operand]:
                    self.last[value] = position


def _is_apart(maker: Instruction) -> bool:
    """Whether a value takes no memory of the run on the device: it is a literal, or is moved to the host."""
    return maker.opcode == "constant" or is_move_to_host(maker)


def values_of(computation: Computation, callees: Callees) -> Values:
    """The values of a computation whose callees are known."""
    values = Values(ordered(computation))
    _refuse_foreign(values.order)
    for position, instruction in enumerate(values.order):
        values.read(instruction, position)
        operands = [values.of[operand] for operand in instruction.operands]
        called = [callees[each] for each in calls_of(instruction)]
        found = _through(instruction, operands, called) if called else None
        values.enter(instruction, position, origins(instruction, operands) if found is None else found)
    for value in values.of[computation.root]:
        values.last[value] = len(values.order) - 1
    values.result = values.of[computation.root]
    for parameter in computation.parameters:
        values.arguments.extend(values.of[parameter])
    return values


def _refuse_foreign(order: tuple[Instruction, ...]) -> None:
    known = set(order)
    for instruction in order:
        for operand in instruction.operands:
            if operand not in known:
                refuse(
                    "foreign_value",
                    f"memory: operand %{operand.name} of %{instruction.name} is no instruction of its computation",
                    "xb.check(program) tells all such faults",
                )


def _through(instruction: Instruction, operands: Operands, called: Sequence[Callee]) -> Sequence[Origin] | None:
    """The origins of what a caller gives, by those of its callees; None where the op itself says them."""
    if instruction.opcode == "while":
        return _of_loop(operands[0], called[1])
    if instruction.opcode == "call":
        return _of_call(tuple(chain.from_iterable(operands)), called[0])
    if instruction.opcode == "conditional":
        return _of_branches(operands[1:], called)
    return None


def _of_loop(state: tuple[int, ...], body: Callee) -> list[Origin]:
    """The state, in the memory of the first state where nobody else reads that; what no trip changes stays."""
    return [
        value if origin is not None and origin == (place, True) else (value,)
        for place, (value, origin) in enumerate(zip(state, body.origins, strict=True))
    ]


def _of_call(given: tuple[int, ...], callee: Callee) -> list[Origin]:
    found: list[Origin] = []
    for origin in callee.origins:
        if origin is None:
            found.append(NEW)
        else:
            place, is_same = origin
            found.append(given[place] if is_same else (given[place],))
    return found


def _of_branches(operands: Operands, branches: Sequence[Callee]) -> list[Origin]:
    """New memory for each part, or that of an operand which every branch may overwrite or hands on."""
    found: list[Origin] = []
    for origins_of_part in zip(*(branch.origins for branch in branches), strict=True):
        given = {operands[n][origin[0]] if origin is not None else None for n, origin in enumerate(origins_of_part)}
        value = given.pop()
        found.append(NEW if given or value is None else (value,))
    return found
