"""Manual regions of a program: along which axes each instruction is one of a device already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeAlias

from attrs import field, frozen

from shape_inference import refuse

from ..core.graph import Computation, Instruction, Module
from ..core.op import OPS
from ..properties.mesh import Mesh
from ..properties.order import ordered
from .axis import Axis
from .named_text import in_order
from .sharding import Sharding
from .shardy_collectives import axes_in
from .stored import SHARDING, sharding_of
from .tiles import rest_of

Axes: TypeAlias = tuple[Axis, ...]

INTO, OUT_OF = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
"""Targets of the custom calls between which a computation of a shard is called."""

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
"""Targets of the custom calls between which values are those of a shard, by their shardings."""


@frozen
class Regions:
    """The axes along which instructions are manual, none for most; and the calls of computations of a shard."""

    axes: Mapping[Instruction, Axes] = field(factory=dict)
    calls: frozenset[Instruction] = frozenset()

    def of(self, instruction: Instruction) -> Axes:
        """The axes along which an instruction is one of a device."""
        return self.axes.get(instruction, ())


def target_of(instruction: Instruction) -> str:
    """The target of a custom call; an empty text for any other instruction."""
    return str(instruction.attributes.custom_call_target) if instruction.opcode == "custom_call" else ""


def regions(module: Module, mesh: Mesh) -> Regions:
    """The manual regions of a program on a mesh: those of Shardy, and those that HLO's shardings state."""
    found: dict[Instruction, Axes] = {}
    calls: set[Instruction] = set()
    waiting: list[tuple[Computation, Axes]] = [(module.entry, ())]
    while waiting:
        computation, around = waiting.pop()
        ends, flowing = _ends(computation, mesh), dict[Instruction, Axes]()
        for instruction in ordered(computation):
            axes = _manual(instruction, around, flowing, mesh)
            if instruction.opcode == "call" and (instruction in ends or any(map(_is_into, instruction.operands))):
                calls.add(instruction)
            axes = _joined((axes, around, ends[instruction]), mesh) if instruction in ends else axes
            flowing[instruction] = axes
        _backward(computation, flowing)
        for instruction, axes in flowing.items():
            found[instruction] = _joined((axes, stated_axes(instruction, mesh)), mesh)
        waiting += [(called, found[each]) for each in computation.instructions for called in each.called]
    return Regions({each: axes for each, axes in found.items() if axes}, frozenset(calls))


def _backward(computation: Computation, found: dict[Instruction, Axes]) -> None:
    """What values of a region are made of stands in it, too: constants, and calls without operands."""
    for instruction in reversed(ordered(computation)):
        if found[instruction] and target_of(instruction) not in (INTO, FULL_TO_SHARD):
            for operand in instruction.operands:
                if target_of(operand) not in (OUT_OF, SHARD_TO_FULL):
                    found[operand] = found[operand] or found[instruction]


def _ends(computation: Computation, mesh: Mesh) -> dict[Instruction, Axes]:
    """What the ends of Shardy's regions put together, and along which axes: it may have no operands that tell."""
    return {
        _source(operand): axes_of(instruction, mesh)
        for instruction in computation.instructions
        if target_of(instruction) == OUT_OF
        for operand in instruction.operands
    }


def _source(instruction: Instruction) -> Instruction:
    return instruction.operands[0] if instruction.opcode == "get_tuple_element" else instruction


def _is_into(instruction: Instruction) -> bool:
    return target_of(_source(instruction)) == INTO


def axes_of(instruction: Instruction, mesh: Mesh) -> Axes:
    """The axes that an end of one of Shardy's regions names."""
    notes = instruction.annotations.get("frontend_attributes", {})
    return tuple(axes_in(str(notes.get("xla.sdy.manual_axes", "")), mesh))


def _manual(instruction: Instruction, around: Axes, found: Mapping[Instruction, Axes], mesh: Mesh) -> Axes:
    """The axes along which an instruction is manual, by those of its operands and of the region around it."""
    target, given = (
        target_of(instruction),
        _joined((around, *(found.get(each, ()) for each in instruction.operands)), mesh),
    )
    if target == INTO:
        return _joined((given, axes_of(instruction, mesh)), mesh)
    if target == OUT_OF:
        gone = axes_of(instruction, mesh)
        return tuple(axis for axis in given if axis not in gone)
    if target in (FULL_TO_SHARD, SHARD_TO_FULL):
        return stated_axes(instruction, mesh)
    return _joined((given, stated_axes(instruction, mesh)), mesh) if target == "Sharding" else given


def stated_axes(instruction: Instruction, mesh: Mesh) -> Axes:
    """The manual axes of the sharding that an instruction is annotated with."""
    if "sharding" not in instruction.annotations:
        return ()
    stated = sharding_of(instruction, mesh)
    several = stated if isinstance(stated, tuple) else (stated,)
    return _joined((each.manual for each in several if isinstance(each, Sharding)), mesh)


def _joined(several: Iterable[Axes], mesh: Mesh) -> Axes:
    """All axes once, in the order of the mesh; axes of size 1 are left out."""
    return in_order({axis for axes in several for axis in axes if axis.size > 1}, mesh)


def is_complete(axes: Axes, mesh: Mesh) -> bool:
    """Whether a program is one of a device along all axes of a mesh."""
    return all(axis.size == 1 for axis in rest_of(mesh, axes))


def is_between(instruction: Instruction) -> bool:
    """Whether an instruction is a collective between partitions, not between the replicas of a program."""
    is_collective = OPS[instruction.opcode].properties.needs == "group"
    return is_collective and (getattr(instruction.attributes, "channel_id", None) or 0) > 0


def check_is_global(module: Module, mesh: Mesh, told: str) -> None:
    """Refuse a program that is partitioned already; `told` is the name of the function in the message.

    Outside of manual regions a collective between devices has to state the sharding of the parts that it gives. Raises
    invalid_operand.
    """
    manual = regions(module, mesh)
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            if is_between(instruction) and not manual.of(instruction) and SHARDING not in instruction.annotations:
                refuse_partitioned(module, instruction, told)


def refuse_partitioned(module: Module, instruction: Instruction, told: str) -> NoReturn:
    name = instruction.opcode.replace("_", "-")
    refuse(
        "invalid_operand",
        f"{told}: {name} %{instruction.name} is between devices, so {module.name} is partitioned already: "
        "its arrays are parts, and a global program is wanted",
        "check, cost and run take it as it is; xb.from_jax(..., partition=False) gives a global program",
        "of a global program, state the sharding of the parts that the collective gives",
    )
