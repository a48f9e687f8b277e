"""Computations of a shard (shard_map): what stands in them is a program of one device already, and is kept as it is."""

from __future__ import annotations

from collections.abc import Iterable

from shape_inference import Shape, TupleShape, refuse

from ....core.graph import Computation, Instruction, Module
from ...axis import Axis
from ...sharding import Sharding
from ...shardy_collectives import axes_in
from ...shardy_text import shardy_shardings
from ..reasons import IntoShard, WholeOperand
from .frame import Frame
from .layouts import Tree, closed, local_dims, whole_on

INTO = "xla.sdy.GlobalToLocalShape"
OUT_OF = "xla.sdy.LocalToGlobalShape"


def target_of(instruction: Instruction) -> str:
    """The target of a custom call; an empty text for any other instruction."""
    return str(instruction.attributes.custom_call_target) if instruction.opcode == "custom_call" else ""


def _source(instruction: Instruction) -> Instruction:
    return instruction.operands[0] if instruction.opcode == "get_tuple_element" else instruction


def is_manual(instruction: Instruction) -> bool:
    """Whether a call is that of a computation of a shard, by where its operands come from."""
    return any(target_of(_source(each)) == INTO for each in instruction.operands)


def manual_bodies(module: Module) -> frozenset[Computation]:
    """The computations of shards, with all that they call."""
    every = (each for computation in module.computations for each in computation.instructions)
    bodies = (each.attributes.to_apply for each in every if each.opcode == "call" and is_manual(each))
    return frozenset(inner for body in bodies for inner in body.reachable())


def last_channel(computations: Iterable[Computation]) -> int:
    """The greatest channel in these computations."""
    every = (each for computation in computations for each in computation.instructions)
    return max((getattr(each.attributes, "channel_id", None) or 0 for each in every), default=0)


def _stated(frame: Frame, instruction: Instruction, key: str) -> tuple[Sharding, ...]:
    """The shardings at the border of a computation of a shard, all of whose axes are manual."""
    notes = instruction.annotations.get("frontend_attributes", {})
    manual = tuple(axes_in(str(notes.get("xla.sdy.manual_axes", "")), frame.mesh))
    left = [name for name, size in frame.mesh.sizes if size > 1 and Axis(name, size) not in manual]
    if left:
        message = f"{instruction.name} is manual along some axes, and not along {', '.join(left)}"
        refuse("invalid_operand", f"partition: {message}; it is read where all axes are manual")
    found = shardy_shardings(str(notes.get(key, "")), frame.shared.meshes)
    return tuple(each for each in found if isinstance(each, Sharding))


def into_shard(frame: Frame, instruction: Instruction) -> Tree:
    """The parts of the operands, each an array of its own on every device."""
    shardings = _stated(frame, instruction, "xla.sdy.in_shardings")
    pieces = []
    for operand, sharding in zip(instruction.operands, shardings, strict=True):
        shape = operand.shape
        assert isinstance(shape, Shape)
        target = closed(sharding, shape.rank)
        value = frame.part(frame.values[operand], target, IntoShard(instruction))
        local = Shape(shape.dtype, local_dims(target, shape.dims))
        pieces.append(frame.piece(value, whole_on(frame.mesh, local.rank), local, instruction))
    return tuple(pieces) if isinstance(instruction.shape, TupleShape) else pieces[0]


def out_of_shard(frame: Frame, instruction: Instruction) -> Tree:
    """The arrays that the parts of all devices are."""
    shardings = _stated(frame, instruction, "xla.sdy.out_shardings")
    shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    pieces = []
    for operand, sharding, shape in zip(instruction.operands, shardings, shapes, strict=True):
        assert isinstance(shape, Shape)
        value = frame.whole(frame.values[operand], WholeOperand(instruction))
        pieces.append(frame.piece(value, closed(sharding, shape.rank), shape, instruction))
    return tuple(pieces) if isinstance(instruction.shape, TupleShape) else pieces[0]
