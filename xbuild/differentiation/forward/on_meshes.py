"""Tangents of collectives and casts on a mesh: all but an extreme are linear, so that a tangent goes the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from shape_inference import TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...variance.rules.marks import cast_of, mark_of
from ..recorder import Recorder
from ..rules import full

_NOT_LINEAR = ("pmax", "pmin", "axis_index")


def is_linear(context: Any, each: Instruction) -> bool:
    """Whether an instruction stands for a collective or a cast on the mesh that is linear in its operand."""
    mark = (mark_of(each) or cast_of(each)) if context.region is not None else None
    return mark is not None and mark.op not in _NOT_LINEAR


def same_on_tangents(context: Any, recorder: Recorder, each: Instruction, tangents: Sequence[Any]) -> Any:
    """The tangents of the results of such an instruction: what it gives of the tangents of its operands."""
    arrays = len(each.shape.elements) if isinstance(each.shape, TupleShape) else 1
    given = [
        tangent if tangent is not None else full(recorder, 0, operand.shape.plain())
        for operand, tangent in zip(each.operands[:arrays], tangents[:arrays], strict=True)
    ]
    made = recorder.append(_on(context, recorder, each, given))
    if not isinstance(each.shape, TupleShape):
        return made
    return tuple([ops.get_tuple_element(made, index=n) for n in range(arrays)])


def _on(context: Any, recorder: Recorder, each: Instruction, given: Sequence[Value]) -> Instruction:
    """The instruction on other arrays, on a channel of its own where it has one."""
    operands = (*(value.instruction for value in given), *each.operands[len(given) :])
    attributes = each.attributes
    if getattr(attributes, "channel_id", None):
        attributes = evolve(attributes, channel_id=context.channel(attributes.channel_id))
    name = recorder.unique(f"{each.name}.{recorder.mode}")
    return evolve(each, name=name, operands=operands, attributes=attributes, control=())
