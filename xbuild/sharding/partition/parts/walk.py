"""The walk over a global program that records the program of a device, instruction by instruction."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import AnyShape, Shape, TupleShape, leaves

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ....core.op import OPS
from ....properties.order import ordered
from ...rules.table import rule_of
from ..reasons import Reason, Result, WholeOperand
from .by_factors import by_factors
from .frame import Frame, Piece
from .layouts import Tree, mapped, stated, whole_on
from .tables import special


def walked(frame: Frame, computation: Computation) -> Tree:
    """The parts of the root's value, after all instructions that it needs and those with effects are recorded."""
    needed = _needed(computation)
    for instruction in ordered(computation):
        if instruction in needed and instruction not in frame.values:
            with frame.within(instruction):
                frame.values[instruction] = partitioned(frame, instruction)
    return frame.values[computation.root]


def _needed(computation: Computation) -> set[Instruction]:
    found: set[Instruction] = set()
    stack = [computation.root, *(each for each in computation.instructions if _has_effect(each))]
    while stack:
        instruction = stack.pop()
        if instruction not in found:
            found.add(instruction)
            stack.extend(instruction.operands)
    return found


def _has_effect(instruction: Instruction) -> bool:
    if instruction.opcode == "custom_call":
        return bool(instruction.attributes.custom_call_has_side_effect)
    properties = OPS[instruction.opcode].properties
    return properties.depends_on in ("random_state", "outside") or properties.needs in ("peer", "host")


def partitioned(frame: Frame, instruction: Instruction) -> Tree:
    """The parts of the value of one instruction."""
    if instruction.opcode in special:
        return special[instruction.opcode](frame, instruction)
    rule = rule_of(instruction) if _is_cuttable(frame, instruction) else None
    return run_whole(frame, instruction) if rule is None else by_factors(frame, instruction, rule)


def _is_cuttable(frame: Frame, instruction: Instruction) -> bool:
    """Whether an op may run on parts of its operands, which are arrays of known extents."""
    properties = OPS[instruction.opcode].properties
    if properties.depends_on != "operands" or properties.needs != "nobody" or properties.half != "none":
        return False
    shapes = [leaf for each in (*instruction.operands, instruction) for leaf in leaves(each.shape)]
    is_fixed = all(isinstance(each, Shape) and not each.is_dynamic for each in shapes)
    return is_fixed and all(isinstance(frame.values[each], Piece) for each in instruction.operands)


def run_whole(frame: Frame, instruction: Instruction, *, is_settled: bool = True) -> Tree:
    """The op on whole operands, on every device; its results are cut afterwards, which sends nothing."""
    operands = [whole_value(frame, frame.values[each], WholeOperand(instruction)) for each in instruction.operands]
    attributes = dict(instruction.attribute_values())
    if instruction.opcode in ("bitcast", "custom_call"):
        attributes["shape"] = instruction.shape  # with its layout, by which the op writes its result
    if instruction.opcode == "bitcast":
        operands = [_by_rows(operands[0], instruction.operands[0].shape)]
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    tree = taken_apart(frame, value, instruction)
    return settled(frame, tree, instruction) if is_settled else tree


def _by_rows(value: Value, shape: AnyShape) -> Value:
    """An array with its dimensions in the order of a layout: its elements row by row are those of memory."""
    if not isinstance(shape, Shape) or shape.layout is None:
        return value
    order = shape.layout.minor_to_major[::-1]
    return value if order == tuple(range(shape.rank)) else ops.transpose(value, permutation=order)


def settled(frame: Frame, tree: Tree, instruction: Instruction) -> Tree:
    """The pieces of an instruction's value in the shardings that it is annotated with."""
    if isinstance(tree, Piece) and not isinstance(tree.shape, Shape):
        return tree
    reason, wanted = Result(instruction), stated(instruction, frame.mesh)
    return mapped(lambda piece, each: frame.settled(piece, each, reason), tree, wanted)


def taken_apart(frame: Frame, value: Value, instruction: Instruction) -> Tree:
    """The pieces of a value that every device holds whole; of a tuple the pieces of its elements."""
    if isinstance(value.shape, TupleShape) and OPS[instruction.opcode].properties.half in ("none", "done"):
        count = len(value.shape.elements)
        return tuple(taken_apart(frame, ops.get_tuple_element(value, index=n), instruction) for n in range(count))
    is_array = isinstance(value.shape, Shape) and OPS[instruction.opcode].properties.half != "start"
    rank = value.shape.rank if isinstance(value.shape, Shape) else 0
    shape = value.shape if is_array else OPAQUE
    return frame.piece(value, whole_on(frame.mesh, rank if is_array else 0), shape, instruction)


OPAQUE = TupleShape()
"""The shape of what is handed on as it is, such as what an asynchronous op has begun."""


def whole_value(frame: Frame, tree: Tree, reason: Reason | str) -> Value:
    """The whole value on every device; a tuple is put together again."""
    if isinstance(tree, tuple):
        return ops.tuple_(tuple(whole_value(frame, each, reason) for each in tree), builder=frame.builder)
    assert isinstance(tree, Piece)
    return frame.whole(tree, reason)


def put_together(frame: Frame, tree: Tree, shardings: Tree, reason: Reason | str) -> Value:
    """One value of pieces in these shardings; None stands for the sharding that a piece was made in."""
    if isinstance(tree, tuple):
        parts: Sequence[Value] = [put_together(frame, *pair, reason) for pair in zip(tree, shardings, strict=True)]
        return ops.tuple_(tuple(parts), builder=frame.builder)
    if shardings is None or not isinstance(tree.shape, Shape):
        return only_value(tree)
    return frame.part(tree, shardings, reason)


def only_value(piece: Piece) -> Value:
    """The parts of a piece in the sharding that it was made in."""
    return next(iter(piece.versions.values()))
