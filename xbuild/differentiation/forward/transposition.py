"""The tangent of the result of an op: its rule for cotangents is linear, and is itself transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from ...core.builder import Value
from ...core.graph import Instruction
from .. import trees
from ..recorder import Recorder
from ..walk import Walk, pulled


def transposed(context: Any, recorder: Recorder, each: Instruction, tangents: Sequence[Any]) -> Any:
    """The tree of tangents of the result of an instruction, from those of its operands (None where there is none)."""
    stand_ins = trees.of_shape(each.shape, lambda leaf: _stand_in(recorder, leaf))
    varies = [_varies(operand, tangent) for operand, tangent in zip(each.operands, tangents, strict=True)]
    with recorder.aside() as first, recorder.deriving(each):
        found = pulled(context, recorder, each, stand_ins, varies, {})
    leaves = [leaf.instruction for leaf in trees.leaves_of(stand_ins) if leaf is not None]
    seeds = [pair for part, tangent in zip(found, tangents, strict=True) for pair in _pairs(part, tangent)]
    active = context.activity.within(first, dict.fromkeys(leaves, True))
    with recorder.aside() as second:
        cotangents = Walk(context, recorder, active, each).over(first, seeds)
    given = trees.of_shape(each.shape, iter_of(leaves, cotangents))
    return _recorded(recorder, [*first, *second], given)


def iter_of(leaves: Sequence[Instruction], cotangents: dict[Instruction, Any]) -> Any:
    """For each leaf of a shape, in order, the cotangent of its stand-in."""
    given = iter(leaves)
    return lambda leaf: cotangents.get(next(given)) if trees.is_differentiable(leaf) else None


def _stand_in(recorder: Recorder, shape: Any) -> Value | None:
    """A value that stands for a cotangent, and is gone when the rule is transposed."""
    if not trees.is_differentiable(shape):
        return None
    return recorder.value(Instruction("parameter", "cotangent", shape.plain()))


def _varies(operand: Instruction, tangent: Any) -> Any:
    return trees.of_paths(operand.shape, lambda path: trees.at(tangent, path) is not None)


def _pairs(part: Any, tangent: Any) -> list[tuple[Instruction, Any]]:
    """The leaves of a cotangent, each with the tangent that becomes its cotangent."""
    if part is None or tangent is None:
        return []
    if isinstance(part, Value):
        return [(part.instruction, tangent)]
    return [pair for each, below in zip(part, tangent, strict=True) for pair in _pairs(each, below)]


def _recorded(recorder: Recorder, instructions: Sequence[Instruction], tree: Any) -> Any:
    """Add what the values of a tree need of instructions that were recorded aside; the tree of what they are."""
    needed = _needed({*instructions}, tree)
    now: dict[Instruction, Instruction] = {}
    for each in instructions:
        if each in needed:
            operands = tuple([now.get(operand, operand) for operand in each.operands])
            changed = each if operands == each.operands else evolve(each, operands=operands)
            now[each] = recorder.append(changed).instruction

    def current(leaf: Value | None) -> Value | None:
        return recorder.value(now.get(leaf.instruction, leaf.instruction)) if leaf is not None else None

    return trees.mapped(current, tree)


def _needed(known: set[Instruction], tree: Any) -> set[Instruction]:
    stack = [leaf.instruction for leaf in trees.leaves_of(tree) if leaf is not None]
    found: set[Instruction] = set()
    while stack:
        each = stack.pop()
        assert each.name != "cotangent", "a rule for cotangents is not linear in them"
        if each in known and each not in found:
            found.add(each)
            stack += each.operands
    return found
