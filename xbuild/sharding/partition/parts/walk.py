"""The walk over a global program that records the program of a device, instruction by instruction."""

from __future__ import annotations

from shape_inference import Shape, leaves

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ....core.op import OPS
from ....properties.order import ordered
from ...regions import is_between
from ...rules.table import rule_of
from .by_factors import by_factors
from .collectives import on_parts, stays_inside
from .devices import device_of, on_device, reads_number
from .effects import has_effect, leaves_program
from .frame import Frame, Piece
from .layouts import Tree
from .tables import special
from .whole import run_whole as run_whole
from .whole import settled as settled


def walked(frame: Frame, computation: Computation) -> Tree:
    """The parts of the root's value, after all instructions that it needs and those with effects are recorded."""
    kept, regions = needed(computation), frame.shared.regions
    for instruction in ordered(computation):
        if instruction in kept and instruction not in frame.values:
            frame.manual = regions.of(instruction)
            with frame.within(instruction):
                frame.values[instruction] = partitioned(frame, instruction)
    frame.manual = regions.of(computation.root)
    return frame.values[computation.root]


def needed(computation: Computation) -> set[Instruction]:
    """The instructions on which the root depends, or an effect outside of the devices of the mesh."""
    found: set[Instruction] = set()
    stack = [computation.root, *(each for each in computation.instructions if has_effect(each))]
    while stack:
        instruction = stack.pop()
        if instruction not in found:
            found.add(instruction)
            stack += [*instruction.operands, *instruction.control]
    return found


def partitioned(frame: Frame, instruction: Instruction) -> Tree:
    """The parts of the value of one instruction."""
    if reads_number(frame, instruction):
        device = device_of(frame, instruction)
        if device is not None:
            return on_device(frame, instruction, device)
        frame.numbered.add(instruction)
    if OPS[instruction.opcode].properties.needs in ("peer", "host") and not frame.manual:
        return leaves_program(frame, instruction)
    if is_between(instruction) and not frame.manual:
        return on_parts(frame, instruction)
    if instruction.opcode in special:
        return special[instruction.opcode](frame, instruction)
    return in_general(frame, instruction)


def in_general(frame: Frame, instruction: Instruction) -> Tree:
    """The parts of the value of an instruction by its sharding rule, or of one that runs whole."""
    rule = rule_of(instruction) if is_cuttable(frame, instruction) else None
    return run_whole(frame, instruction) if rule is None else by_factors(frame, instruction, rule)


def is_cuttable(frame: Frame, instruction: Instruction) -> bool:
    """Whether an op may run on parts of its operands, arrays of known extents; there has to be a window."""
    properties = OPS[instruction.opcode].properties
    is_own = properties.depends_on == "operands" and properties.needs == "nobody"
    if properties.half != "none" or not (is_own or stays_inside(frame, instruction)):
        return False
    shapes = [leaf for each in (*instruction.operands, instruction) for leaf in leaves(each.shape)]
    is_fixed = all(isinstance(each, Shape) and not each.is_dynamic for each in shapes)
    is_fixed &= not (getattr(instruction.attributes, "window", ()) and is_empty(instruction))
    return is_fixed and all(isinstance(frame.values[each], Piece) for each in instruction.operands)


def is_empty(instruction: Instruction) -> bool:
    """Whether an array has no elements."""
    return isinstance(instruction.shape, Shape) and instruction.shape.size == 0


def put_together(frame: Frame, tree: Tree, shardings: Tree, reason: Tree) -> Value:
    """One value of pieces in these shardings; None stands for the sharding that a piece was made in.

    Elements of a tuple are brought there for one reason, or for one each.
    """
    if isinstance(tree, tuple):
        reasons = reason if isinstance(reason, tuple) else (reason,) * len(tree)
        parts = [put_together(frame, *each) for each in zip(tree, shardings, reasons, strict=True)]
        return ops.tuple_(tuple(parts), builder=frame.builder)
    if shardings is None or not isinstance(tree.shape, Shape):
        return frame.ready(tree)
    return frame.part(tree, shardings, reason)
