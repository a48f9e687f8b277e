"""Collectives of Shardy in a program for all devices, as constraints on the shardings of their operands and results."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from shape_inference import Shape, refuse

from ..core.graph import Computation, Instruction, Module
from ..properties.mesh import Mesh
from ..text.spelling.notes import Raw
from .axis import Axis
from .hlo_text import hlo_text, shardings
from .rebuilding import mapped
from .sharding import Sharding

AXES = "xla.sdy.axes"
_TARGET = re.compile(r"xla\.sdy\.(all_\w+|collective_permute|reduce_scatter|\w+_to_unreduced|FuncResultSharding)")
_REDUCING = ("all_reduce", "reduce_scatter")
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\((\d{1,9})\)(\d{1,9}))?')


def as_constraints(module: Module, mesh: Mesh) -> Module:
    """The module with each collective of Shardy as a constraint: what it gives has the sharding that it states.

    The operand of an all_reduce or reduce_scatter is unreduced along the axes that it names, whatever else is said of
    it: devices hold parts of a sum there.
    """
    unreduced: dict[Instruction, tuple[Axis, ...]] = {}
    for computation in module.computations:
        unreduced |= _unreduced(computation, mesh)

    def constrained(instruction: Instruction) -> Instruction:
        found = instruction
        if _kind(instruction):
            found = evolve(found, attributes=evolve(found.attributes, custom_call_target="Sharding"))
        return _with_unreduced(found, unreduced.get(instruction, ()), mesh)

    is_needed = any(_kind(each) for computation in module.computations for each in computation.instructions)
    return mapped(module, constrained) if is_needed else module


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
    text = str(instruction.annotations.get("frontend_attributes", {}).get(AXES, ""))
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
