"""Collectives of Shardy in a program for all devices, as constraints on the shardings of their operands and results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import evolve

from shape_inference import Shape, refuse

from ..core.graph import Computation, Instruction, Module
from ..properties.device_groups import Pairs
from ..properties.mesh import Mesh
from ..text.spelling.notes import Raw
from .axis import Axis
from .hlo_text import AnySharding, hlo_text, shardings
from .rebuilding import mapped
from .sharding import Sharding
from .shardy_text import AnyMesh, shardy_meshes, shardy_shardings

AXES = "xla.sdy.axes"
MOVES = "xbuild.device_moves"
_TARGET = re.compile(r"xla\.sdy\.(all_\w+|collective_permute|reduce_scatter|\w+_to_unreduced|FuncResultSharding)")
_REDUCING = ("all_reduce", "reduce_scatter")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\((\d{1,9})\)(\d{1,9}))?')


def as_constraints(module: Module, mesh: Mesh) -> Module:
    """The module with each collective of Shardy as a constraint: what it gives has the sharding that it states.

    A collective_permute to another order of the devices says in addition which device sends to which.

    The operand of an all_reduce or reduce_scatter is unreduced along the axes that it names, whatever else is said of
    it: devices hold parts of a sum there.
    """
    unreduced: dict[Instruction, tuple[Axis, ...]] = {}
    meshes = shardy_meshes(module)
    for computation in module.computations:
        unreduced |= _unreduced(computation, mesh)

    def constrained(instruction: Instruction) -> Instruction:
        found = instruction
        if _kind(instruction):
            found = evolve(found, attributes=evolve(found.attributes, custom_call_target="Sharding"))
            found = _with_moves(found, instruction is module.entry.root, mesh, meshes)
        return _with_unreduced(found, unreduced.get(instruction, ()), mesh)

    is_needed = any(_kind(each) for computation in module.computations for each in computation.instructions)
    return mapped(module, constrained) if is_needed else module


def on_mesh(instruction: Instruction, sharding: AnySharding, mesh: Mesh) -> AnySharding:
    """A sharding of Shardy's on the mesh of the program.

    Where a mesh has another order of devices, it has to be that of a collective_permute whose result is given as it is.
    """
    if isinstance(sharding, tuple):
        return tuple(
            one for each in sharding for one in (on_mesh(instruction, each, mesh),) if not isinstance(one, tuple)
        )
    if not isinstance(sharding, Sharding) or sharding.mesh == mesh or sharding.mesh.num_devices == 1:
        return sharding
    if _kind(instruction) != "collective_permute":
        message = (
            f"{instruction.name} is on {sharding.mesh}, and the program on {mesh}; only a collective_permute that "
        )
        refuse("invalid_attribute", f"{message}gives a result brings a value from one to the other")
    return evolve(sharding, mesh=mesh)


def moved_pairs(instruction: Instruction) -> Pairs:
    """From which device to which a collective_permute to another order of devices brings the parts; none for others."""
    text = str(instruction.annotations.get("frontend_attributes", {}).get(MOVES, ""))
    return tuple((int(source), int(target)) for source, target in re.findall(r"(\d+)>(\d+)", text))


def _with_moves(instruction: Instruction, is_root: bool, mesh: Mesh, meshes: Mapping[str, AnyMesh]) -> Instruction:
    """A collective_permute to a mesh of another order of devices, with the devices that send and receive."""
    notes = instruction.annotations.get("frontend_attributes", {})
    (stated,) = shardy_shardings(str(notes.get("xla.sdy.sharding", "")), meshes)
    if not isinstance(stated, Sharding) or stated.mesh == mesh:
        return instruction
    if not is_root:
        refuse("invalid_attribute", f"{instruction.name} is used on {stated.mesh}, and the program is on {mesh}")
    order, other = (each.device_ids or range(mesh.num_devices) for each in (mesh, stated.mesh))
    text = ",".join(f"{source}>{target}" for source, target in zip(order, other, strict=True))
    return evolve(instruction, annotations={**instruction.annotations, "frontend_attributes": {**notes, MOVES: text}})


def _kind(instruction: Instruction) -> str:
    """Which collective of Shardy a custom call is; an empty text for any other instruction."""
    if instruction.opcode != "custom_call":
        return ""
    found = _TARGET.fullmatch(str(instruction.attributes.custom_call_target))
    return found[1] if found else ""


def _unreduced(computation: Computation, mesh: Mesh) -> dict[Instruction, tuple[Axis, ...]]:
    """The axes along which operands of collectives are parts of a sum, from the last collective to the first."""
    found: dict[Instruction, tuple[Axis, ...]] = {}
    for instruction in reversed(computation.instructions):
        kind = _kind(instruction)
        if kind:
            own = tuple(_axes(instruction, mesh)) if kind in _REDUCING and _is_sum(instruction) else ()
            later = tuple(axis for axis in found.get(instruction, ()) if axis not in own)
            (operand,) = instruction.operands
            found[operand] = tuple(dict.fromkeys((*found.get(operand, ()), *own, *later)))
    return found


def _is_sum(instruction: Instruction) -> bool:
    """Whether a collective sums; any other reduction is part of what makes its operand, which must be an op that is."""
    text = str(instruction.annotations.get("frontend_attributes", {}).get(AXES, ""))
    other = next((word for word in ("max", "min") if text.startswith(word)), "")
    if other and instruction.operands[0].opcode == "parameter":
        message = (
            f"{instruction.name} takes the {other} of {instruction.operands[0].name}, and a sharding has sums alone"
        )
        refuse("invalid_attribute", message, "xb.shard.all_reduce has every reduction")
    return not other


def _axes(instruction: Instruction, mesh: Mesh) -> Iterator[Axis]:
    yield from axes_in(str(instruction.annotations.get("frontend_attributes", {}).get(AXES, "")), mesh)


def axes_in(text: str, mesh: Mesh) -> Iterator[Axis]:
    """The axes, and parts of axes, that a text of Shardy names."""
    for name, pre_size, size in _AXIS.findall(text):
        yield Axis(name, int(size or mesh.size(name)), int(pre_size or 1))


def _with_unreduced(instruction: Instruction, axes: tuple[Axis, ...], mesh: Mesh) -> Instruction:
    shape = instruction.shape
    if not axes or not isinstance(shape, Shape):
        return instruction
    text = instruction.annotations.get("sharding")
    stated = Sharding(mesh) if text is None else shardings(str(text), mesh)
    if not isinstance(stated, Sharding):
        return instruction
    more = tuple(axis for axis in axes if not any(axis.overlaps(each) for each in stated.unreduced))
    changed = evolve(stated, unreduced=(*stated.unreduced, *more))
    return evolve(instruction, annotations={**instruction.annotations, "sharding": Raw(hlo_text(changed, shape.rank))})
