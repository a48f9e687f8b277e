"""Shapes of send, recv, infeed, outfeed and custom-call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dims
from ..convolutions import ConvolutionDimensionNumbers
from ..groups import Pairs, check_pairs
from ..rules import infer, refuse
from ..trees import leaves
from ..types import AnyShape, Shape, TokenShape, TupleShape, array_shape, compatible, u32
from ..types import token as a_token
from ..windows import Window
from .contraction import check_precision
from .control_flow import Aliases, check_aliases


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
        refuse("not_array", f"expected an array or a tuple of arrays for shape, got the nested tuple {shape}")
    _payload("shape", shape)
    return TupleShape((shape, a_token))


@infer
def outfeed(operand: AnyShape, token: AnyShape, *, outfeed_shape: AnyShape, outfeed_config: str) -> TokenShape:
    _payload("operand", operand)
    dims.token("token", token)
    if not compatible(operand, outfeed_shape):
        refuse("signature_mismatch", f"operand is {operand}, but outfeed_shape is {outfeed_shape}")
    return a_token


@infer
def custom_call(
    operands: Sequence[AnyShape],
    *,
    custom_call_target: str,
    shape: AnyShape,
    custom_call_has_side_effect: bool,
    backend_config: str,
    api_version: str,
    called_computations: Sequence[Any],
    operand_layout_constraints: Sequence[AnyShape] | None,
    output_to_operand_aliasing: Aliases,
    schedule: str,
    literal: Any,
    window: Window | None,
    dim_labels: ConvolutionDimensionNumbers | None,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    padding_type: str,
) -> AnyShape:
    if operand_layout_constraints is not None:
        _constrained(operands, operand_layout_constraints)
    check_aliases(output_to_operand_aliasing, operands)
    if operand_precision:
        check_precision(operand_precision, len(operand_precision))
    return shape


def _constrained(operands: Sequence[AnyShape], constraints: Sequence[AnyShape]) -> None:
    """Refuse layout constraints that are not a shape compatible with each operand."""
    dims.length("operand_layout_constraints", constraints, len(operands), "operand")
    for number, (operand, wanted) in enumerate(zip(operands, constraints, strict=True)):
        if not compatible(operand, wanted):
            refuse(
                "signature_mismatch",
                f"operand_layout_constraints[{number}] is {wanted}, but operands[{number}] is {operand}",
            )


def _context(payload: AnyShape) -> TupleShape:
    return TupleShape((payload, array_shape(u32, ()), a_token))


def _payload(name: str, shape: AnyShape) -> None:
    if any(not isinstance(leaf, Shape) for leaf in leaves(shape)):
        refuse("not_array", f"expected only arrays in {name}, got {shape}, which contains a token")


def _payload_of(origin: str, context: AnyShape) -> AnyShape:
    if not isinstance(context, TupleShape):
        refuse("not_tuple", f"expected the context of {origin}, got {context}")
    if len(context) != 3 or context.elements[1:] != (array_shape(u32, ()), a_token):
        refuse("signature_mismatch", f"expected the context (T, u32[], token[]) of {origin}, got {context}")
    return context.elements[0]


def _channel(channel_id: int) -> None:
    if channel_id < 0:
        refuse("non_positive", f"channel_id must be 0 or more, got {channel_id}")
