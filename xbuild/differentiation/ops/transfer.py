"""Cotangents of transfers go back on channels of their own, each transfer in the opposite direction and order."""

from __future__ import annotations

from typing import Any

from shape_inference import Shape, TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.async_pairs import origin
from .. import trees
from ..custom_rules import rule_of
from ..forms.lapack import LAPACK
from ..forms.placement import PLACEMENT
from ..refusals import ELSEWHERE
from ..rules import VISITED, Cotangents, Pullback, no_derivative, refuse_derivative, vjp, zero_derivative

zero_derivative("infeed")
no_derivative("outfeed", reason="what it hands to the host has no cotangent")


def _start(half: Instruction) -> Instruction:
    """The send or recv of a half."""
    found = half if half.opcode in ("send", "recv") else origin(half)
    assert found is not None
    return found


def _shapes(half: Instruction) -> list[Shape]:
    """The shapes of the float and complex leaves that a transfer carries."""
    whole: Any = _start(half).shape
    return [shape.plain() for _, shape in trees.paths(whole.elements[0]) if trees.is_differentiable(shape)]  # type: ignore[misc]


def _goes_back(context: Any, half: Instruction) -> bool:
    """Whether cotangents go back for a transfer, at both of its ends alike."""
    start = _start(half)
    attributes = start.attributes
    return not attributes.is_host_transfer and bool(_shapes(start)) and context.activity.carries(attributes.channel_id)


for _opcode in ("send", "send_done", "recv", "recv_done"):
    VISITED[_opcode] = _goes_back


def _way(back: Pullback) -> dict[str, Any]:
    """The channel on which the cotangent goes, and its pairs."""
    attributes = _start(back.instruction).attributes
    pairs = tuple([(target, source) for source, target in attributes.source_target_pairs])
    return {"channel_id": back.context.back_channel(attributes.channel_id), "source_target_pairs": pairs}


def _channel(back: Pullback) -> int:
    return back.context.back_channel(_start(back.instruction).attributes.channel_id)  # type: ignore[no-any-return]


@vjp
def recv_done(back: Pullback, context: Value, *, channel_id: int, is_host_transfer: bool) -> Cotangents:
    """Send the cotangent of what was received."""
    start = _start(back.instruction)
    if not _goes_back(back.context, start):
        return (None,)
    whole: Any = start.shape
    found = back.ct[0] if back.ct is not None else None
    leaves = [
        leaf if (leaf := trees.at(found, path)) is not None else back.zeros(shape.plain())
        for path, shape in trees.paths(whole.elements[0])
        if trees.is_differentiable(shape)
    ]
    value = leaves[0] if len(leaves) == 1 else ops.tuple_(tuple(leaves))
    token = ops.after_all((), builder=back.builder)
    back.memory[start] = ops.send(value, token, **_way(back))
    return (None,)


@vjp
def recv(back: Pullback, token: Value, **attributes: Any) -> Cotangents:
    """Wait until the cotangent is sent."""
    if back.instruction in back.memory:
        ops.send_done(back.memory[back.instruction], channel_id=_channel(back))
    return (None,)


@vjp
def send_done(back: Pullback, context: Value, *, channel_id: int, is_host_transfer: bool) -> Cotangents:
    """Post a buffer for the cotangent of what was sent."""
    start = _start(back.instruction)
    shapes = _shapes(start)
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    token = ops.after_all((), builder=back.builder)
    back.memory[start] = ops.recv(token, shape=shape, **_way(back))
    return (None,)


@vjp
def send(back: Pullback, operand: Value, token: Value, **attributes: Any) -> Cotangents:
    """Wait for the cotangent of what was sent."""
    if back.instruction not in back.memory:
        return None, None
    done = ops.recv_done(back.memory[back.instruction], channel_id=_channel(back))
    found = ops.get_tuple_element(done, index=0)
    parts = (
        [found]
        if len(_shapes(back.instruction)) == 1
        else [
            ops.get_tuple_element(found, index=n)
            for n in range(len(found.shape))  # type: ignore[arg-type]
        ]
    )
    leaves = iter(parts)
    tree = trees.of_shape(operand.shape, lambda leaf: next(leaves) if trees.is_differentiable(leaf) else None)
    return tree, None


_BUILT_IN = LAPACK | PLACEMENT


@vjp
def custom_call(back: Pullback, operands: Any, *, custom_call_target: str, **attributes: Any) -> Cotangents:
    rule = rule_of(custom_call_target) or _BUILT_IN.get(custom_call_target)
    if rule is None:
        refuse_derivative(
            f"nobody has given a rule for the target {custom_call_target!r}",
            f"xb.custom_vjp({custom_call_target!r}) registers one",
            ELSEWHERE,
        )
    return rule(back, operands)
