"""An instruction on whole operands, on every device; its results are cut afterwards."""

from __future__ import annotations

from shape_inference import AnyShape, Shape, TupleShape

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ....core.op import OPS
from ..reasons import Reason, Result, WholeOperand
from .frame import Frame, Piece
from .layouts import Tree, mapped, stated, whole_on


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


def whole_value(frame: Frame, tree: Tree, reason: Reason) -> Value:
    """The whole value on every device; a tuple is put together again."""
    if isinstance(tree, tuple):
        return ops.tuple_(tuple(whole_value(frame, each, reason) for each in tree), builder=frame.builder)
    assert isinstance(tree, Piece)
    return frame.whole(tree, reason)
