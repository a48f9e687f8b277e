"""Tangents of what is sent and received: each transfer has one beside it on a channel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.async_pairs import origin
from .. import trees
from .pushing import Push, dense, pushes, tree_of


def _payload(start: Instruction) -> Any:
    return start.shape.elements[0]  # type: ignore[union-attr]


def _channel(push: Push, start: Instruction) -> int | None:
    """The channel of the tangents; None where a transfer has none."""
    attributes = start.attributes
    is_carried = not attributes.is_host_transfer and push.context.activity.carries(attributes.channel_id)
    if not is_carried or not trees.any_of(trees.differentiable(_payload(start))):
        return None
    return push.context.back_channel(attributes.channel_id)  # type: ignore[no-any-return]


def _start(half: Instruction) -> Instruction:
    found = origin(half)
    assert found is not None
    return found


@pushes
def send(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, channel = push.copied(each), _channel(push, each)
    if channel is not None:
        shape = _payload(each)
        leaves = dense(push.recorder, trees.differentiable(shape), tangents[0], shape)
        payload = leaves[0] if len(leaves) == 1 else ops.tuple_(tuple(leaves))
        token = ops.after_all((), builder=push.recorder)
        pairs = each.attributes.source_target_pairs
        push.memory[each] = ops.send(payload, token, channel_id=channel, source_target_pairs=pairs)
    return value, None


@pushes
def recv(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, channel = push.copied(each), _channel(push, each)
    if channel is not None:
        whole = _payload(each)
        shapes = [shape.plain() for _, shape in trees.paths(whole) if trees.is_differentiable(shape)]
        shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
        token = ops.after_all((), builder=push.recorder)
        pairs = each.attributes.source_target_pairs
        push.memory[each] = ops.recv(token, shape=shape, channel_id=channel, source_target_pairs=pairs)
    return value, None


@pushes
def send_done(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, start = push.copied(each), _start(each)
    if start in push.memory:
        ops.send_done(push.memory[start], channel_id=_channel(push, start))  # type: ignore[arg-type]
    return value, None


@pushes
def recv_done(push: Push, each: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, start = push.copied(each), _start(each)
    if start not in push.memory:
        return value, None
    done = ops.recv_done(push.memory[start], channel_id=_channel(push, start))  # type: ignore[arg-type]
    found = ops.get_tuple_element(done, index=0)
    leaves: list[Value] = [found]
    if isinstance(found.shape, TupleShape):
        leaves = [ops.get_tuple_element(found, index=n) for n in range(len(found.shape))]
    return value, (tree_of(trees.differentiable(_payload(start)), leaves), None)
