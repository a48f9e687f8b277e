"""Loops, branches and calls: the computations are those of a device, and their state is cut as it is annotated."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ..parts.agreement import EVERY_DECISION, agreed
from ..parts.frame import Frame, PartBuilder, Piece
from ..parts.layouts import Tree, mapped
from ..parts.manual import is_manual
from ..parts.tables import special
from ..parts.trees import as_annotated, asked, local_shape, pieces_of
from ..parts.walk import put_together, run_whole, settled, walked
from ..reasons import AllAgree, BranchResult, Decides, LoopState, Reason


def region(frame: Frame, computation: Computation, given: list[Tree], result: Tree, reason: Reason) -> Computation:
    """The computation of a device, for parameters in these shardings, with its result in those of `result`.

    A `result` of None stands for a number that decides, which is to be one on all devices.
    """
    builder = frame.builder.sub_builder(computation.name)
    assert isinstance(builder, PartBuilder)
    inner = Frame(frame.shared, builder)
    for parameter, shardings in zip(computation.parameters, given, strict=True):
        value = ops.parameter(
            builder,
            number=parameter.attributes.number,
            shape=local_shape(parameter.shape, shardings),
            name=parameter.name,
        )
        inner.values[parameter] = pieces_of(inner, value, parameter.shape, shardings, parameter)
    tree = walked(inner, computation)
    root = decided(inner, tree, reason) if result is None else put_together(inner, tree, result, reason)
    return builder.build(root)


def decided(frame: Frame, piece: Piece, reason: Reason) -> Value:
    """A number that decides a loop or branch; where the check asks for it, the first device decides for all."""
    value = frame.whole(piece, reason)
    return agreed(frame, value, piece, AllAgree(reason.user)) if frame.shared.agreement >= EVERY_DECISION else value


def _recorded(
    frame: Frame, instruction: Instruction, operands: list[Value], attributes: dict[str, Any], shardings: Tree
) -> Tree:
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    return pieces_of(frame, value, instruction.shape, shardings, instruction)


@special
def while_(frame: Frame, instruction: Instruction) -> Tree:
    """The state keeps its shardings in every trip; the condition is one value on all devices."""
    tree = frame.values[instruction.operands[0]]
    shardings = mapped(lambda each: evolve(each, unreduced=()), as_annotated(frame.mesh, instruction, tree))
    init = put_together(frame, tree, shardings, LoopState(instruction, "first"))
    attributes = instruction.attributes
    regions = {
        "condition": region(frame, attributes.condition, [shardings], None, Decides(instruction)),
        "body": region(frame, attributes.body, [shardings], shardings, LoopState(instruction, "next")),
    }
    return _recorded(frame, instruction, [init], regions, shardings)


@special
def conditional(frame: Frame, instruction: Instruction) -> Tree:
    """Operands of the branches come as they are; results of all branches have one sharding."""
    index, *operands = instruction.operands
    trees = [frame.values[each] for each in operands]
    given = [mapped(lambda piece: piece.sharding, tree) for tree in trees]
    results = asked(frame.mesh, instruction)
    why = BranchResult(instruction)
    branches = tuple(
        region(frame, each, [shardings], results, why)
        for each, shardings in zip(instruction.attributes.branch_computations, given, strict=True)
    )
    values = [put_together(frame, *each, "") for each in zip(trees, given, strict=True)]
    chosen = decided(frame, frame.values[index], Decides(instruction))
    return _recorded(frame, instruction, [chosen, *values], {"branch_computations": branches}, results)


@special
def call(frame: Frame, instruction: Instruction) -> Tree:
    """The called computation is walked with the pieces at hand, as if it stood here; that of a shard is kept."""
    if is_manual(instruction):
        return run_whole(frame, instruction, is_settled=False)
    return inlined(frame, instruction, instruction.attributes.to_apply)


@special
def fusion(frame: Frame, instruction: Instruction) -> Tree:
    return inlined(frame, instruction, instruction.attributes.calls)


def inlined(frame: Frame, instruction: Instruction, computation: Computation) -> Tree:
    """The pieces of a computation's result for these operands."""
    inner = Frame(frame.shared, frame.builder, recorder=frame.recorder, reasons=frame.reasons)
    for parameter, operand in zip(computation.parameters, instruction.operands, strict=True):
        inner.values[parameter] = frame.values[operand]
    tree = walked(inner, computation)
    frame.builder.part_of = instruction
    return settled(frame, tree, instruction)
