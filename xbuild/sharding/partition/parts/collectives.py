"""Collectives between devices that a program states: in manual regions, or on parts whose shardings are stated."""

from __future__ import annotations

from shape_inference import Shape, leaves, refuse

from .... import ops
from ....core.graph import Instruction
from ....core.op import OPS
from ....properties.device_groups import groups_of, pairs_of
from ...planning.places import index_along
from ...regions import is_between
from ..reasons import WholeOperand
from .frame import Frame
from .layouts import Tree, leaves_of, local_dims, stated
from .whole import run_whole


def stays_inside(frame: Frame, instruction: Instruction) -> bool:
    """Whether devices that meet in a collective hold the same parts along the axes that are not manual."""
    if not frame.manual or not is_between(instruction):
        return False
    count = frame.mesh.num_devices
    is_pairs = hasattr(instruction.attributes, "source_target_pairs")
    groups = pairs_of(instruction, 1, count) if is_pairs else groups_of(instruction, 1, count)
    place = index_along(frame.mesh, frame.axes)
    return all(len({int(place[device]) for device in group}) == 1 for group in groups)


def on_parts(frame: Frame, instruction: Instruction) -> Tree:
    """A collective of a program that is still global: it runs on the parts that devices hold, as Shardy has it.

    Raises invalid_operand where parts of these extents do not give the part that the result is to be.
    """
    if OPS[instruction.opcode].properties.half != "none":
        return run_whole(frame, instruction)
    pieces = [frame.values[each] for each in instruction.operands]
    operands = [frame.part(each, each.sharding, WholeOperand(instruction)) for each in pieces]
    attributes = dict(instruction.attribute_values())
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    found = []
    shapes, wanted = list(leaves(instruction.shape)), list(leaves_of(stated(instruction, frame.mesh)))
    for number, (shape, sharding) in enumerate(zip(shapes, wanted, strict=True)):
        assert isinstance(shape, Shape)
        target = pieces[number].sharding if sharding is None else sharding
        part = value if len(shapes) == 1 else ops.get_tuple_element(value, index=number)
        if part.shape.dims != (local := local_dims(target, shape.dims)):  # type: ignore[union-attr]
            message = (
                f"partition: {instruction.name} gives {part.shape} on each device, and its sharding parts of {local}"
            )
            refuse("invalid_operand", message)
        found.append(frame.piece(part, target, shape, instruction))
    return found[0] if isinstance(instruction.shape, Shape) else tuple(found)
