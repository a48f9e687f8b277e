"""Cotangents of transfers, which travel back on channels of their own, and of custom calls.

Sections:

    Transfers
    Custom calls
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import Shape, TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.effects import origin
from ...properties.placement import SAME
from .. import trees
from ..custom_rules import find_custom_rule
from ..rules import (
    LEAVE_OUT_OF_ARGNUMS,
    VISITED,
    Cotangents,
    Pullback,
    no_derivative,
    refuse_derivative,
    vjp,
    zero_derivative,
)
from .linear_algebra import LAPACK

zero_derivative("infeed")
no_derivative("outfeed", reason="values sent to the host have no cotangent")

# ----------------------------------------------------------------------------
# Transfers
#
# Each cotangent travels in the opposite direction, and transfers happen in the opposite order.


def _start(half: Instruction) -> Instruction:
    """The send or recv that a half belongs to."""
    start = half if half.opcode in ("send", "recv") else origin(half)
    assert start is not None
    return start


def _payload_shapes(half: Instruction) -> list[Shape]:
    """The shapes of the float and complex leaves that a transfer carries."""
    whole: Any = _start(half).shape
    return [shape.plain() for _, shape in trees.paths(whole.elements[0]) if trees.is_differentiable(shape)]


def _goes_back(context: Any, half: Instruction) -> bool:
    """Whether a transfer has cotangents to send back; both ends must agree."""
    start = _start(half)
    attributes = start.attributes
    return (
        not attributes.is_host_transfer
        and bool(_payload_shapes(start))
        and context.activity.carries(attributes.channel_id)
    )


for _opcode in ("send", "send_done", "recv", "recv_done"):
    VISITED[_opcode] = _goes_back


def _backward_route(back: Pullback) -> dict[str, Any]:
    """The channel and the source-target pairs of the cotangent."""
    attributes = _start(back.instruction).attributes
    pairs = tuple([(target, source) for source, target in attributes.source_target_pairs])
    return {"channel_id": back.context.transfer_channel(attributes.channel_id), "source_target_pairs": pairs}


def _channel(back: Pullback) -> int:
    return back.context.transfer_channel(_start(back.instruction).attributes.channel_id)  # type: ignore[no-any-return]


@vjp
def recv_done(back: Pullback, context: Value, *, channel_id: int, is_host_transfer: bool) -> Cotangents:
    """Send back the cotangent of the received value."""
    start = _start(back.instruction)
    if not _goes_back(back.context, start):
        return (None,)
    whole: Any = start.shape
    payload_ct = back.ct[0] if back.ct is not None else None
    leaves = [
        leaf if (leaf := trees.at(payload_ct, path)) is not None else back.zeros(shape.plain())
        for path, shape in trees.paths(whole.elements[0])
        if trees.is_differentiable(shape)
    ]
    value = leaves[0] if len(leaves) == 1 else ops.tuple_(tuple(leaves))
    token = ops.after_all((), builder=back.builder)
    back.memory[start] = ops.send(value, token, **_backward_route(back))
    return (None,)


@vjp
def recv(back: Pullback, token: Value, **attributes: Any) -> Cotangents:
    """Wait until the cotangent is sent."""
    if back.instruction in back.memory:
        ops.send_done(back.memory[back.instruction], channel_id=_channel(back))
    return (None,)


@vjp
def send_done(back: Pullback, context: Value, *, channel_id: int, is_host_transfer: bool) -> Cotangents:
    """Post a buffer for the cotangent of the sent value."""
    start = _start(back.instruction)
    shapes = _payload_shapes(start)
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    token = ops.after_all((), builder=back.builder)
    back.memory[start] = ops.recv(token, shape=shape, **_backward_route(back))
    return (None,)


@vjp
def send(back: Pullback, operand: Value, token: Value, **attributes: Any) -> Cotangents:
    """Wait for the cotangent of the sent value."""
    if back.instruction not in back.memory:
        return None, None
    done = ops.recv_done(back.memory[back.instruction], channel_id=_channel(back))
    received = ops.get_tuple_element(done, index=0)
    parts = (
        [received]
        if len(_payload_shapes(back.instruction)) == 1
        else [
            ops.get_tuple_element(received, index=n)
            for n in range(len(received.shape))  # type: ignore[arg-type]
        ]
    )
    leaves = iter(parts)
    tree = trees.map_leaves(lambda leaf: next(leaves) if trees.is_differentiable(leaf) else None, operand.shape)
    return tree, None


# ----------------------------------------------------------------------------
# Custom calls
#
# By target: a rule of the user (`custom_vjp`), one of LAPACK, or that of a call that only places its operand.


def pass_through(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """The cotangent of the result, unchanged; for several operands, its elements."""
    return (back.ct,) if len(operands) == 1 else tuple(back.ct)


PLACEMENT = dict.fromkeys(SAME, pass_through)
"""Target of a custom call -> its rule."""


_BUILT_IN = LAPACK | PLACEMENT


@vjp
def custom_call(back: Pullback, operands: Any, *, custom_call_target: str, **attributes: Any) -> Cotangents:
    rule = find_custom_rule(custom_call_target) or _BUILT_IN.get(custom_call_target)
    if rule is None:
        refuse_derivative(
            f"no rule is registered for the target {custom_call_target!r}",
            f"register a rule with xb.custom_vjp({custom_call_target!r})",
            LEAVE_OUT_OF_ARGNUMS,
        )
    return rule(back, operands)
