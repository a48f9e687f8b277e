"""Manual regions: the axes along which each instruction is already part of the program of one device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeAlias

from attrs import field, frozen

from shape_inference import refuse

from ..core.graph import Computation, Instruction, Module
from ..core.memos import memo
from ..core.op import OPS
from ..properties.device_groups import Groups, groups_of, pairs_of
from ..properties.mesh import Mesh
from ..properties.order import ordered
from ..properties.placement import CONSTRAINT, GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL, MANUAL_AXES
from ..properties.placement import FULL_TO_SHARD as FULL_TO_SHARD
from ..properties.placement import SHARD_TO_FULL as SHARD_TO_FULL
from ..properties.placement import target_of as target_of
from .hlo_text import in_order, rest_of
from .sharding import Axis, Sharding
from .stated_shardings import SHARDING, axes_in, sharding_of

Axes: TypeAlias = tuple[Axis, ...]
INTO, OUT_OF = GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL


@frozen
class Regions:
    """The axes along which instructions are manual, if any; and the calls that are complete manual regions."""

    axes: Mapping[Instruction, Axes] = field(factory=dict)
    calls: frozenset[Instruction] = frozenset()

    def axes_at(self, instruction: Instruction) -> Axes:
        """The axes along which an instruction is manual."""
        return self.axes.get(instruction, ())


def regions(module: Module, mesh: Mesh) -> Regions:
    """The manual regions of a program on a mesh: those of Shardy, and those that HLO's shardings state."""
    return memo(module, "regions", mesh, lambda: _find_regions(module, mesh))


def _find_regions(module: Module, mesh: Mesh) -> Regions:
    found: dict[Instruction, Axes] = {}
    calls: set[Instruction] = set()
    waiting: list[tuple[Computation, Axes]] = [(module.entry, ())]
    while waiting:
        computation, around = waiting.pop()
        ends, flowing = _find_ends(computation, mesh), dict[Instruction, Axes]()
        for instruction in ordered(computation):
            axes = _manual_axes(instruction, around, flowing, mesh)
            if instruction.opcode == "call" and (instruction in ends or any(map(_is_into, instruction.operands))):
                calls.add(instruction)
            axes = _join_axes((axes, around, ends[instruction]), mesh) if instruction in ends else axes
            flowing[instruction] = axes
        _extend_to_operands(computation, flowing)
        for instruction, axes in flowing.items():
            found[instruction] = _join_axes((axes, stated_axes(instruction, mesh)), mesh)
        waiting += [(called, found[each]) for each in computation.instructions for called in each.called]
    return Regions({each: axes for each, axes in found.items() if axes}, frozenset(calls))


def _extend_to_operands(computation: Computation, found: dict[Instruction, Axes]) -> None:
    """Add what only values of a region use to the region: constants, and calls without operands."""
    for instruction in reversed(ordered(computation)):
        if found[instruction] and target_of(instruction) not in (INTO, FULL_TO_SHARD):
            for operand in instruction.operands:
                if target_of(operand) not in (OUT_OF, SHARD_TO_FULL):
                    found[operand] = found[operand] or found[instruction]


def _find_ends(computation: Computation, mesh: Mesh) -> dict[Instruction, Axes]:
    """The values that leave Shardy's regions, with the manual axes, which their operands may not show."""
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
    return tuple(axes_in(str(notes.get(MANUAL_AXES, "")), mesh))


def _manual_axes(instruction: Instruction, around: Axes, found: Mapping[Instruction, Axes], mesh: Mesh) -> Axes:
    """The axes along which an instruction is manual, from those of its operands and of the region around it."""
    target = target_of(instruction)
    axes = _join_axes((around, *(found.get(each, ()) for each in instruction.operands)), mesh)
    if target == INTO:
        return _join_axes((axes, axes_of(instruction, mesh)), mesh)
    if target == OUT_OF:
        ended = axes_of(instruction, mesh)
        return tuple(axis for axis in axes if axis not in ended)
    if target in (FULL_TO_SHARD, SHARD_TO_FULL):
        return stated_axes(instruction, mesh)
    return _join_axes((axes, stated_axes(instruction, mesh)), mesh) if target == CONSTRAINT else axes


def stated_axes(instruction: Instruction, mesh: Mesh) -> Axes:
    """The manual axes of the sharding that an instruction is annotated with."""
    if "sharding" not in instruction.annotations:
        return ()
    stated = sharding_of(instruction, mesh)
    several = stated if isinstance(stated, tuple) else (stated,)
    return _join_axes((each.manual for each in several if isinstance(each, Sharding)), mesh)


def _join_axes(several: Iterable[Axes], mesh: Mesh) -> Axes:
    """All axes once, in the order of the mesh, without axes of size 1."""
    every = {axis for axes in several if axes for axis in axes if axis.size > 1}
    return in_order(every, mesh) if every else ()


def is_complete(axes: Axes, mesh: Mesh) -> bool:
    """Whether a program is manual along all axes of a mesh."""
    return all(axis.size == 1 for axis in rest_of(mesh, axes))


def is_between(instruction: Instruction, mesh: Mesh) -> bool:
    """Whether an instruction is a collective between partitions, not between the replicas of a program.

    If each group has one device, as along an axis of size 1, no other device is needed.
    """
    if not is_of_partitions(instruction):
        return False
    wrapped = OPS[instruction.opcode].properties.half != "none"
    return wrapped or any(len({*group}) > 1 for group in participants_of(instruction, mesh))


def is_of_partitions(instruction: Instruction) -> bool:
    """Whether an instruction is a collective whose groups name partitions."""
    is_collective = OPS[instruction.opcode].properties.needs == "group"
    return is_collective and (getattr(instruction.attributes, "channel_id", None) or 0) > 0


def participants_of(instruction: Instruction, mesh: Mesh) -> Groups:
    """The participants of a collective on a mesh: its groups, or its source-target pairs."""
    if hasattr(instruction.attributes, "source_target_pairs"):
        return pairs_of(instruction, 1, mesh.num_devices)
    return groups_of(instruction, 1, mesh.num_devices)


def check_is_global(module: Module, mesh: Mesh, caller: str) -> None:
    """Refuse a program that is already partitioned; `caller` is the name of the function in the message.

    Outside manual regions, a collective between devices must state the sharding of its result. Raises invalid_operand.
    """
    manual = regions(module, mesh)
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            if SHARDING in instruction.annotations or not is_of_partitions(instruction):
                continue
            if not manual.axes_at(instruction) and is_between(instruction, mesh):
                refuse_partitioned(module, instruction, caller)


def refuse_partitioned(module: Module, instruction: Instruction, caller: str) -> NoReturn:
    name = instruction.opcode.replace("_", "-")
    refuse(
        "invalid_operand",
        f"{caller}: {name} %{instruction.name} communicates between devices, so {module.name} is already partitioned "
        "and its arrays are shards; expected a global program",
        "check, cost and run accept a partitioned program; xb.from_jax(..., partition=False) returns a global program",
        "if the program is global, state the sharding of the collective's result",
    )
