"""Shapes of ops in which a device passes a value to another, or to the host."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..rules import infer, refuse
from ..types import AnyShape, Shape, TokenShape, TupleShape, array_shape, compatible, leaves, u32
from ..types import token as a_token
from .collectives import check_pairs

Pairs = Sequence[tuple[int, int]]


@infer
def send(
    operand: AnyShape, token: AnyShape, *, channel_id: int, source_target_pairs: Pairs, is_host_transfer: bool
) -> TupleShape:
    _payload("operand", operand)
    dims.token("token", token)
    _channel(channel_id)
    check_pairs(source_target_pairs)
    return _context(operand.plain())


@infer
def send_done(context: AnyShape, *, channel_id: int, is_host_transfer: bool) -> TokenShape:
    _payload_of("a send", context)
    _channel(channel_id)
    return a_token


@infer
def recv(
    token: AnyShape, *, shape: AnyShape, channel_id: int, source_target_pairs: Pairs, is_host_transfer: bool
) -> TupleShape:
    dims.token("token", token)
    _payload("shape", shape)
    _channel(channel_id)
    check_pairs(source_target_pairs)
    return _context(shape)


@infer
def recv_done(context: AnyShape, *, channel_id: int, is_host_transfer: bool) -> TupleShape:
    _channel(channel_id)
    return TupleShape((_payload_of("a recv", context), a_token))


@infer
def infeed(token: AnyShape, *, shape: AnyShape, infeed_config: str) -> TupleShape:
    dims.token("token", token)
    if isinstance(shape, TupleShape) and any(isinstance(each, TupleShape) for each in shape.elements):
        refuse("not_array", f"shape is {shape}, a nested tuple; an item is an array or a tuple of arrays")
    _payload("shape", shape)
    return TupleShape((shape, a_token))


@infer
def outfeed(operand: AnyShape, token: AnyShape, *, outfeed_shape: AnyShape, outfeed_config: str) -> TokenShape:
    _payload("operand", operand)
    dims.token("token", token)
    if not compatible(operand, outfeed_shape):
        refuse("signature_mismatch", f"operand is {operand}, outfeed_shape is {outfeed_shape}")
    return a_token


def _context(payload: AnyShape) -> TupleShape:
    return TupleShape((payload, array_shape(u32, ()), a_token))


def _payload(name: str, shape: AnyShape) -> None:
    if any(not isinstance(leaf, Shape) for leaf in leaves(shape)):
        refuse("not_array", f"{name} is {shape}, which holds a token; arrays are wanted")


def _payload_of(origin: str, context: AnyShape) -> AnyShape:
    if not isinstance(context, TupleShape):
        refuse("not_tuple", f"context is {context}; the context that {origin} gave is wanted")
    if len(context) != 3 or context.elements[1:] != (array_shape(u32, ()), a_token):
        refuse(
            "signature_mismatch", f"context is {context}; the context (T, u32[], token[]) that {origin} gave is wanted"
        )
    return context.elements[0]


def _channel(channel_id: int) -> None:
    if channel_id < 0:
        refuse("non_positive", f"channel_id={channel_id}, and no negative one is wanted")
